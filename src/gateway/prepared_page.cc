#include "facetheory/gateway/prepared_page.h"

#include <algorithm>
#include <utility>

#include "facetheory/http/field_values.h"
#include "facetheory/http/http_date.h"
#include "facetheory/rules/cache_control.h"
#include "facetheory/rules/replay.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

// Below it, copying takes no longer than lending.
constexpr std::size_t kLeastFixed = 16 << 10;

}  // namespace

BodyMetadata stored_metadata(StoreDecision decision, int status, const Headers& request, int minor_version) {
  BodyMetadata metadata;
  metadata.status = status;
  metadata.content_type = std::move(decision.replayed.content_type);
  metadata.headers = std::move(decision.replayed.headers);
  if (!decision.vary.empty())
    metadata.headers.emplace_back(kVariantField, variant_key(decision.vary, request));
  if (decision.revalidate == 0)
    metadata.headers.emplace_back(kWindowField, std::to_string(decision.lifetime - decision.age));
  if (minor_version == 0) metadata.headers.emplace_back(kReceivedField, "1.0");
  return metadata;
}

PreparedPage::PreparedPage(Body body) : Body(std::move(body)) {
  // Somebody may have changed the bytes since they were read.
  if (on_disk && !on_disk->are(bytes)) on_disk.reset();
  bytes.shrink_to_fit();  // Stores read into buffers that are larger, and cost() counts what is needed.
  Headers stored;
  for (const auto& [name, value] : metadata.headers)
    stored.add(name, value);
  const EffectiveControl effective = effective_control(stored, StorePolicy().targeted);
  stale = stale_rules(effective, StorePolicy());
  if (const auto left = stored.get(kWindowField)) {
    window_closed = true;
    overdue = parse_delta_seconds(left->substr(left->starts_with('-') ? 1 : 0)).value_or(0);
  }
  if (const auto text = stored.get("age")) age = parse_delta_seconds(*text).value_or(0);
  if (const auto text = stored.get("date")) date = parse_http_date(*text, 0).value_or(0);
  if (const auto lifetime = named_lifetime(effective, stored, date)) granted = lifetime->seconds - age;
  if (const auto text = stored.get("last-modified")) last_modified = parse_http_date(*text, date);
  vary = vary_names(stored).value_or(std::vector<std::string>{});
  variant = stored.get(kVariantField).value_or("");
  if (stored.get(kReceivedField)) minor_version = 0;

  const bool coded_already = stored.get("content-encoding").has_value();
  may_be_coded = metadata.status == 200 && !coded_already && !effective.control.no_transform &&
                 !parse_cache_control(stored).no_transform && is_compressible(metadata.content_type);
  compressible = may_be_coded && bytes.size() >= kLeastBytesToCompress;

  if (!metadata.content_type.empty()) sent.add("Content-Type", metadata.content_type);
  std::string varies;
  for (const auto& [name, value] : metadata.headers) {
    const bool ours = name == kVariantField || name == kWindowField || name == kReceivedField;
    if (!sent_to_clients(name) || ours || name == "date") continue;
    if (name == "vary") {
      varies += (varies.empty() ? "" : ", ") + value;
      continue;
    }
    sent.add(name, value);
    if (sent_with_not_modified(name)) sent_if_unmodified.add(name, value);
  }
  const bool told = std::find(vary.begin(), vary.end(), "accept-encoding") != vary.end();
  if (compressible && !told) varies += varies.empty() ? "Accept-Encoding" : ", Accept-Encoding";
  if (!varies.empty()) {
    sent.add("Vary", varies);
    sent_if_unmodified.add("Vary", varies);
  }
  // Not an allocation of its own: it lives as long as the page.
  coded_[static_cast<std::size_t>(Coding::identity)] =
      std::shared_ptr<const std::string>(std::shared_ptr<void>(), &bytes);
}

std::shared_ptr<const std::string> PreparedPage::coded(Coding coding) const {
  const std::lock_guard lock(mutex_);
  return coded_[static_cast<std::size_t>(coding)];
}

std::shared_ptr<const std::string> PreparedPage::add_coded(Coding coding, std::string made) const {
  auto added = std::make_shared<const std::string>(std::move(made));
  const std::lock_guard lock(mutex_);
  auto& slot = coded_[static_cast<std::size_t>(coding)];
  if (!slot) slot = std::move(added);
  return slot;
}

std::shared_ptr<const FixedBytes> PreparedPage::fixed(Coding coding, FixedMemory& memory) const {
  const std::lock_guard lock(mutex_);
  const auto& form = coded_[static_cast<std::size_t>(coding)];
  auto& fixed = fixed_[static_cast<std::size_t>(coding)];
  if (!fixed && form && form->size() >= kLeastFixed) fixed = memory.copy_of(*form);
  return fixed;
}

std::size_t PreparedPage::cost() const {
  std::size_t fields = metadata.content_type.size();
  for (const auto& [name, value] : metadata.headers)
    fields += name.size() + value.size();
  constexpr std::size_t kObject = 1024;
  const std::size_t forms = compressible ? bytes.size() * 2 : bytes.size();
  return kObject + 4 * fields + forms;
}

}  // namespace facetheory
