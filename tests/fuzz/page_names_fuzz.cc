// Input: a line each with a tenant, a cache key, a tag and a partition key of somebody else; then lines "name=value"
// for FaceTheory's own key.
//
// No name can spell its way into another's partition: what a key was made of can be read from it.
#include <algorithm>
#include <string>
#include <vector>

#include "facetheory/base/shown_text.h"
#include "facetheory/isr/body_key.h"
#include "facetheory/isr/facetheory_key.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/version_id.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

void require_page(const Page& page) {
  const auto again = page_of_pk(page.pk);
  require(again && again->pk == page.pk && again->tenant == page.tenant,
          "a page's tenant can be read from its key");
  const std::string folder = body_folder(page);
  require(
      folder.size() == kBodyFolderDigits && folder.find_first_not_of("0123456789abcdef") == std::string::npos,
      "a page has a folder");
  require(body_folder(*again) == folder, "which its key alone tells");
  require(!names_our_body("", page), "nothing names nothing");
}

void require_facetheory_key(std::string_view tenant, std::string_view route, std::string_view lines) {
  FaceTheoryKey key{.tenant = std::string(tenant), .route = std::string(route)};
  Input input(lines);
  for (int i = 0; !input.rest().empty(); ++i) {
    const std::string_view line = input.line();
    const std::size_t equals = std::min(line.find('='), line.size());
    FaceTheoryKey::Pairs* const parts[] = {&key.query, &key.params, &key.cookies, &key.auth};
    parts[i % 4]->emplace_back(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  const auto page = page_of(key);
  if (!page) return;
  require_page(*page);
  require(page->tenant == tenant, "the tenant is the one that was given");
  FaceTheoryKey reordered = key;
  // Parameters of one name keep their order; so this is only the same where each name is there once.
  std::reverse(reordered.query.begin(), reordered.query.end());
  std::vector<std::string> names;
  for (const auto& [name, value] : key.query)
    names.push_back(name);
  std::sort(names.begin(), names.end());
  const bool plain = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  });
  if (plain && std::adjacent_find(names.begin(), names.end()) == names.end())
    require(page_of(reordered)->pk == page->pk, "the order of parameters makes no difference");
}

}  // namespace

void fuzz_page_names(std::string_view bytes) {
  Input input(bytes);
  const std::string_view tenant = input.line();
  const std::string_view cache_key = input.line();
  const std::string_view tag = input.line();
  const std::string_view pk = input.line();

  if (const auto page = page_of(cache_key, tenant)) {
    require(page->tenant == tenant && page->cache_key == cache_key, "a page is what it was made of");
    require_page(*page);
    const auto other = page_of(std::string(cache_key) + "x", tenant);
    require(!other || other->pk != page->pk, "another cache key is another page");
  }
  if (const auto page = page_of_pk(pk)) {
    require(page->pk == pk && check_tenant(page->tenant).has_value(),
            "a foreign page has a tenant of a good name, or none");
    require_page(*page);
  }
  if (check_tenant(tenant) && check_tag(tag)) {
    const std::string row = tag_pk(tenant, tag);
    require(!page_of_pk(row), "a tag's row is no page");
    require(row != tag_pk(tenant, ""), "and not its tenant's");
  }
  is_our_body_key(pk);
  if (const auto time = time_of_version_sk(pk)) require(*time >= 0, "a version has a time");
  require(is_utf8(quoted_for_message(pk)), "any text can be shown in a message");
  require_facetheory_key(tenant, cache_key, input.rest());
}

}  // namespace facetheory::fuzz
