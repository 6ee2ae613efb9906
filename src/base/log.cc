#include "facetheory/base/log.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

namespace facetheory {
namespace {

std::atomic<LogLevel> threshold = LogLevel::info;

std::mutex sink_mutex;
LogSink current_sink;  // guarded by sink_mutex

spdlog::logger& stderr_logger() {
  static spdlog::logger logger("facetheory", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  return logger;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void log(LogLevel level, std::string_view message) {
  if (level < threshold.load(std::memory_order_relaxed)) return;
  LogSink sink;
  {
    const std::lock_guard lock(sink_mutex);
    sink = current_sink;
  }
  if (sink) {
    sink(level, message);
  } else {
    stderr_logger().log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
  }
}

void set_log_level(LogLevel level) {
  threshold = level;
  stderr_logger().set_level(to_spdlog(level));
}

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(sink_mutex);
  current_sink = std::move(sink);
}

}  // namespace facetheory
