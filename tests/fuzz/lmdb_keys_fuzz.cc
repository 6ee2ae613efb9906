// Input: a line each with pk and sk of a key, then those of another; all of it also as the bytes of a key in the file.
//
// A key is read as it was written, and keys of one partition sort as their sk do.
#include <algorithm>
#include <string>

#include "facetheory/table/lmdb_keys.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

// A short line stands for a long text, so that long keys are met early.
std::string long_text(std::string_view text, std::size_t most) {
  std::string result(text.substr(0, most));
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xf0) {
    while (result.size() < most)
      result.append(text.substr(0, most - result.size()));
  }
  return result;
}

}  // namespace

void fuzz_lmdb_keys(std::string_view bytes) {
  const LmdbKey::Parsed stored = LmdbKey::parse(bytes);
  if (stored.valid) {
    require(LmdbKey::is_row(bytes), "a row's key is in the range of rows");
    if (!stored.hashed && !stored.overflow) {
      require(LmdbKey::of({std::string(stored.pk), std::string(stored.sk)}).bytes == bytes,
              "a key that is read is the one that would be written");
    }
  }

  Input input(bytes);
  const Key a{long_text(input.line(), 2048), long_text(input.line(), 1024)};
  const Key b{long_text(input.line(), 2048), long_text(input.line(), 1024)};
  for (const Key& key : {a, b}) {
    if (key.pk.empty() || key.sk.empty()) return;
    const LmdbKey written = LmdbKey::of(key);
    require(written.bytes.size() <= 511, "a key has room in LMDB");
    require(written.bytes.starts_with(LmdbKey::partition_prefix(key.pk)), "a key begins with its partition");
    require(written.bytes >= LmdbKey::first(), "a key sorts behind the first");
    require(LmdbKey::partition_of(written.bytes) == LmdbKey::partition_prefix(key.pk),
            "which can be told from it");
    const LmdbKey::Parsed parsed = LmdbKey::parse(written.bytes);
    require(parsed.valid && parsed.hashed == written.hashed && parsed.overflow == written.overflow,
            "a key is read");
    require(parsed.hashed || parsed.pk == key.pk, "with its pk");
    require(parsed.sk == std::string_view(key.sk).substr(0, kInlineSkBytes), "and the beginning of its sk");
    const std::string end = end_of_prefix(LmdbKey::partition_prefix(key.pk));
    require(end.empty() || written.bytes < end, "a partition ends behind its keys");
  }
  const Key same{a.pk, b.sk};
  const std::string of_a = LmdbKey::of(a).bytes;
  const std::string of_same = LmdbKey::of(same).bytes;
  if (of_a != of_same) require((of_a < of_same) == (a.sk < same.sk), "keys of a partition sort as their sk");
  if (a.pk != b.pk) require(of_a != LmdbKey::of(b).bytes, "other partitions have other keys");
}

}  // namespace facetheory::fuzz
