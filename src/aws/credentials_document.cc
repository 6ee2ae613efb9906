#include "facetheory/aws/credentials_document.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace facetheory {
namespace {

Error lacking(std::string what) {
  return {ErrorCode::unauthorized, std::move(what)};
}

// "2024-01-31T23:59:59Z", with or without a fraction; AWS gives no other zone.
std::optional<WallTime> parse_expiration(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second,
                  &used) != 6) {
    return std::nullopt;
  }
  std::string_view rest = text.substr(static_cast<std::size_t>(used));
  if (rest.starts_with('.'))
    rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  if (rest != "Z" && rest != "+00:00" && rest != "+0000") return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return WallTime(std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                  std::chrono::seconds(second));
}

}  // namespace

Result<Credentials> parse_credentials_document(std::string_view text, const std::string& from) {
  boost::system::error_code failed;
  const boost::json::value document = boost::json::parse(text, failed);
  if (failed || !document.is_object()) return lacking(from + " did not answer with a JSON object");
  const auto member = [&](std::string_view key) -> std::string {
    const boost::json::value* found = document.as_object().if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
  };
  if (const std::string code = member("Code"); !code.empty() && code != "Success") {
    return lacking(from + " answered " + code + ": " + member("Message"));
  }
  Credentials credentials{member("AccessKeyId"), member("SecretAccessKey"), member("Token"), std::nullopt};
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty()) {
    return lacking(from + " answered without AccessKeyId and SecretAccessKey");
  }
  if (const std::string expiration = member("Expiration"); !expiration.empty()) {
    credentials.expires_at = parse_expiration(expiration);
    if (!credentials.expires_at)
      return lacking(from + " answered with an Expiration that is no time: " + expiration);
  }
  return credentials;
}

}  // namespace facetheory
