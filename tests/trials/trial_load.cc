// trial_load: asks a server for pages of trial_origin over many keep-alive connections and checks every answer, byte
// for byte. It knows nothing of the server but HTTP, and nothing of the server's library.
//
//   trial_load --port N [--connections 12] [--answers 100000] [--seconds 60] [--name run] [--seed 1]
//              [--hot 30] [--again 10] [--pass 0] [--hot-pages 100] [--hosts 4] [--abandon 0]
//              [--late 5000] [--give-up 30000] [--short no] [--tally FIELD] [--readers 0] [--change 0] [--private 0]
//
// In a hundred requests, --hot ask for one of --hot-pages pages that everybody asks for (fresh for a second, or an
// hour, or for a second and then stale), --again for one of the 64 new pages that were asked for last, --pass for one
// whose path begins with /pass/, --change change (POST) one of the 8 new pages that were asked for last, the others ask
// for a page that nobody ever asked for, of which --private of a hundred are private. --abandon requests of a hundred
// are left within 20 ms. --readers more connections ask alone for hot pages that may be served while they are stale. It
// stops asking after --answers answers or --seconds seconds, whichever comes first, and then waits for what is under
// way, each at most --give-up milliseconds.
//
// An answer of 200 must be the page of the URL that was asked for. So must the body of any other answer that begins
// like a page, what arrived of an answer that was cut off, and the URL that an answer's head names. Anything else is
// a wrong page: both are printed, and the run ends at once with exit code 1. So it does for bytes that nobody asked
// for and for an answer that is no HTTP. With --short yes an answer may end early, as the origin's own Content-Length
// says.
//
// Prints one line of JSON: answers (whole answers of any status), ok (the right page with 200), failed (answers by
// other statuses), cut (ended within the answer), unanswered (closed before it began), refused (connections), late
// (took longer than --late ms), hanging (given up), abandoned, longest_gap (milliseconds between two answers),
// milliseconds (p50, p99, max; of all and of the hot pages), and with --tally how often each value of that field
// came.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trial_loop.h"
#include "trial_page.h"

namespace trials {
namespace {

constexpr std::size_t kRemembered = 64;  // New pages that may be asked for again,
constexpr std::size_t kChanged = 8;      // and that may be changed, some while they are rendered.
// The hot pages live for a second, for a second and stale after that, or for an hour, as trial_origin reads this.
constexpr std::array<std::string_view, 3> kLifetimes = {"/w1", "/s1", "/w3600"};
constexpr std::size_t kNeverStale = 0;  // The first of these: after its second somebody has to wait for it.
constexpr std::size_t kLargestAnswer = 1 << 20;

// Reads one answer in pieces. What is left over after its end was not asked for.
class AnswerReader {
 public:
  enum class State {
    head,         // Nothing or a part of the head has arrived.
    sized,        // A body whose length the head named.
    chunk_size,   // The line before a chunk.
    chunk,        // Within a chunk, or the line end after it.
    trailer,      // After the last chunk.
    until_close,  // A body that ends with the connection.
    whole,        // The answer is complete.
    malformed,    // No HTTP.
  };

  // How many of the bytes belong to this answer.
  std::size_t feed(std::string_view bytes) {
    in_.append(bytes);
    while (step()) {
    }
    const std::size_t surplus = state_ == State::whole ? in_.size() : 0;
    return bytes.size() - std::min(surplus, bytes.size());
  }

  void end_of_connection() {
    if (state_ == State::until_close) state_ = State::whole;
  }

  State state() const { return state_; }
  bool has_begun() const { return state_ != State::head || !in_.empty(); }
  int status() const { return status_; }
  bool closes() const { return closes_; }
  const std::string& body() const { return body_; }
  const std::string& page_field() const { return page_field_; }
  const std::string& head() const { return head_; }

 private:
  // Whether there may be more to do with what has arrived.
  bool step() {
    switch (state_) {
      case State::head:
        return read_head();
      case State::sized:
      case State::chunk:
        return read_counted();
      case State::until_close:
        body_ += std::exchange(in_, {});
        return false;
      case State::chunk_size:
        return read_chunk_size();
      case State::trailer:
        return read_trailer();
      case State::whole:
      case State::malformed:
        break;
    }
    return false;
  }

  bool read_head() {
    const Head head = head_in(in_);
    if (head.size == 0) return in_.size() > 65536 ? become(State::malformed) : false;
    if (!head.first_line.starts_with("HTTP/1.1 ") || head.first_line.size() < 12)
      return become(State::malformed);
    status_ = std::atoi(std::string(head.first_line.substr(9, 3)).c_str());
    head_ = head.text;
    closes_ = equal_ignoring_case(head.field("connection"), "close");
    page_field_ = head.field(kPageField);
    const std::string length(head.field("content-length"));
    const bool chunked = equal_ignoring_case(head.field("transfer-encoding"), "chunked");
    in_.erase(0, head.size);
    if (status_ >= 100 && status_ < 200) return true;
    if (status_ < 200 || status_ > 599) return become(State::malformed);
    if (status_ == 204 || status_ == 304) return become(State::whole);
    if (chunked) return length.empty() ? become(State::chunk_size) : become(State::malformed);
    if (length.empty()) return become(State::until_close);
    if (length.find_first_not_of("0123456789") != std::string::npos || length.size() > 9)
      return become(State::malformed);
    left_ = std::stoul(length);
    return become(left_ == 0 ? State::whole : State::sized);
  }

  bool read_counted() {
    const std::size_t taken = std::min(left_, in_.size());
    body_.append(in_, 0, taken);
    in_.erase(0, taken);
    left_ -= taken;
    if (body_.size() > kLargestAnswer) return become(State::malformed);
    if (left_ > 0) return false;
    if (state_ == State::sized) return become(State::whole);
    if (in_.size() < 2) return false;
    if (!in_.starts_with("\r\n")) return become(State::malformed);
    in_.erase(0, 2);
    return become(State::chunk_size);
  }

  bool read_chunk_size() {
    const std::size_t end = in_.find("\r\n");
    if (end == std::string::npos) return in_.size() > 32 ? become(State::malformed) : false;
    if (end == 0 || end > 8 || in_.find_first_not_of("0123456789abcdefABCDEF") != end)
      return become(State::malformed);
    left_ = std::stoul(in_.substr(0, end), nullptr, 16);
    in_.erase(0, end + 2);
    return become(left_ == 0 ? State::trailer : State::chunk);
  }

  bool read_trailer() {
    const std::size_t end = in_.find("\r\n");
    if (end == std::string::npos) return false;
    in_.erase(0, end + 2);
    return end == 0 ? become(State::whole) : true;
  }

  bool become(State state) {
    state_ = state;
    return true;
  }

  State state_ = State::head;
  int status_ = 0;
  bool closes_ = false;
  std::size_t left_ = 0;
  std::string in_, head_, body_, page_field_;
};

struct Counts {
  std::uint64_t answers = 0, ok = 0, cut = 0, unanswered = 0, refused = 0, late = 0, hanging = 0,
                abandoned = 0, wrong = 0;
  std::map<int, std::uint64_t> failed;
  std::map<std::string, std::uint64_t> tally;
  std::vector<std::uint32_t> all, hot;  // Microseconds.
  Clock::time_point last_answer;
  Clock::duration longest_gap{0};
};

// Decides which page to ask for next.
class Pages {
 public:
  struct Choice {
    std::string host, path;
    bool hot = false;
    std::string_view method = "GET";
  };

  explicit Pages(const Options& options)
      : name_(options.text("name")),
        hot_(options.number("hot")),
        again_(options.number("again")),
        pass_(options.number("pass")),
        change_(options.number("change")),
        private_(options.number("private")),
        hot_pages_(std::max<std::uint64_t>(options.number("hot-pages"), 2)),
        hosts_(std::max<std::uint64_t>(options.number("hosts"), 1)),
        random_(options.number("seed")) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  Choice next() {
    std::uint64_t kind = below(100);
    if (kind < pass_) {
      const std::uint64_t number = ++last_passed_;
      return {host(number), "/pass/" + name_ + "/" + std::to_string(number), false};
    }
    kind -= pass_;
    if (kind < hot_) return hot();
    kind -= hot_;
    if (kind < again_ && last_new_ > 0) return new_page(recent(kRemembered));
    if (kind < again_ + change_ && last_new_ > 0) {
      Choice changed = new_page(recent(kChanged));
      changed.method = "POST";
      return changed;
    }
    return new_page(++last_new_);
  }

  // One that everybody asks for.
  Choice hot() { return hot(below(hot_pages_)); }
  // One of them that is served at once, fresh or stale.
  Choice hot_at_once() {
    std::uint64_t number = below(hot_pages_ - 1);
    if (number % kLifetimes.size() == kNeverStale) ++number;
    return hot(number);
  }

 private:
  Choice hot(std::uint64_t number) const {
    const std::string_view lifetime = kLifetimes[number % kLifetimes.size()];
    return {host(number), "/" + name_ + std::string(lifetime) + "/hot/" + std::to_string(number), true};
  }
  std::uint64_t recent(std::uint64_t most) {
    return last_new_ - below(std::min<std::uint64_t>(last_new_, most));
  }
  Choice new_page(std::uint64_t number) const {
    const bool is_private = number % 100 < private_;
    return {host(number), "/" + name_ + (is_private ? "/p" : "") + "/new/" + std::to_string(number)};
  }
  std::string host(std::uint64_t number) const { return "site" + std::to_string(number % hosts_) + ".test"; }

  std::string name_;
  std::uint64_t hot_, again_, pass_, change_, private_, hot_pages_, hosts_;
  std::uint64_t last_new_ = 0;
  std::uint64_t last_passed_ = 0;
  std::mt19937_64 random_;
};

class LoadConnection;

enum class Asks { for_all, for_known };  // Pages: of all kinds, or hot ones alone that are served at once.

struct Load {
  explicit Load(const Options& options)
      : port(static_cast<std::uint16_t>(options.number("port"))),
        answers(options.number("answers")),
        abandon(options.number("abandon")),
        late(options.number("late")),
        give_up(options.number("give-up")),
        may_be_short(options.text("short") == "yes"),
        tally(options.text("tally")),
        pages(options) {}

  const std::uint16_t port;
  const std::uint64_t answers, abandon;
  const Milliseconds late, give_up;
  const bool may_be_short;
  const std::string tally;

  Loop loop;
  Pages pages;
  Counts counts;
  bool asking = true;                                      // Until enough was asked.
  std::size_t working = 0;                                 // Connections that are not done.
  std::vector<std::weak_ptr<LoadConnection>> connections;  // Those that exist, and some that did.

  void connect(Asks asks);
  void give_up_what_hangs();
  void stop_asking() { asking = false; }
  void one_is_done() {
    if (--working == 0) loop.stop();
  }
  void wrong(const std::string& what, const std::string& asked, const AnswerReader& answer,
             const std::string& expected);
};

std::string visible(std::string_view text, std::size_t most) {
  std::string shown;
  for (const char c : text.substr(0, most))
    shown += c == '\n' ? "\\n" : std::string(1, c >= ' ' && c < 127 ? c : '?');
  return shown;
}

void Load::wrong(const std::string& what, const std::string& asked, const AnswerReader& answer,
                 const std::string& expected) {
  const std::string& body = answer.body();
  const auto differs =
      std::mismatch(body.begin(), body.end(), expected.begin(), expected.end()).first - body.begin();
  std::fprintf(stderr,
               "WRONG: %s\n  asked for  %s\n  expected   %zu bytes: %s\n  found      %zu bytes: %s\n  "
               "differs at %ld: %s\n  head:\n%s\n",
               what.c_str(), asked.c_str(), expected.size(), visible(expected, 100).c_str(), body.size(),
               visible(body, 100).c_str(), static_cast<long>(differs),
               visible(std::string_view(body).substr(static_cast<std::size_t>(differs)), 100).c_str(),
               answer.head().c_str());
  ++counts.wrong;
  loop.stop();
}

// One connection after the other, each until it is closed.
class LoadConnection : public Watched, public std::enable_shared_from_this<LoadConnection> {
 public:
  LoadConnection(Load& load, int socket, Asks asks) : Watched(socket), load_(load), asks_(asks) {}

  void ready(std::uint32_t events) override {
    if (!connected_) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return refused();
      if ((events & EPOLLOUT) == 0) return;
      connected_ = true;
      load_.loop.change(*this, EPOLLIN | EPOLLRDHUP);
      return ask();
    }
    read_answer();
  }

  void give_up_if_it_hangs(Clock::time_point now) {
    if (!connected_ || now - began_ < load_.give_up) return;
    ++load_.counts.hanging;
    leave();
  }

 private:
  void refused() {
    ++load_.counts.refused;
    load_.loop.forget(*this);
    load_.loop.after(Milliseconds(20), [&load = load_, asks = asks_] { load.connect(asks); });
  }

  void leave() {
    load_.loop.forget(*this);
    ++request_;
    load_.connect(asks_);
  }

  void ask() {
    if (!load_.asking) {
      load_.loop.forget(*this);
      return load_.one_is_done();
    }
    choice_ = asks_ == Asks::for_known ? load_.pages.hot_at_once() : load_.pages.next();
    expected_ = page_of(choice_.host + choice_.path);
    answer_ = AnswerReader();
    began_ = Clock::now();
    ++request_;
    const std::string length = choice_.method == "POST" ? "Content-Length: 0\r\n" : "";
    const std::string text = std::string(choice_.method) + " " + choice_.path +
                             " HTTP/1.1\r\nHost: " + choice_.host + "\r\n" + length + "\r\n";
    if (send(descriptor(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
      ++load_.counts.unanswered;
      return leave();
    }
    if (load_.pages.below(100) < load_.abandon) abandon_after(Milliseconds(load_.pages.below(20)));
  }

  // Leaves the connection if this request is not answered by then.
  void abandon_after(Milliseconds limit) {
    load_.loop.after(limit, [weak = weak_from_this(), request = request_] {
      const auto self = weak.lock();
      if (!self || self->request_ != request) return;
      ++self->load_.counts.abandoned;
      self->leave();
    });
  }

  void read_answer() {
    std::array<char, 65536> piece;
    const ssize_t got = recv(descriptor(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      answer_.end_of_connection();
      return answer_.state() == AnswerReader::State::whole ? judge() : broken_off();
    }
    const std::size_t taken = answer_.feed(std::string_view(piece.data(), static_cast<std::size_t>(got)));
    if (answer_.state() == AnswerReader::State::malformed) return wrong("the answer is no HTTP");
    if (taken < static_cast<std::size_t>(got)) {
      std::fprintf(
          stderr, "surplus: %s\n",
          visible(std::string_view(piece.data(), static_cast<std::size_t>(got)).substr(taken), 200).c_str());
      return wrong("the connection has more bytes than were asked for");
    }
    if (answer_.state() == AnswerReader::State::whole) judge();
  }

  void wrong(const std::string& what) { load_.wrong(what, choice_.host + choice_.path, answer_, expected_); }

  // As much of an answer as there is must be of the right page.
  bool belongs_here(bool is_whole) const {
    const std::string& body = answer_.body();
    if (!answer_.page_field().empty() && answer_.page_field() != choice_.host + choice_.path) return false;
    if (answer_.status() != 200 && !body.starts_with(kPageMark)) return true;
    return is_whole && !load_.may_be_short ? body == expected_ : expected_.starts_with(body);
  }

  void broken_off() {
    if (!belongs_here(false)) return wrong("an answer that was cut off is of another page");
    ++(answer_.has_begun() ? load_.counts.cut : load_.counts.unanswered);
    leave();
  }

  void judge() {
    const Clock::time_point now = Clock::now();
    if (!belongs_here(true)) return wrong("the answer is not the page that was asked for");
    Counts& counts = load_.counts;
    ++counts.answers;
    ++(answer_.status() == 200 ? counts.ok : counts.failed[answer_.status()]);
    const auto took = now - began_;
    if (took > load_.late) ++counts.late;
    const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    counts.all.push_back(static_cast<std::uint32_t>(microseconds));
    if (choice_.hot) counts.hot.push_back(static_cast<std::uint32_t>(microseconds));
    counts.longest_gap = std::max(counts.longest_gap, now - counts.last_answer);
    counts.last_answer = now;
    if (!load_.tally.empty())
      ++counts.tally[std::string(head_in(answer_.head() + "\r\n").field(load_.tally))];
    if (counts.answers >= load_.answers) load_.stop_asking();
    if (answer_.closes()) return leave();
    ask();
  }

  Load& load_;
  const Asks asks_;
  bool connected_ = false;
  std::uint64_t request_ = 0;
  Pages::Choice choice_;
  std::string expected_;
  AnswerReader answer_;
  Clock::time_point began_;
};

void Load::connect(Asks asks) {
  if (!asking) return one_is_done();
  const int socket = begin_to_connect(port);
  if (socket < 0) {
    ++counts.refused;
    loop.after(Milliseconds(20), [this, asks] { connect(asks); });
    return;
  }
  const auto connection = std::make_shared<LoadConnection>(*this, socket, asks);
  connections.push_back(connection);
  loop.watch(connection, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

void Load::give_up_what_hangs() {
  std::erase_if(connections, [](const auto& weak) { return weak.expired(); });
  const auto now = Clock::now();
  const auto all = connections;  // Giving up makes new ones.
  for (const auto& weak : all)
    if (const auto connection = weak.lock()) connection->give_up_if_it_hangs(now);
  loop.after(Milliseconds(50), [this] { give_up_what_hangs(); });
}

std::string quantiles(std::vector<std::uint32_t>& values) {
  const auto at = [&values](double share) {
    if (values.empty()) return 0.0;
    const auto index = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + index, values.end());
    return values[static_cast<std::size_t>(index)] / 1000.0;
  };
  std::array<char, 100> text;
  std::snprintf(text.data(), text.size(), R"({"p50":%.2f,"p99":%.2f,"max":%.1f})", at(0.5), at(0.99), at(1));
  return text.data();
}

template <class Map, class Name>
std::string object_of(const Map& map, Name name) {
  std::string text;
  for (const auto& [key, count] : map)
    text += (text.empty() ? "\"" : ",\"") + name(key) + "\":" + std::to_string(count);
  return "{" + text + "}";
}

void report(Counts& counts, Clock::duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  std::string text;
  for (const auto& [name, count] : std::map<std::string, std::uint64_t>{{"ok", counts.ok},
                                                                        {"cut", counts.cut},
                                                                        {"unanswered", counts.unanswered},
                                                                        {"refused", counts.refused},
                                                                        {"late", counts.late},
                                                                        {"hanging", counts.hanging},
                                                                        {"abandoned", counts.abandoned},
                                                                        {"wrong", counts.wrong}})
    text += "\"" + name + "\":" + std::to_string(count) + ",";
  text += "\"failed\":" + object_of(counts.failed, [](int status) { return std::to_string(status); });
  text += ",\"tally\":" + object_of(counts.tally, [](const std::string& value) { return value; });
  const auto gap = std::chrono::duration_cast<Milliseconds>(counts.longest_gap).count();
  std::printf(
      "{\"answers\":%zu,\"seconds\":%.2f,%s,\"longest_gap\":%ld,\"milliseconds\":%s,\"hot_milliseconds\":%s}"
      "\n",
      static_cast<std::size_t>(counts.answers), seconds, text.c_str(), static_cast<long>(gap),
      quantiles(counts.all).c_str(), quantiles(counts.hot).c_str());
}

int run(const Options& options) {
  Load load(options);
  const Clock::time_point began = Clock::now();
  load.counts.last_answer = began;
  const std::uint64_t of_all = options.number("connections");
  load.working = of_all + options.number("readers");
  for (std::uint64_t i = 0; i < load.working; ++i)
    load.connect(i < of_all ? Asks::for_all : Asks::for_known);
  load.give_up_what_hangs();
  const Milliseconds limit(options.number("seconds") * 1000);
  load.loop.after(limit, [&load] { load.stop_asking(); });
  // Whatever happens, it ends.
  load.loop.after(limit + load.give_up + Milliseconds(2000), [&load] { load.loop.stop(); });
  load.loop.run();
  report(load.counts, Clock::now() - began);
  return load.counts.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trials

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  const trials::Options options(count, arguments,
                                {{"port", "0"},
                                 {"connections", "12"},
                                 {"answers", "100000"},
                                 {"seconds", "60"},
                                 {"name", "run"},
                                 {"seed", "1"},
                                 {"hot", "30"},
                                 {"again", "10"},
                                 {"pass", "0"},
                                 {"hot-pages", "100"},
                                 {"hosts", "4"},
                                 {"abandon", "0"},
                                 {"late", "5000"},
                                 {"give-up", "30000"},
                                 {"short", "no"},
                                 {"tally", ""},
                                 {"readers", "0"},
                                 {"change", "0"},
                                 {"private", "0"}});
  return trials::run(options);
}
