#include "facetheory/isr/page.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "facetheory/base/key_text.h"
#include "facetheory/base/sha256.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

constexpr std::string_view kTenantPrefix = "TENANT#";
constexpr std::string_view kCachePrefix = "CACHE#";
constexpr std::string_view kTagPrefix = "TAG#";
constexpr std::size_t kHashDigits = 64;

bool is_cache_key_hash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string tenant_prefix(std::string_view tenant) {
  if (tenant.empty()) return {};
  return std::string(kTenantPrefix) + std::string(tenant) + "#";
}

struct PageKeyParts {
  std::string_view tenant;  // The one in the prefix; empty: there is no prefix.
  std::string_view key;     // What follows "CACHE#".
};

// Empty unless the pk has the shape of a page's. The tenant ends at the first '#', whatever follows.
std::optional<PageKeyParts> split_page_pk(std::string_view pk) {
  PageKeyParts parts;
  if (pk.starts_with(kTenantPrefix)) {
    pk.remove_prefix(kTenantPrefix.size());
    const std::size_t end = pk.find('#');
    if (end == 0 || end == std::string_view::npos) return std::nullopt;
    parts.tenant = pk.substr(0, end);
    pk.remove_prefix(end + 1);
  }
  if (!pk.starts_with(kCachePrefix)) return std::nullopt;
  parts.key = pk.substr(kCachePrefix.size());
  if (parts.key.empty()) return std::nullopt;
  return parts;
}

Error too_long_for_key(std::string_view what, std::string_view text, std::size_t most,
                       std::string_view remedy) {
  return {ErrorCode::invalid, std::string(what) + " " + quoted_for_message(text) + " has " +
                                  std::to_string(text.size()) + " bytes, more than " + std::to_string(most) +
                                  "; " + std::string(remedy)};
}

Error no_pages_pk(std::string_view pk, std::string_view why) {
  return {ErrorCode::invalid, "partition key " + quoted_for_message(pk) + " " + std::string(why) +
                                  "; a page's is CACHE#<hash>, TENANT#<tenant>#CACHE#<hash> or "
                                  "CACHE#<tenant>::/<route>"};
}

}  // namespace

Result<Page> page_of(std::string_view cache_key, std::string_view tenant) {
  if (cache_key.empty()) {
    return Error{ErrorCode::invalid, "the cache key is empty; name the page, for example /news/42"};
  }
  if (cache_key.size() > kMaxCacheKeyBytes) {
    return too_long_for_key("cache key", cache_key, kMaxCacheKeyBytes, "use a hash of it as the cache key");
  }
  if (auto text = check_key_text("cache key", cache_key); !text) return text.error();
  if (auto checked = check_tenant(tenant); !checked) return checked.error();
  return Page{.pk = tenant_prefix(tenant) + std::string(kCachePrefix) + sha256_hex(cache_key),
              .tenant = std::string(tenant),
              .cache_key = std::string(cache_key)};
}

Result<Page> page_of_pk(std::string_view pk) {
  if (pk.empty()) return no_pages_pk(pk, "is empty");
  if (pk.size() > kMaxPkBytes) {
    return no_pages_pk(pk, "has " + std::to_string(pk.size()) + " bytes, more than a table's " +
                               std::to_string(kMaxPkBytes));
  }
  if (auto text = check_key_text("partition key", pk); !text) return text.error();
  const auto parts = split_page_pk(pk);
  if (!parts) return no_pages_pk(pk, "is not a page's");

  std::string_view tenant = parts->tenant;
  if (!tenant.empty()) {
    // A key that goes on with '#' might be the rest of a tenant's name that some writer did not check.
    if (parts->key.find('#') != std::string_view::npos)
      return no_pages_pk(pk, "has '#' in a part that may not have it");
  } else if (const std::size_t end = parts->key.find(kTenantEnd); end != std::string_view::npos) {
    tenant = parts->key.substr(0, end);
  }
  if (auto checked = check_tenant(tenant); !checked) {
    return no_pages_pk(pk, "is refused: " + checked.error().message);
  }
  return Page{.pk = std::string(pk), .tenant = std::string(tenant)};
}

std::string to_string(const Page& page) {
  if (page.cache_key.empty()) return page.pk;
  return page.tenant.empty() ? page.cache_key : page.cache_key + " of tenant " + page.tenant;
}

Result<void> check_tenant(std::string_view tenant) {
  if (tenant.size() > kMaxTenantBytes) {
    return too_long_for_key("tenant", tenant, kMaxTenantBytes, "give it a shorter name");
  }
  if (auto text = check_key_text("tenant", tenant); !text) return text;
  if (tenant.find('#') != std::string_view::npos) {
    return Error{ErrorCode::invalid, "tenant " + quoted_for_message(tenant) +
                                         " contains '#', which separates the parts of a partition key; "
                                         "give it a name without"};
  }
  return {};
}

Result<void> check_tag(std::string_view tag) {
  if (tag.empty()) {
    return Error{ErrorCode::invalid,
                 "a tag is empty; give it a name (all pages of a tenant carry the tenant as a tag)"};
  }
  if (tag.size() > kMaxTagBytes) return too_long_for_key("tag", tag, kMaxTagBytes, "give it a shorter name");
  return check_key_text("tag", tag);
}

bool is_same_tenant(std::string_view one, std::string_view other) {
  const auto is_none = [](std::string_view tenant) { return tenant.empty() || tenant == kDefaultTenant; };
  return one == other || (is_none(one) && is_none(other));
}

std::string tag_pk(std::string_view tenant, std::string_view tag) {
  if (tenant == kDefaultTenant) tenant = {};
  return tenant_prefix(tenant) + std::string(kTagPrefix) + std::string(tag);
}

std::vector<std::string> mark_pks(std::string_view tenant, std::string_view tag) {
  std::vector<std::string> pks{tag_pk(tenant, tag)};
  if (rows_of_mark(tenant) > 1)
    pks.push_back(tenant_prefix(tenant) + std::string(kTagPrefix) + std::string(tag));
  return pks;
}

std::string body_folder(const Page& page) {
  if (!page.cache_key.empty()) return sha256_hex(page.cache_key).substr(0, kBodyFolderDigits);
  const auto parts = split_page_pk(page.pk);
  const std::string_view key = parts ? parts->key : std::string_view(page.pk);
  return is_cache_key_hash(key) ? std::string(key.substr(0, kBodyFolderDigits))
                                : sha256_hex(key).substr(0, kBodyFolderDigits);
}

}  // namespace facetheory
