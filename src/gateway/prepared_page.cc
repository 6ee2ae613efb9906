#include "facetheory/gateway/prepared_page.h"

#include <utility>

#include "facetheory/base/letter_case.h"
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

PreparedPage::PreparedPage(Body body) : KeptBody(std::move(body)) {
  Headers stored;
  each_header([&](std::string_view name, std::string_view value) {
    stored.add(std::string(name), std::string(value));
  });
  const EffectiveControl effective = effective_control(stored, StorePolicy().targeted);
  const StaleRules stale = stale_rules(effective, StorePolicy());
  stale_forbidden_ = stale.forbidden;
  while_revalidate_ = stale.while_revalidate.value_or(kNotGiven);
  if_error_ = stale.if_error.value_or(kNotGiven);
  if (const auto left = stored.get(kWindowField)) {
    window_closed_ = true;
    overdue_ = static_cast<std::uint32_t>(
        parse_delta_seconds(left->substr(left->starts_with('-') ? 1 : 0)).value_or(0));
  }
  if (const auto text = stored.get("age")) age_ = parse_delta_seconds(*text).value_or(0);
  if (const auto text = stored.get("date")) date_ = parse_http_date(*text, 0).value_or(0);
  if (const auto lifetime = named_lifetime(effective, stored, date_)) granted_ = lifetime->seconds - age_;
  if (const auto text = stored.get("last-modified"))
    last_modified_ = parse_http_date(*text, date_).value_or(kNotGiven);
  varies_ = stored.get("vary").has_value();
  received_in_1_0_ = stored.get(kReceivedField).has_value();

  const bool coded_already = stored.get("content-encoding").has_value();
  may_be_coded_ = status() == 200 && !coded_already && !effective.control.no_transform &&
                  !parse_cache_control(stored).no_transform && is_compressible(content_type());
}

PreparedPage::~PreparedPage() {
  delete forms_.load(std::memory_order_acquire);
}

StaleRules PreparedPage::stale() const {
  return {stale_forbidden_, given(while_revalidate_), given(if_error_)};
}

std::vector<std::string> PreparedPage::vary() const {
  if (!varies_) return {};
  Headers stored;
  each_header([&](std::string_view name, std::string_view value) {
    if (same_text(name, "vary")) stored.add("vary", std::string(value));
  });
  return vary_names(stored).value_or(std::vector<std::string>{});
}

std::string_view PreparedPage::variant() const {
  std::optional<std::string_view> found;
  each_header([&](std::string_view name, std::string_view value) {
    if (!found && same_text(name, kVariantField)) found = value;
  });
  return found.value_or("");
}

Headers PreparedPage::sent(bool unmodified) const {
  Headers sent;
  if (!unmodified && !content_type().empty()) sent.add("Content-Type", std::string(content_type()));
  std::string varies;
  each_header([&](std::string_view name, std::string_view value) {
    const bool ours = name == kVariantField || name == kWindowField || name == kReceivedField;
    if (!sent_to_clients(name) || ours || name == "date") return;
    if (name == "vary") {
      varies.append(varies.empty() ? "" : ", ").append(value);
    } else if (!unmodified || sent_with_not_modified(name)) {
      sent.add(std::string(name), std::string(value));
    }
  });
  if (compressible() && !contains_name(vary(), "accept-encoding"))
    varies += varies.empty() ? "Accept-Encoding" : ", Accept-Encoding";
  if (!varies.empty()) sent.add("Vary", std::move(varies));
  return sent;
}

PreparedPage::Forms& PreparedPage::forms() const {
  if (Forms* const made = forms_.load(std::memory_order_acquire)) return *made;
  auto making = std::make_unique<Forms>();
  Forms* known = nullptr;
  // Somebody else may be quicker.
  return forms_.compare_exchange_strong(known, making.get()) ? *making.release() : *known;
}

std::optional<std::string_view> PreparedPage::coded(Coding coding) const {
  if (coding == Coding::identity) return bytes();
  Forms* const made = forms_.load(std::memory_order_acquire);
  if (made == nullptr) return std::nullopt;
  const std::lock_guard lock(made->mutex);
  const auto& form = made->coded[static_cast<std::size_t>(coding)];
  return form ? std::optional<std::string_view>(*form) : std::nullopt;
}

std::string_view PreparedPage::add_coded(Coding coding, std::string made) const {
  if (coding == Coding::identity) return bytes();
  auto added = std::make_unique<const std::string>(std::move(made));
  Forms& forms = this->forms();
  const std::lock_guard lock(forms.mutex);
  auto& slot = forms.coded[static_cast<std::size_t>(coding)];
  if (!slot) slot = std::move(added);
  return *slot;
}

std::shared_ptr<const FixedBytes> PreparedPage::fixed(Coding coding, FixedMemory& memory) const {
  const auto form = coded(coding);
  if (!form || form->size() < kLeastFixed) return nullptr;
  Forms& forms = this->forms();
  const std::lock_guard lock(forms.mutex);
  auto& fixed = forms.fixed[static_cast<std::size_t>(coding)];
  if (!fixed) fixed = memory.copy_of(*form);
  return fixed;
}

std::size_t PreparedPage::cost() const {
  std::size_t memory = sizeof(PreparedPage) - sizeof(KeptBody) + KeptBody::memory();
  Forms* const made = forms_.load(std::memory_order_acquire);
  if (made == nullptr) return memory;
  memory += sizeof(Forms);
  const std::lock_guard lock(made->mutex);
  for (const auto& form : made->coded)
    memory += form ? sizeof(std::string) + allocated(form->size() + 1) : 0;
  return memory;
}

}  // namespace facetheory
