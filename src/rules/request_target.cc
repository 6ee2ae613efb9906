#include "facetheory/rules/request_target.h"

#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/normal_form.h"

namespace facetheory {
namespace {

Error bad_target(std::string message) {
  return {ErrorCode::invalid, std::move(message)};
}

Result<std::string> forwarded_scheme(const Headers& headers) {
  const auto text = combined(headers, "x-forwarded-proto");
  if (!text) return std::string("http");
  std::string scheme;
  ListElements members(*text);
  while (const auto member = members.next())
    scheme = lower_case(*member);
  if (scheme != "http" && scheme != "https") return bad_target("X-Forwarded-Proto is neither http nor https");
  return scheme;
}

}  // namespace

std::string RequestTarget::origin() const {
  return scheme + "://" + host;
}

std::string RequestTarget::origin_form() const {
  return query.empty() ? path : path + "?" + query;
}

std::string RequestTarget::sent_form() const {
  return query.empty() ? sent_path : sent_path + "?" + query;
}

Result<RequestTarget> read_target(std::string_view target, const Headers& headers, bool trusted,
                                  std::string_view default_host) {
  RequestTarget read;
  std::string_view authority;
  if (!target.starts_with('/')) {
    const std::size_t colon = target.find("://");
    read.scheme = lower_case(target.substr(0, colon));
    if (colon == std::string_view::npos || (read.scheme != "http" && read.scheme != "https"))
      return bad_target("the target begins neither with '/' nor with http://");
    target.remove_prefix(colon + std::string_view("://").size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    authority = target.substr(0, end);
    target.remove_prefix(end);
    if (authority.find('@') != std::string_view::npos) return bad_target("the target names a user");
    if (authority.empty()) return bad_target("the target names no host");
  } else {
    authority = trimmed(headers.get("host").value_or(default_host));
  }
  if (trusted) {
    auto scheme = forwarded_scheme(headers);
    if (!scheme) return std::move(scheme).error();
    read.scheme = *std::move(scheme);
  } else {
    read.scheme = "http";  // What a stranger writes into an absolute target does not make it TLS.
  }
  auto host = normalise_host(authority);
  if (!host) return std::move(host).error();
  read.host = *std::move(host);
  // The page is the same with and without the scheme's own port, so the origin must not be shown which one was asked
  // for.
  const std::string_view own_port = read.scheme == "https" ? ":443" : ":80";
  if (without_port(read.host).size() + own_port.size() == read.host.size() && read.host.ends_with(own_port))
    read.host.resize(read.host.size() - own_port.size());
  if (target.find('#') != std::string_view::npos)
    return bad_target("the target has a fragment, which is the client's own");

  const std::size_t question = std::min(target.find('?'), target.size());
  read.sent_path = question == 0 ? "/" : target.substr(0, question);
  auto path = normalise_path(read.sent_path);
  if (!path) return std::move(path).error();
  read.path = *std::move(path);
  read.query = target.substr(std::min(question + 1, target.size()));
  return read;
}

}  // namespace facetheory
