#include "facetheory/metrics/access_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facetheory/base/log.h"
#include "facetheory/base/uninterrupted.h"
#include "facetheory/base/utf8.h"

namespace facetheory {
namespace {

constexpr std::size_t kLineBuffer = std::size_t{64} << 10;
constexpr std::size_t kLongestValue = 2048;
constexpr Duration kTellingPause = std::chrono::minutes(1);
constexpr Duration kLastChance = std::chrono::seconds(1);
constexpr int kFruitlessAttempts = 100;  // At the end: others may be quicker to fill what has become free.
constexpr std::string_view kHexDigits = "0123456789abcdef";

void append_unsigned(std::string& to, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), end.ptr);
}

void append_hex(std::string& to, std::uint32_t number, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    to.push_back(kHexDigits[(number >> static_cast<unsigned>(shift)) & 0xfU]);
}

void set_digits(char* to, int width, std::uint64_t number) {
  for (int i = width - 1; i >= 0; --i, number /= 10)
    to[i] = static_cast<char>('0' + number % 10);
}

// "2026-11-15T14:44:51.123Z"
void append_time(std::string& to, WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto millisecond = static_cast<std::uint64_t>((time - day).count());
  std::array<char, 25> text{"0000-00-00T00:00:00.000Z"};
  set_digits(&text[0], 4, static_cast<std::uint64_t>(std::max(0, static_cast<int>(date.year()))));
  set_digits(&text[5], 2, static_cast<unsigned>(date.month()));
  set_digits(&text[8], 2, static_cast<unsigned>(date.day()));
  set_digits(&text[11], 2, millisecond / 3'600'000);
  set_digits(&text[14], 2, millisecond / 60'000 % 60);
  set_digits(&text[17], 2, millisecond / 1000 % 60);
  set_digits(&text[20], 3, millisecond % 1000);
  to.append(text.data(), text.size() - 1);
}

// "0.412"
void append_milliseconds(std::string& to, Duration took) {
  const auto microseconds =
      std::chrono::floor<std::chrono::microseconds>(std::max(took, Duration(0))).count();
  append_unsigned(to, static_cast<std::uint64_t>(microseconds / 1000));
  std::array<char, 4> fraction = {'.'};
  set_digits(&fraction[1], 3, static_cast<std::uint64_t>(microseconds % 1000));
  to.append(fraction.data(), fraction.size());
}

// One character, or one byte that belongs to none.
struct Decoded {
  std::size_t size = 1;
  bool valid = false;
  std::uint32_t code = 0;  // The byte where it is not valid.
};

Decoded decode_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {1, true, lead};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4 || !is_utf8(text.substr(at, size))) return {1, false, lead};
  std::uint32_t code = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i)
    code = (code << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  return {size, true, code};
}

// Characters without a shape of their own, which terminals and editors obey: controls (C1 has another escape sequence
// introducer), line and paragraph separators, joiners, marks and overrides of the direction of writing, tags.
bool is_unsafe(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff0 && code <= 0xfffb) ||
         (code >= 0xe0000 && code <= 0xe0fff);
}

void append_text_character(std::string& to, const Decoded& character, std::string_view bytes) {
  const std::uint32_t code = character.code;
  if (!character.valid) {
    to.append("\\x");
    append_hex(to, code, 2);
  } else if (code == '"' || code == '\\') {
    to.push_back('\\');
    to.append(bytes);
  } else if (code == '\n' || code == '\r' || code == '\t') {
    to.append(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
  } else if (code < 0x80 && is_unsafe(code)) {
    to.append("\\x");
    append_hex(to, code, 2);
  } else if (is_unsafe(code)) {
    to.append("\\u{");
    append_hex(to, code, code > 0xffff ? 6 : 4);
    to.push_back('}');
  } else {
    to.append(bytes);
  }
}

void append_json_character(std::string& to, const Decoded& character, std::string_view bytes) {
  const std::uint32_t code = character.code;
  if (!character.valid) {
    to.append("\\ufffd");
  } else if (code == '"' || code == '\\') {
    to.push_back('\\');
    to.append(bytes);
  } else if (is_unsafe(code) && code > 0xffff) {
    to.append("\\u");
    append_hex(to, 0xd800 + ((code - 0x10000) >> 10U), 4);
    to.append("\\u");
    append_hex(to, 0xdc00 + ((code - 0x10000) & 0x3ffU), 4);
  } else if (is_unsafe(code)) {
    to.append("\\u");
    append_hex(to, code, 4);
  } else {
    to.append(bytes);
  }
}

// Bytes that stand for themselves between quotes.
constexpr std::array<bool, 256> kSafeBytes = [] {
  std::array<bool, 256> safe{};
  for (std::size_t c = ' '; c <= '~'; ++c)
    safe[c] = c != '"' && c != '\\';
  return safe;
}();

// How many of the bytes from there on are safe.
std::size_t safe_run(std::string_view value, std::size_t from, std::size_t to) {
  std::size_t end = from;
  while (end < to && kSafeBytes[static_cast<unsigned char>(value[end])])
    ++end;
  return end - from;
}

// Nothing but safe bytes, and no space.
bool is_plain(std::string_view value) {
  return !value.empty() && value != "-" && value.size() <= kLongestValue &&
         safe_run(value, 0, value.size()) == value.size() && value.find(' ') == std::string_view::npos;
}

template <typename AppendCharacter>
void append_quoted(std::string& to, std::string_view value, AppendCharacter append_character) {
  to.push_back('"');
  std::size_t at = 0;
  while (at < value.size() && at < kLongestValue) {
    const std::size_t run = safe_run(value, at, std::min(value.size(), kLongestValue));
    to.append(value, at, run);
    at += run;
    if (run > 0) continue;
    const Decoded character = decode_at(value, at);
    append_character(to, character, value.substr(at, character.size));
    at += character.size;
  }
  if (at < value.size()) to.append("...");
  to.push_back('"');
}

void append_text_value(std::string& to, std::string_view value) {
  if (value.empty()) {
    to.push_back('-');
  } else if (is_plain(value)) {
    to.append(value);
  } else {
    append_quoted(to, value, append_text_character);
  }
}

void append_text_member(std::string& to, std::string_view member, std::string_view value) {
  if (value.empty()) return;
  to.push_back(' ');
  to.append(member);
  to.push_back('=');
  append_text_value(to, value);
}

void append_json_member(std::string& to, std::string_view member, std::string_view value) {
  if (value.empty()) return;
  to.append(",\"").append(member).append("\":");
  append_quoted(to, value, append_json_character);
}

void append_text_line(const AccessRecord& record, std::string& to) {
  append_time(to, record.time);
  for (const std::string_view value : {record.peer, record.method, record.host, record.target}) {
    to.push_back(' ');
    append_text_value(to, value);
  }
  to.push_back(' ');
  append_unsigned(to, static_cast<std::uint64_t>(std::max(0, record.status)));
  to.push_back(' ');
  append_unsigned(to, record.bytes);
  to.push_back(' ');
  append_milliseconds(to, record.took);
  to.append("ms ");
  append_text_value(to, record.state);
  append_text_member(to, "tenant", record.tenant);
  append_text_member(to, "route", record.route);
  append_text_member(to, "id", record.request_id);
  append_text_member(to, "agent", record.user_agent);
  append_text_member(to, "referer", record.referer);
  append_text_member(to, "detail", record.detail);
  to.push_back('\n');
}

void append_json_line(const AccessRecord& record, std::string& to) {
  to.append("{\"time\":\"");
  append_time(to, record.time);
  to.push_back('"');
  append_json_member(to, "peer", record.peer);
  append_json_member(to, "method", record.method);
  append_json_member(to, "host", record.host);
  append_json_member(to, "target", record.target);
  to.append(",\"status\":");
  append_unsigned(to, static_cast<std::uint64_t>(std::max(0, record.status)));
  to.append(",\"bytes\":");
  append_unsigned(to, record.bytes);
  to.append(",\"duration_ms\":");
  append_milliseconds(to, record.took);
  append_json_member(to, "state", record.state);
  append_json_member(to, "tenant", record.tenant);
  append_json_member(to, "route", record.route);
  append_json_member(to, "request_id", record.request_id);
  append_json_member(to, "user_agent", record.user_agent);
  append_json_member(to, "referer", record.referer);
  append_json_member(to, "detail", record.detail);
  to.append("}\n");
}

// Keeps a write to a pipe that nobody reads from killing the process, whatever the process does about SIGPIPE.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&only_pipe_);
    sigaddset(&only_pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &only_pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const int error = errno;
    constexpr timespec kAtOnce{0, 0};
    if (!was_pending_) uninterrupted([&] { return sigtimedwait(&only_pipe_, nullptr, &kAtOnce); });
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t only_pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace

void format(const AccessRecord& record, AccessLog style, std::string& to) {
  switch (style) {
    case AccessLog::text:
      return append_text_line(record, to);
    case AccessLog::json:
      return append_json_line(record, to);
    case AccessLog::off:
      return;
  }
}

Result<std::shared_ptr<AccessLogFile>> AccessLogFile::open(int descriptor, Clock& clock) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) {
    return Error{ErrorCode::invalid,
                 "the access log: descriptor " + std::to_string(descriptor) + ": " + std::strerror(errno)};
  }
  // O_NONBLOCK belongs to the open file, which a shell, its terminal and other processes may share with us: so open our
  // own. Not for a plain file, which never makes a writer wait for a reader, and whose place for the next line we do
  // share with whoever else writes to it ("> log 2>&1").
  // Nor for one that cannot be written to, which stands in the place of a descriptor that was closed: it stays so.
  const bool pipe = S_ISFIFO(status.st_mode);
  const bool writable = (::fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;
  if (writable && (pipe || S_ISCHR(status.st_mode))) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    const int own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0)
      return std::shared_ptr<AccessLogFile>(new AccessLogFile(own, pipe ? Kind::pipe : Kind::other, clock));
  }
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) {
    return Error{ErrorCode::exhausted, std::string("the access log: ") + std::strerror(errno)};
  }
  const Kind kind = S_ISSOCK(status.st_mode)               ? Kind::socket
                    : S_ISREG(status.st_mode) || !writable ? Kind::other
                                                           : Kind::blocking;
  return std::shared_ptr<AccessLogFile>(new AccessLogFile(copy, kind, clock));
}

AccessLogFile::~AccessLogFile() {
  const WithoutSigpipe guard;
  const Duration deadline = system_clock().monotonic() + kLastChance;
  for (int i = 0; i < kFruitlessAttempts && !write_rest() && wait_for_room(deadline); ++i) {
  }
  ::close(descriptor_);
}

bool AccessLogFile::wait_for_room(Duration deadline) const {
  const Duration left = deadline - system_clock().monotonic();
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Duration(0))).count();
  pollfd writable{descriptor_, POLLOUT, 0};
  return ::poll(&writable, 1, static_cast<int>(limit)) == 1 && (writable.revents & (POLLERR | POLLHUP)) == 0;
}

// What to write at once. A pipe takes up to PIPE_BUF bytes whole or not at all, so that whole lines of no more than
// that are never torn: not by a slow reader, not by another process that writes there, not by our own death.
std::string_view AccessLogFile::piece_of(std::string_view lines) const {
  if (kind_ != Kind::pipe && kind_ != Kind::blocking) return lines;
  if (lines.size() <= PIPE_BUF) return lines;
  const std::size_t last = lines.substr(0, PIPE_BUF).rfind('\n');
  if (last != std::string_view::npos) return lines.substr(0, last + 1);
  return kind_ == Kind::blocking ? lines.substr(0, PIPE_BUF) : lines.substr(0, lines.find('\n') + 1);
}

// How many bytes were taken; 0: none, now, or for the reason that error_ is.
std::size_t AccessLogFile::write_some(std::string_view bytes) {
  error_ = 0;
  for (;;) {
    if (kind_ == Kind::blocking) {
      // What poll() calls writable takes a piece without waiting.
      pollfd writable{descriptor_, POLLOUT, 0};
      if (::poll(&writable, 1, 0) != 1) return 0;
    }
    const ssize_t written = kind_ == Kind::socket
                                ? ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                : ::write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) return static_cast<std::size_t>(written);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) error_ = errno;
    return 0;
  }
}

// False: not all of it was taken.
bool AccessLogFile::write_rest() {
  while (!rest_.empty()) {
    const std::size_t written = write_some(piece_of(rest_));
    if (written == 0) return false;
    rest_.erase(0, written);
  }
  return true;
}

AccessLogFile::Written AccessLogFile::write(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  if (lines.empty() && rest_.empty()) return {};
  const WithoutSigpipe guard;
  const std::size_t bytes = write_rest() ? write_lines(lines) : 0;
  if (error_ != 0) {
    tell_of_failure();
  } else if (failure_told_ && (bytes > 0 || (lines.empty() && rest_.empty()))) {
    failure_told_ = false;
    log(LogLevel::warning, "the access log can be written again");
  }
  return {bytes, error_ != 0};
}

std::size_t AccessLogFile::write_lines(std::string_view lines) {
  std::size_t written = 0;
  while (written < lines.size()) {
    const std::size_t some = write_some(piece_of(lines.substr(written)));
    if (some == 0) break;
    written += some;
  }
  if (written == 0 || lines[written - 1] == '\n') return written;
  const std::size_t end = std::min(lines.find('\n', written), lines.size() - 1) + 1;
  rest_.assign(lines.substr(written, end - written));
  return end;
}

void AccessLogFile::tell_of_failure() {
  const Duration now = clock_.monotonic();
  if (last_told_ && now - *last_told_ < kTellingPause) return;
  last_told_ = now;
  failure_told_ = true;
  const std::string hint = error_ == EPIPE   ? ", since nobody reads it any more"
                           : error_ == EBADF ? ", since stdout is closed (access_log = \"off\" keeps none)"
                                             : "";
  log(LogLevel::warning, std::string("the access log cannot be written: ") + std::strerror(error_) + hint +
                             "; this is told once a minute, and lost lines are counted in "
                             "facetheory_access_log_lines_lost_total");
}

AccessLogWriter::AccessLogWriter(std::shared_ptr<AccessLogFile> file, AccessLog style,
                                 std::optional<LoopBound> loop)
    : file_(std::move(file)), style_(style), loop_(std::move(loop)) {
  if (style_ != AccessLog::off) lines_.reserve(2 * kLineBuffer);
}

AccessLogWriter::~AccessLogWriter() {
  const Duration deadline = system_clock().monotonic() + kLastChance;
  hand_over_all();
  for (int fruitless = 0; !lines_.empty() && fruitless < kFruitlessAttempts && file_->wait_for_room(deadline);
       ++fruitless) {
    const std::size_t before = lines_.size();
    hand_over_all();
    if (lines_.size() < before) fruitless = 0;
  }
}

void AccessLogWriter::write(const AccessRecord& record) {
  if (style_ == AccessLog::off) return;
  latest_ = record.time;
  if (lost_not_told_ > 0) return lose();  // Until the log has told of it, so that the gap is where it says.
  const std::size_t before = lines_.size();
  format(record, style_, lines_);
  if (lines_.size() < kLineBuffer) return;
  const std::size_t line = lines_.size() - before;
  hand_over();
  if (lines_.size() < kLineBuffer || lines_.size() <= line) return;
  lines_.resize(lines_.size() - line);
  lose();
}

void AccessLogWriter::lose() {
  ++lost_not_told_;
  lost_.fetch_add(1, std::memory_order_relaxed);
}

void AccessLogWriter::flush() {
  if (loop_) loop_->check();
  hand_over_all();
}

void AccessLogWriter::hand_over_all() {
  if (style_ == AccessLog::off) return;
  hand_over();
  if (lines_.empty()) tell_of_losses();
}

void AccessLogWriter::hand_over() {
  // Even if there are none: half of one of ours may wait over there.
  const AccessLogFile::Written written = file_->write(lines_);
  if (written.bytes > 0) told_in_lines_ = 0;
  lines_.erase(0, written.bytes);
  if (written.failed) lose_all();
}

// What cannot be written now is not worth the memory; the count says how much it was.
void AccessLogWriter::lose_all() {
  auto lines = static_cast<std::uint64_t>(std::count(lines_.begin(), lines_.end(), '\n'));
  lines_.clear();
  if (told_in_lines_ > 0) --lines;
  lost_.fetch_add(lines, std::memory_order_relaxed);
  lost_not_told_ += lines + std::exchange(told_in_lines_, 0);
}

// What was lost is told as a line among the others, once they have all gone.
void AccessLogWriter::tell_of_losses() {
  if (lost_not_told_ == 0) return;
  std::string told;
  if (style_ == AccessLog::json) {
    told.append("{\"time\":\"");
    append_time(told, latest_);
    told.append("\",\"lost\":");
    append_unsigned(told, lost_not_told_);
    told.append("}\n");
  } else {
    append_time(told, latest_);
    told.append(" - lost ");
    append_unsigned(told, lost_not_told_);
    told.append(" lines here: the log could not be written, or whoever reads it was too slow\n");
  }
  const AccessLogFile::Written written = file_->write(told);
  if (written.bytes == 0 && written.failed) return;
  if (written.bytes == 0) {
    lines_ = std::move(told);
    told_in_lines_ = lost_not_told_;
  }
  lost_not_told_ = 0;
}

}  // namespace facetheory
