#include "facetheory/http/origin.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <boost/asio/ip/address_v6.hpp>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

std::string authority_of(const Origin& origin, std::string_view host) {
  std::string authority(host);
  if (host.find(':') != std::string_view::npos) authority = "[" + authority + "]";
  if (origin.port != (origin.tls ? 443 : 80)) authority += ":" + std::to_string(origin.port);
  return authority;
}

}  // namespace

Result<Origin> parse_origin(std::string_view url) {
  const auto refused = [](std::string why) {
    return Error{ErrorCode::invalid, std::move(why) + "; an endpoint looks like http://127.0.0.1:8000"};
  };
  const std::string quoted = "\"" + std::string(url) + "\"";
  const std::size_t colon = url.find("://");
  const std::size_t begin = colon == std::string_view::npos ? 0 : colon + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  std::string_view authority = url.substr(begin, end - begin);
  const std::string_view rest = url.substr(end);
  // Checked first, so that no other message repeats a password.
  if (authority.find('@') != std::string_view::npos) {
    return refused("an endpoint URL must not hold a user name or password");
  }

  Origin origin;
  const std::string scheme = lower_case(url.substr(0, colon == std::string_view::npos ? 0 : colon));
  if (scheme == "https") {
    origin.tls = true;
  } else if (scheme != "http") {
    return refused(quoted + " must begin with http:// or https://");
  }
  if (rest.find_first_of("?#") != std::string_view::npos)
    return refused(quoted + " must not have a query or fragment");
  if (!rest.empty() && rest != "/") return refused(quoted + " must not have a path");

  const bool bracketed = authority.starts_with('[');
  const std::size_t host_end = bracketed ? std::min(authority.find(']'), authority.size())
                                         : std::min(authority.find(':'), authority.size());
  origin.host = lower_case(bracketed ? authority.substr(1, host_end - 1) : authority.substr(0, host_end));
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  boost::system::error_code no_address;
  if (bracketed) boost::asio::ip::make_address_v6(origin.host, no_address);
  // Asio reads an address up to a NUL, and takes any text for its zone ("fe80::1%eth0").
  const std::size_t zone = bracketed ? origin.host.find('%') : std::string::npos;
  std::string name = origin.host;
  if (zone != std::string::npos) name.erase(zone, 1);
  if (bracketed) std::erase(name, ':');
  if (no_address || origin.host.empty() || (bracketed && host_end == authority.size()) ||
      zone == origin.host.size() - 1 || name.find_first_not_of(kNameCharacters) != std::string::npos) {
    return refused(quoted + " names no host");
  }
  authority.remove_prefix(host_end + (bracketed ? 1 : 0));
  origin.port = origin.tls ? 443 : 80;
  if (!authority.empty()) {
    const char* last = authority.data() + authority.size();
    const auto [stop, bad] = std::from_chars(authority.data() + 1, last, origin.port);
    if (authority.front() != ':' || bad != std::errc() || stop != last || origin.port == 0) {
      return refused(quoted + " has a port that is not 1 to 65535");
    }
  }
  return origin;
}

std::string host_field(const Origin& origin) {
  return authority_of(origin, std::string_view(origin.host).substr(0, origin.host.find('%')));
}

std::string url_of(const Origin& origin) {
  return (origin.tls ? "https://" : "http://") + authority_of(origin, origin.host);
}

}  // namespace facetheory
