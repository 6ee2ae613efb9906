// Result<T>: a value or an Error whose code says what the caller does next.
//
// Expected outcomes ("no such item", "condition failed") are values of T, never errors; an Error means that
// the operation could not be done, or that nobody can tell whether it was. Method names follow std::expected.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

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
  std::int64_t retry_at =
      0;  // Of `unavailable`: when it may go better, in seconds since 1970; 0: nobody knows.

  friend bool operator==(const Error&, const Error&) = default;
};

// "unavailable: connect to 127.0.0.1:8000: Connection refused"
std::string to_string(const Error& error);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return assert(has_value()), std::get<0>(state_); }
  const T& value() const& { return assert(has_value()), std::get<0>(state_); }
  T&& value() && { return assert(has_value()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return assert(!has_value()), std::get<1>(state_); }
  const Error& error() const& { return assert(!has_value()), std::get<1>(state_); }
  Error&& error() && { return assert(!has_value()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// Success carries nothing: `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }

  Error& error() & { return assert(failed_), error_; }
  const Error& error() const& { return assert(failed_), error_; }
  Error&& error() && { return assert(failed_), std::move(error_); }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace facetheory
