// What the program tells its operator. Lines go to stderr unless a sink takes them; any thread may log.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace facetheory {

enum class LogLevel { debug, info, warning, error };

void log(LogLevel level, std::string_view message);

// Lines below this level are dropped (default: info).
void set_log_level(LogLevel level);

// Sends lines to `sink` instead of stderr; an empty function restores stderr. For programs with a log of
// their own, and for tests.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);

}  // namespace facetheory
