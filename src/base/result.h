// Result<T>: a value or an Error whose code says what the caller does next.
//
// Expected outcomes ("no such item", "condition failed") are values of T, never errors; an Error means that
// the operation could not be done, or that nobody can tell whether it was. Method names follow std::expected.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace facetheory {

enum class ErrorCode {
  invalid,       // The request or the configuration is wrong: fix it, a repeat cannot help.
  unauthorized,  // Credentials are missing, wrong or not sufficient: fix them.
  unavailable,   // It certainly did not happen; try again later.
  ambiguous,     // It may have happened: read before acting on it, or repeat it under the same client token.
  corrupt,       // Stored bytes are not what was written: stop and alert.
  exhausted,     // A limit or a disk is full: make room, then try again.
  internal,      // A mistake in this program: report it.
};

std::string_view name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // Names the thing that failed and, where there is one, the remedy.
  // Says with `unavailable` and `exhausted` when it may go better, in seconds since 1970; 0: nobody knows.
  std::int64_t retry_at = 0;

  friend bool operator==(const Error&, const Error&) = default;
};

// "unavailable: connect to 127.0.0.1:8000: Connection refused"
std::string to_string(const Error& error);

// Throws std::logic_error: somebody asked for the value of a failure, or for the error of a success.
[[noreturn]] void misread_result();

// A union of its own and not std::variant: a few dozen types are results, in nearly every source, and what a variant
// of each of them brings along is a tenth of the build.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)), has_value_(true) {}
  Result(Error error) : error_(std::move(error)), has_value_(false) {}

  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : has_value_(other.has_value_) {
    if (has_value_) {
      new (&value_) T(std::move(other.value_));
    } else {
      new (&error_) Error(std::move(other.error_));
    }
  }
  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
      : has_value_(other.has_value_) {
    if (has_value_) {
      new (&value_) T(other.value_);
    } else {
      new (&error_) Error(other.error_);
    }
  }
  Result& operator=(Result other) noexcept {
    static_assert(std::is_nothrow_move_constructible_v<T>, "else an exception would leave nothing behind");
    destroy();
    new (this) Result(std::move(other));
    return *this;
  }
  ~Result() { destroy(); }

  bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }

  T& value() & { return need(has_value_), value_; }
  const T& value() const& { return need(has_value_), value_; }
  T&& value() && { return need(has_value_), std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return need(!has_value_), error_; }
  const Error& error() const& { return need(!has_value_), error_; }
  Error&& error() && { return need(!has_value_), std::move(error_); }

 private:
  static void need(bool right) {
    if (!right) [[unlikely]]
      misread_result();
  }
  void destroy() {
    if (has_value_) {
      value_.~T();
    } else {
      error_.~Error();
    }
  }

  union {
    T value_;      // NOLINT(readability-identifier-naming): a member of the class like any other
    Error error_;  // NOLINT(readability-identifier-naming)
  };
  bool has_value_;
};

// Success carries nothing: `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }

  Error& error() & { return need_failure(), error_; }
  const Error& error() const& { return need_failure(), error_; }
  Error&& error() && { return need_failure(), std::move(error_); }

 private:
  void need_failure() const {
    if (!failed_) [[unlikely]]
      misread_result();
  }

  Error error_;
  bool failed_ = false;
};

}  // namespace facetheory
