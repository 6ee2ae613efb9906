// The versions that were kept of a page, and going back to one of them.
//
// Rollback needs no lease, since it is wanted most when renders fail, and it pins: the page then holds still, for
// readers in every language, until it is unpinned. A pinned page ignores tags and refuses invalidation other than
// a purge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// Newest first.
Task<Result<std::vector<VersionRow>>> versions(const Isr& isr, Page page);
// One of them, read consistently; empty: it was not kept.
Task<Result<std::optional<VersionRow>>> get_version(const Isr& isr, Page page, std::string version_sk);

// The highest version that any of them carries; 0: none.
std::int64_t newest_version(const std::vector<VersionRow>& rows);

struct Pinned {
  MetaRow meta;
};
struct NoSuchVersion {};  // There may be no such page either.
using PinOutcome = std::variant<Pinned, NoSuchVersion>;

// Makes that version ("VER#...") current and pins it. A version whose body is gone is `corrupt`.
Task<Result<PinOutcome>> rollback(const Isr& isr, Page page, std::string version_sk);

// Pins what is current.
Task<Result<PinOutcome>> pin(const Isr& isr, Page page);

struct Unpinned {
  MetaRow meta;  // Stale now: the next regeneration replaces it.
};
struct NotPinned {};
using UnpinOutcome = std::variant<Unpinned, NotPinned>;

Task<Result<UnpinOutcome>> unpin(const Isr& isr, Page page);

}  // namespace facetheory
