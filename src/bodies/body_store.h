// BodyStore: immutable objects under unique keys; the bytes of pages.
//
// A key is written once and never again, so that a body may be cached forever and a lost race costs one
// orphan, never a wrong page. A body carries its own metadata, so that it can be served even when somebody
// else's META write dropped our attributes. Every store passes the same conformance suite
// (tests/conformance). May be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/disk_use.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/body.h"

namespace facetheory {

struct BodyEntry {
  std::string key;         // It is what `write` was given, without the store's prefix.
  std::uint64_t size = 0;  // Metadata does not count.
  WallTime modified_at;

  friend bool operator==(const BodyEntry&, const BodyEntry&) = default;
};

struct BodyPage {
  std::vector<BodyEntry> entries;
  std::optional<std::string> next;  // Give it to the next call of `list`; empty: that was all. Opaque.
};

// The same everywhere but for the metadata, so that no test on one store hides what another refuses; beyond them is
// `invalid`.
inline constexpr std::size_t kMaxKeyBytes = 1024;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 20;
// S3 counts the metadata so (metadata_fields.h) and stores no more beside an object. Stores of our own have room for
// more, of which readers of every version can read the whole.
inline constexpr std::size_t kMaxMetadataBytes = 2048;
inline constexpr std::size_t kMaxOwnMetadataBytes = std::size_t{32} << 10;

// A body that is nobody's: who wants to know whether a store answers reads it, and who wants to know whether it can be
// written writes it, without any bytes, and removes it. A crash in between leaves it, until the next who tries.
inline constexpr std::string_view kProbedKey = "readyz";

// A key is UTF-8 without control characters, of segments between slashes, none of them empty, "." or "..".
class BodyStore {
 public:
  virtual ~BodyStore() = default;

  // Stores the body under a fresh key; durable before it returns. Repeating a write with the same bytes
  // succeeds; the same key with other bytes is `invalid` and changes nothing. After `ambiguous` the body may
  // or may not be there.
  Task<Result<void>> write(std::string key, Body body);

  // Reads what a row's s3_key names. Missing is an empty optional; `corrupt` means that the bytes are not
  // those whose SHA-256 was recorded.
  Task<Result<std::optional<Body>>> read(std::string key);

  // Removes the body; one that is not there is no error.
  Task<Result<void>> remove(std::string key);
  // The same for many, at the price of few where the store can: an embedded table flushes once for a hundred. After an
  // error some of them may be left.
  Task<Result<void>> remove_all(std::vector<std::string> keys);

  // What rows carry as s3_key of that body, so that readers in every language find it: with S3 the complete key
  // of the object. `read` takes it, and the key itself.
  virtual std::string reference(std::string_view key) const { return std::string(key); }

  // What `read` takes for exactly the body that was written here under that key: not for one under another prefix, as
  // it looks for where a row's s3_key names none here.
  virtual std::string address(std::string_view key) const { return reference(key); }

  // Whether a body with this metadata could be written; `invalid` says what to change.
  Result<void> check(BodyMetadata metadata) const;

  // What a body's metadata may take in this store; as kMaxMetadataBytes is counted.
  virtual std::size_t max_metadata_bytes() const { return kMaxMetadataBytes; }

  // What the store takes on a disk of this machine; empty: it is not on one.
  virtual Task<Result<std::optional<DiskUse>>> disk_use();

  // Lists up to `limit` (1 to 1000) entries in an order of the store's own, each body that existed throughout
  // exactly once.
  Task<Result<BodyPage>> list(std::optional<std::string> after, std::size_t limit);

 protected:
  // A store in front of another uses these, so that bytes are validated and hashed once. What is read so is not
  // verified yet.
  static Task<Result<void>> write_to(BodyStore& other, std::string key, Body body);
  static Task<Result<std::optional<Body>>> read_from(BodyStore& other, std::string key);

 private:
  // Called with what validation let through.
  virtual Task<Result<void>> do_write(std::string key, Body body) = 0;
  virtual Task<Result<std::optional<Body>>> do_read(std::string key) = 0;
  virtual Task<Result<void>> do_remove(std::string key) = 0;
  // The default removes one after the other.
  virtual Task<Result<void>> do_remove_all(std::vector<std::string> keys);
  virtual Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) = 0;
};

}  // namespace facetheory
