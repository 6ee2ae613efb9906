#include "facetheory/rules/storing.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "facetheory/http/field_values.h"
#include "facetheory/http/http_date.h"
#include "facetheory/http/structured_fields.h"
#include "facetheory/isr/page.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

StoreDecision not_stored(std::string reason) {
  StoreDecision decision;
  decision.reason = std::move(reason);
  return decision;
}

std::optional<std::string> refusal_of_status(int status, const StorePolicy& policy) {
  const std::string code = std::to_string(status);
  if (status < 200) return "status " + code + " is not final";
  if (status == 206 || status == 304) return "status " + code + " is a part of a page or none at all";
  if (status >= 500) return "status " + code + " is a failure of the origin";
  if (status >= 400 && status != 404 && status != 410) {
    return "status " + code + " says more about one request than about the page";
  }
  if ((status == 404 && policy.not_found == std::chrono::seconds(0)) ||
      (status == 410 && policy.gone == std::chrono::seconds(0))) {
    return "the route does not store status " + code;
  }
  return std::nullopt;
}

// Whether RFC 9110, 15.1 lets a cache choose a lifetime by itself; of those that are stored here.
bool heuristically_cacheable(int status) {
  constexpr int kStatuses[] = {200, 203, 204, 300, 301, 308, 404, 410};
  return std::find(std::begin(kStatuses), std::end(kStatuses), status) != std::end(kStatuses);
}

// Statuses whose rules are known here, as must-understand asks.
bool understood(int status) {
  constexpr int kStatuses[] = {302, 303, 307};
  return heuristically_cacheable(status) ||
         std::find(std::begin(kStatuses), std::end(kStatuses), status) != std::end(kStatuses);
}

// Date, or the time of arrival where there is none that makes sense.
std::int64_t date_of(const Headers& response, std::int64_t received_at) {
  const auto text = response.get("date");
  return (text ? parse_http_date(trimmed(*text), received_at) : std::nullopt).value_or(received_at);
}

std::int64_t age_of(const Headers& response) {
  const auto text = response.get("age");
  if (!text) return 0;
  ListElements members(*text);
  return parse_delta_seconds(members.next().value_or("")).value_or(0);
}

std::optional<Lifetime> route_lifetime(int status, const StorePolicy& policy) {
  const auto& given = status == 404 ? policy.not_found : status == 410 ? policy.gone : policy.revalidate;
  if (!given) return std::nullopt;
  return Lifetime{LifetimeSource::route, std::clamp<std::int64_t>(given->count(), 0, kMaxDeltaSeconds)};
}

// `invalid` when a tag cannot be stored: an invalidation of it would miss the page.
Result<std::vector<std::string>> tags_of(const Headers& response, std::string_view origin) {
  std::vector<std::string> tags;
  for (const Headers::Field& field : response) {
    if (same_text(field.name, "cache-tag")) {
      // This is no list of quoted strings: every comma separates.
      std::string_view rest = field.value;
      while (!rest.empty()) {
        const auto comma = std::min(rest.find(','), rest.size());
        if (const auto tag = trimmed(rest.substr(0, comma)); !tag.empty()) tags.emplace_back(tag);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
    } else if (same_text(field.name, "surrogate-key")) {
      std::string_view rest = trimmed(field.value);
      while (!rest.empty()) {
        const auto space = std::min(rest.find_first_of(" \t"), rest.size());
        tags.emplace_back(rest.substr(0, space));
        rest = trimmed(rest.substr(space));
      }
    }
  }
  if (const auto groups = combined(response, "cache-groups")) {
    for (const SfMember& member : parse_sf_list(*groups).value_or(SfList{})) {
      const SfItem* item = std::get_if<SfItem>(&member);
      const auto* group = item != nullptr ? std::get_if<std::string>(&item->value) : nullptr;
      if (group != nullptr) tags.push_back(group_tag(origin, *group));
    }
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (tags.size() > kMaxTags) {
    return Error{ErrorCode::invalid, "it carries " + std::to_string(tags.size()) + " tags, and " +
                                         std::to_string(kMaxTags) + " can be kept"};
  }
  for (const std::string& tag : tags) {
    if (auto good = check_tag(tag); !good) return good.error();
  }
  return tags;
}

std::string_view source_name(LifetimeSource source) {
  switch (source) {
    case LifetimeSource::none:
      return "nothing";
    case LifetimeSource::targeted:
      return "a targeted field";
    case LifetimeSource::s_maxage:
      return "s-maxage";
    case LifetimeSource::max_age:
      return "max-age";
    case LifetimeSource::expires:
      return "Expires";
    case LifetimeSource::route:
      return "the route";
  }
  return "nothing";
}

// Whether what is stored of the response says the same of how it may be served. A field that is withheld
// (no-cache="expires", private="cache-control") would otherwise be missed when the page is judged again.
bool says_the_same(const ReplayedHeaders& kept, const Headers& response, const EffectiveControl& effective,
                   const StorePolicy& policy) {
  Headers fields;
  for (const auto& [name, value] : kept.headers)
    fields.add(name, value);
  const EffectiveControl again = effective_control(fields, policy.targeted);
  return again.control == effective.control && again.targeted == effective.targeted &&
         named_lifetime(again, fields, 0).has_value() == named_lifetime(effective, response, 0).has_value() &&
         vary_names(fields) == vary_names(response);
}

std::string reason_of(const StoreDecision& decision, bool no_cache) {
  if (no_cache) return "stored for validation only: no-cache";
  const std::string by = " by " + std::string(source_name(decision.source));
  if (decision.revalidate == 0 && decision.lifetime == 0)
    return "stored for validation only: fresh for 0 s" + by;
  const std::string age = decision.age > 0 ? ", " + std::to_string(decision.age) + " s old on request" : "";
  return "fresh for " + std::to_string(decision.lifetime) + " s" + by + age;
}

}  // namespace

EffectiveControl effective_control(const Headers& response, const std::vector<std::string>& targeted) {
  for (const std::string& name : targeted) {
    if (auto control = parse_targeted_cache_control(response, name)) return {*std::move(control), true};
  }
  return {parse_cache_control(response), false};
}

StaleRules stale_rules(const EffectiveControl& effective, const StorePolicy& policy) {
  const CacheControl& control = effective.control;
  StaleRules rules;
  if (control.must_revalidate || control.proxy_revalidate || control.no_cache) {
    rules.forbidden = true;
    return rules;
  }
  rules.while_revalidate = control.stale_while_revalidate;
  rules.if_error = control.stale_if_error;
  if (control.bare_stale_while_revalidate && policy.bare_stale_while_revalidate) {
    rules.while_revalidate = policy.bare_stale_while_revalidate->count();
  }
  if (control.s_maxage && policy.s_maxage_forbids_stale) {
    rules.forbidden = !rules.while_revalidate && !rules.if_error;
    if (!rules.forbidden) {
      rules.while_revalidate = rules.while_revalidate.value_or(0);
      rules.if_error = rules.if_error.value_or(0);
    }
  }
  return rules;
}

std::optional<Lifetime> named_lifetime(const EffectiveControl& effective, const Headers& response,
                                       std::int64_t received_at) {
  const CacheControl& control = effective.control;
  const auto by = [&](LifetimeSource source, std::int64_t seconds) {
    return Lifetime{effective.targeted ? LifetimeSource::targeted : source, seconds};
  };
  if (control.s_maxage) return by(LifetimeSource::s_maxage, *control.s_maxage);
  if (control.max_age) return by(LifetimeSource::max_age, *control.max_age);
  const auto expires = response.get("expires");
  if (effective.targeted || !expires) return std::nullopt;
  const auto time = parse_http_date(trimmed(*expires), received_at);
  if (!time) return Lifetime{LifetimeSource::expires, 0};  // "0" and the like: it has expired.
  return Lifetime{LifetimeSource::expires,
                  std::clamp<std::int64_t>(*time - date_of(response, received_at), 0, kMaxDeltaSeconds)};
}

std::int64_t corrected_initial_age(const Headers& response, const ExchangeTimes& times) {
  const std::int64_t apparent =
      std::max<std::int64_t>(0, times.received_at - date_of(response, times.received_at));
  const std::int64_t delay = std::max<std::int64_t>(0, times.received_at - times.requested_at);
  return std::max(apparent, age_of(response) + delay);
}

std::string group_tag(std::string_view origin, std::string_view group) {
  return std::string("group:").append(origin).append(" ").append(group);
}

StoreDecision decide_store(std::string_view method, const Headers& request, int status,
                           const Headers& response, const ExchangeTimes& times, const StorePolicy& policy) {
  if (method != "GET") return not_stored("only answers to GET are stored");
  if (auto refusal = refusal_of_status(status, policy)) return not_stored(*std::move(refusal));
  if (parse_cache_control(request).no_store) return not_stored("the request says no-store");

  const EffectiveControl effective = effective_control(response, policy.targeted);
  const CacheControl& control = effective.control;
  if (control.must_understand && !understood(status)) {
    return not_stored("must-understand, and status " + std::to_string(status) + " is not known here");
  }
  if (control.no_store && !control.must_understand) return not_stored("the response says no-store");
  if (control.is_private) return not_stored("the response says private");
  if (response.get("set-cookie")) return not_stored("it sets a cookie");
  if (is_event_stream(response.get("content-type").value_or(""))) return not_stored("it is an event stream");
  if (request.get("authorization") && !control.is_public && !control.s_maxage && !control.must_revalidate) {
    return not_stored("it answers a request with Authorization and does not say that it is for everyone");
  }
  auto vary = vary_names(response);
  if (!vary)
    return not_stored("Vary: " + combined(response, "vary").value_or("") + " leaves no key to find it by");

  auto lifetime = named_lifetime(effective, response, times.received_at);
  if (!lifetime && !control.is_public && !heuristically_cacheable(status)) {
    return not_stored("status " + std::to_string(status) + " is stored only for as long as the origin says");
  }
  if (!lifetime) lifetime = route_lifetime(status, policy);
  if (!lifetime && !control.no_cache) return not_stored("nothing says how long it is fresh");

  auto tags = tags_of(response, policy.origin);
  if (!tags) return not_stored(tags.error().message);

  StoreDecision decision;
  decision.store = true;
  if (lifetime) decision.source = lifetime->source;
  decision.lifetime = lifetime && !control.no_cache ? lifetime->seconds : 0;
  const std::int64_t delay = std::max<std::int64_t>(0, times.received_at - times.requested_at);
  decision.age = std::max<std::int64_t>(0, corrected_initial_age(response, times) - delay);
  decision.fresh_until = times.requested_at + decision.lifetime - decision.age;
  decision.revalidate = std::max<std::int64_t>(0, decision.lifetime - decision.age);
  decision.stale = stale_rules(effective, policy);
  decision.vary = *std::move(vary);
  decision.tags = *std::move(tags);
  if (const auto etag = only_value(response, "etag"); etag && is_entity_tag(*etag)) decision.etag = *etag;
  if (const auto modified = only_value(response, "last-modified")) {
    decision.last_modified = parse_http_date(*modified, times.received_at);
  }

  std::vector<std::string> withheld = control.no_cache_fields;
  withheld.insert(withheld.end(), control.private_fields.begin(), control.private_fields.end());
  decision.replayed = worth_storing(response, withheld);
  if (!says_the_same(decision.replayed, response, effective, policy))
    return not_stored("it withholds a field by which it is judged");
  auto& headers = decision.replayed.headers;
  std::erase_if(headers, [](const auto& field) { return field.first == "date"; });
  headers.emplace_back("date", format_http_date(date_of(response, times.received_at)));
  if (decision.age > 0) headers.emplace_back("age", std::to_string(decision.age));
  decision.reason = reason_of(decision, control.no_cache);
  return decision;
}

}  // namespace facetheory
