// The access log: one line for each request, for people or as JSON, and where the lines go.
//
// Whatever a client sends, a line stays one line: control characters, what is not UTF-8, and what could move a
// terminal's cursor or turn its text around are escaped, and long values are cut. A reader of the log that is slow or
// gone never holds up an event loop: lines are dropped then, counted, and the log says how many once it goes on.
// For .cc files only, since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/access_log_style.h"
#include "facetheory/base/clock.h"
#include "facetheory/base/loop_bound.h"
#include "facetheory/base/result.h"
#include "facetheory/metrics/access_record.h"

namespace facetheory {

// Appends the line with its end; nothing for AccessLog::off. Allocates only when `to` must grow.
//
// text: 2026-11-15T14:44:51.123Z 127.0.0.1 GET example.org /news?id=1 200 5120 0.412ms hit route=/news agent="curl/8 x"
//       A value that is not plain stands in quotes, with \" \\ \n \xHH (a byte) \u{HHHH} (a character) in it; an empty
//       one is -, or left out where it has a name.
// json: {"time":"...","peer":"...","method":...,"status":200,"bytes":5120,"duration_ms":0.412,"state":"hit",...}
//       Empty members are left out; a byte that is not UTF-8 becomes U+FFFD.
void format(const AccessRecord& record, AccessLog style, std::string& to);

// The descriptor that the lines of all event loops go to. Lines of different loops are never mixed: what a slow reader
// left over of a line goes first the next time. May be used from any thread.
class AccessLogFile {
 public:
  // Works on a copy of the descriptor, and changes nothing about the one given (which others may share: a terminal).
  // The clock must outlive it.
  static Result<std::shared_ptr<AccessLogFile>> open(int descriptor, Clock& clock = system_clock());
  ~AccessLogFile();  // Gives a reader who has half a line a second to take the rest.
  AccessLogFile(const AccessLogFile&) = delete;
  AccessLogFile& operator=(const AccessLogFile&) = delete;

  struct Written {
    std::size_t bytes = 0;  // Those that were taken: whole lines, from the beginning.
    bool failed = false;    // Of the rest: nobody can write it, rather than that a reader is slow.
  };
  // Writes what can be written without waiting. A failure is logged, but once a minute at most, and so is that it is
  // over.
  Written write(std::string_view lines);

  // Waits at the end, when that holds up nobody any more. False: the time is up, or nobody reads any more.
  bool wait_for_room(Duration deadline) const;

 private:
  enum class Kind {
    pipe,
    socket,
    blocking,  // A pipe or terminal that could not be opened again, not to block.
    other,     // A file; a terminal.
  };
  AccessLogFile(int descriptor, Kind kind, Clock& clock)
      : descriptor_(descriptor), kind_(kind), clock_(clock) {}
  std::string_view piece_of(std::string_view lines) const;
  std::size_t write_some(std::string_view bytes);
  bool write_rest();
  std::size_t write_lines(std::string_view lines);
  void tell_of_failure();

  // Constant after construction.
  const int descriptor_;
  const Kind kind_;
  Clock& clock_;

  std::mutex mutex_;  // guards what follows; held for a write that does not wait
  std::string rest_;  // Of a line whose beginning is written.
  int error_ = 0;     // Why the last attempt to write has failed; 0: it has not, or there was no room.
  bool failure_told_ = false;               // And not yet that it is over.
  std::optional<Duration> last_told_ = {};  // When a failure was.
};

// The lines of one event loop, gathered until there are 64 KiB of them or flush() is called. On that loop's thread
// only, but for lost(); flush() checks that if it is told the loop, and whoever writes has checked it for the request.
class AccessLogWriter {
 public:
  AccessLogWriter(std::shared_ptr<AccessLogFile> file, AccessLog style,
                  std::optional<LoopBound> loop = std::nullopt);
  ~AccessLogWriter();  // Flushes, and gives a slow reader a second.
  AccessLogWriter(const AccessLogWriter&) = delete;
  AccessLogWriter& operator=(const AccessLogWriter&) = delete;

  void write(const AccessRecord& record);

  // Every second or so, and when there is nothing else to do. What is not taken stays for the next time.
  void flush();

  // Lines dropped since the beginning: there was no room for them, or they could not be written.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  void hand_over_all();
  void hand_over();
  void lose();
  void lose_all();
  void tell_of_losses();

  // Constant after construction.
  const std::shared_ptr<AccessLogFile> file_;
  const AccessLog style_;
  const std::optional<LoopBound> loop_;

  // Only on this loop's thread.
  std::string lines_;
  WallTime latest_ = {};
  std::uint64_t lost_not_told_ = 0;  // While there are any no line is taken.
  std::uint64_t told_in_lines_ = 0;  // The line that tells of so many begins lines_ and is not all written.

  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace facetheory
