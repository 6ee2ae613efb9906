// Page: which page an operation is about; how its partition key is made of a tenant and a cache key.
//
//   CACHE#<sha256 hex of the cache key>                      no tenant
//   TENANT#<tenant>#CACHE#<sha256 hex of the cache key>      a tenant's page
//   CACHE#<tenant>::<route>?<params and query>               FaceTheory's own (facetheory_key.h)
//
// A tenant's name cannot contain '#', so that no tenant, tag or key can spell its way into another partition. In
// FaceTheory's form it ends at the first "::/".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory {

inline constexpr std::size_t kMaxCacheKeyBytes = std::size_t{16} * 1024;
inline constexpr std::size_t kMaxTenantBytes = 512;
inline constexpr std::size_t kMaxTagBytes = 512;
inline constexpr std::size_t kMaxTags = 100;           // of one page
inline constexpr std::string_view kTenantEnd = "::/";  // with the slash that begins the route

struct Page {
  std::string pk;
  std::string tenant = {};     // Empty: none.
  std::string cache_key = {};  // The one whose hash is in the pk; empty: only the pk is known.

  friend bool operator==(const Page&, const Page&) = default;
};

// The page of a cache key (UTF-8, no control characters). `invalid` names what is wrong with it.
Result<Page> page_of(std::string_view cache_key, std::string_view tenant = {});

// The page of a partition key in one of the forms above, or with something else than a hash in its place, as other
// writers may have it (without '#' where a tenant stands before it). What is no page's is `invalid`.
Result<Page> page_of_pk(std::string_view pk);

// "/news/42 of tenant acme", or the pk where the cache key is not known.
std::string to_string(const Page& page);

// The empty tenant is fine: none. The empty tag is `invalid`: no page carries it, it is the tenant as a whole.
Result<void> check_tenant(std::string_view tenant);
Result<void> check_tag(std::string_view tag);

// What FaceTheory writes where an application has no tenants. An invalidation means the same pages by it as by none.
inline constexpr std::string_view kDefaultTenant = "default";
bool is_same_tenant(std::string_view one, std::string_view other);

// Where a tag's row stands: "TAG#<tag>" or, of a tenant other than `default`, "TENANT#<tenant>#TAG#<tag>". The empty
// tag is the tenant as a whole, which all its pages carry without saying so. Both were checked.
std::string tag_pk(std::string_view tenant, std::string_view tag);

// The rows in which marks stand that concern a tenant's pages; the first is the one that is written. Before `default`
// counted as none, its marks stood in "TENANT#default#TAG#<tag>": they still concern its pages, and no others.
std::vector<std::string> mark_pks(std::string_view tenant, std::string_view tag);
inline std::size_t rows_of_mark(std::string_view tenant) {
  return tenant == kDefaultTenant ? 2 : 1;
}

// The folder of the page's bodies: the first 24 hex digits of its cache key's SHA-256. In a raw pk the cache key is
// what follows "CACHE#".
inline constexpr std::size_t kBodyFolderDigits = 24;
std::string body_folder(const Page& page);

}  // namespace facetheory
