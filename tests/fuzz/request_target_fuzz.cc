// Input: a byte that says whether the peer is trusted; a line with the target; header fields.
//
// What is taken is in normal form: whoever sends it again asks for the same; and no reader, however he decodes, comes
// out of the path's folder.
#include <algorithm>
#include <string>

#include "facetheory/base/shown_text.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/rules/request_target.h"
#include "facetheory/site/route.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

bool is_text_of_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return is_control_character(c) || c == ' ' || static_cast<unsigned char>(c) >= 0x80;
  });
}

void require_normal_path(const std::string& path) {
  require(path.starts_with('/') && is_text_of_one_line(path), "a path begins with a slash and is plain text");
  require(path.find_first_of("?#") == std::string::npos, "a path ends before query and fragment");
  const auto again = normalise_path(path);
  require(again && *again == path, "a normal path stays as it is");
  std::string decoded = decode_percent(path);
  std::replace(decoded.begin(), decoded.end(), '\\', '/');
  for (std::string_view segment : split(decoded, "/")) {
    segment = segment.substr(0, segment.find(';'));
    require(segment != "." && segment != "..", "no segment leads elsewhere, however it is decoded");
  }
  require(std::none_of(decoded.begin(), decoded.end(), is_control_character),
          "no control character is hidden");
}

void require_normal_parts(std::string_view text) {
  if (const auto path = normalise_path(text)) {
    require_normal_path(*path);
    require(decode_percent(*path) == decode_percent(text), "a normal path means the same");
  }
  if (const auto query = normalise_query(text)) {
    const auto again = normalise_query(*query);
    require(again && *again == *query && is_text_of_one_line(*query), "a normal query stays as it is");
    require(decode_percent(*query) == decode_percent(text), "a normal query means the same");
  }
  if (const auto host = normalise_host(text)) {
    const auto again = normalise_host(*host);
    require(again && *again == *host, "a normal host stays as it is");
    require(host->find_first_of("/\\?#@ ") == std::string::npos && is_text_of_one_line(*host),
            "a host is a host");
    require(without_port(*host).size() <= host->size(), "a port follows a host");
  }
}

}  // namespace

void fuzz_request_target(std::string_view bytes) {
  Input input(bytes);
  const bool trusted = (input.byte() & 1) != 0;
  const std::string_view target = input.line();
  const Headers headers = headers_of(input.rest());
  require_normal_parts(target);

  const auto read = read_target(target, headers, trusted);
  if (!read) {
    require(!read.error().message.empty(), "a refusal says why");
    return;
  }
  require(read->scheme == "http" || (trusted && read->scheme == "https"),
          "a scheme is told by whom we trust");
  require_normal_path(read->path);
  require(read->query.find('#') == std::string::npos, "there is no fragment");
  const auto host = normalise_host(read->host);
  require(host && *host == read->host, "the host is in normal form");
  const std::string_view own_port = read->scheme == "https" ? ":443" : ":80";
  require(read->host.starts_with('[') || !read->host.ends_with(own_port),
          "the scheme's own port is left out");

  Headers again{{"Host", read->host}, {"X-Forwarded-Proto", read->scheme}};
  const auto same = [&](const std::string& text) {
    const auto other = read_target(text, again, trusted);
    return other && other->scheme == read->scheme && other->host == read->host && other->path == read->path &&
           other->query == read->query;
  };
  require(same(read->query.empty() ? read->path : read->path + "?" + read->query),
          "sent again it asks for the same");
  require(same("http://" + read->host + read->origin_form()), "in absolute form it asks for the same");
}

}  // namespace facetheory::fuzz
