// Input: a line with names of fields that are withheld; a response's fields; an empty line; those of a 304.
//
// No more of a message goes on than concerns the next reader, and doing it twice changes nothing.
#include <algorithm>
#include <string>
#include <vector>

#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"
#include "facetheory/rules/replay.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

Headers as_headers(const ReplayedHeaders& replayed) {
  Headers headers;
  if (!replayed.content_type.empty()) headers.add("content-type", replayed.content_type);
  for (const auto& [name, value] : replayed.headers)
    headers.add(name, value);
  return headers;
}

void require_storable(const ReplayedHeaders& replayed, const std::vector<std::string>& withheld) {
  for (const auto& [name, value] : replayed.headers) {
    require(is_token(name) && lower_case(std::string_view(name)) == name && is_field_value(value),
            "a stored field is well-formed");
    require(name != "content-type" && name != "set-cookie" && name != "connection" &&
                name != "transfer-encoding" && name != "content-length",
            "what concerns one answer or one connection is not stored");
    require(!contains_name(withheld, name), "what is withheld is not stored");
  }
  const ReplayedHeaders again = worth_storing(as_headers(replayed), withheld);
  require(again.headers == replayed.headers, "what is stored is worth storing");
}

}  // namespace

void fuzz_replay(std::string_view bytes) {
  Input input(bytes);
  std::vector<std::string> withheld;
  ListElements names(input.line());
  while (const auto name = names.next())
    withheld.push_back(lower_case(*name));
  const std::size_t end = std::min(input.rest().find("\n\n"), input.rest().size());
  const Headers response = headers_of(input.rest().substr(0, end));
  const Headers not_modified = headers_of(input.rest().substr(std::min(end + 2, input.rest().size())));

  const Headers on = end_to_end(response);
  require(end_to_end(on) == on, "what is end to end stays so");
  for (const std::string_view gone :
       {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-authorization"})
    require(!on.get(gone), "what concerns one connection stays there");
  for (const std::string_view guarded :
       {"host", "cookie", "authorization", "content-length", "cache-control", "set-cookie", "vary"})
    require(count_of(on, guarded) == count_of(response, guarded), "what guards a page cannot be named away");

  const ReplayedHeaders stored = worth_storing(response, withheld);
  require_storable(stored, withheld);
  const ReplayedHeaders fresh = freshened(stored, not_modified, withheld);
  require_storable(fresh, withheld);
  require(freshened(fresh, not_modified, withheld) == fresh, "the same 304 again changes nothing");
  require(freshened(stored, {}, withheld) == stored, "a 304 that says nothing changes nothing");
  for (const std::string_view name : {"content-encoding", "content-range", "content-md5"}) {
    const auto count = [&](const ReplayedHeaders& headers) {
      return std::count_if(headers.headers.begin(), headers.headers.end(),
                           [&](const auto& field) { return field.first == name; });
    };
    require(count(fresh) == count(stored), "a 304 does not say what the stored bytes are");
  }
  for (const auto& [name, value] : stored.headers)
    require(!sent_with_not_modified(name) || sent_to_clients(name), "a 304 carries no more than a 200");
}

}  // namespace facetheory::fuzz
