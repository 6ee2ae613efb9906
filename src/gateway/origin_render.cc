#include "facetheory/gateway/origin_render.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/log.h"
#include "facetheory/bodies/metadata_fields.h"
#include "facetheory/gateway/preconditions.h"
#include "facetheory/gateway/vary.h"
#include "facetheory/http/field_values.h"
#include "facetheory/isr/page.h"

namespace facetheory {
namespace {

using PagePointer = std::shared_ptr<const PreparedPage>;

// For the body of what is not to be stored. Then its client gets it as it comes, which means to ask once more.
constexpr std::chrono::milliseconds kUnstoredPatience{1000};

// The entity tag that the origin gave; one that was made here means nothing to it.
std::string_view origins_etag(const PreparedPage& page, const MetaRow& meta) {
  const bool ours = !meta.etag || (page.metadata.sha256 && *meta.etag == own_etag(*page.metadata.sha256));
  return ours ? std::string_view() : std::string_view(*meta.etag);
}

// What the origin can be asked to confirm.
PageValidators validators_of(const PreparedPage& page, const MetaRow& meta) {
  PageValidators validators;
  validators.status = page.metadata.status;
  validators.size = page.bytes.size();
  validators.last_modified = page.last_modified;
  validators.date = page.date;
  validators.etag = origins_etag(page, meta);
  return validators;
}

// Of a page that was confirmed: its header as if it had just been sent.
Headers renewed_header(const PreparedPage& page, const MetaRow& meta, const Headers& not_modified) {
  const ReplayedHeaders stored{page.metadata.content_type, page.metadata.headers};
  const ReplayedHeaders update = freshened(stored, not_modified);
  Headers header;
  if (!update.content_type.empty()) header.add("content-type", update.content_type);
  for (const auto& [name, value] : update.headers) {
    const bool of_the_old_answer = name == kVariantField || name == kWindowField || name == "age" ||
                                   (name == "date" && !not_modified.get("date"));
    if (!of_the_old_answer) header.add(name, value);
  }
  if (const auto age = not_modified.get("age")) header.add("age", std::string(*age));
  if (const auto etag = not_modified.get("etag")) {
    header.add("etag", std::string(*etag));
  } else if (const std::string_view stored_etag = origins_etag(page, meta); !stored_etag.empty()) {
    header.add("etag", std::string(stored_etag));
  }
  return header;
}

// Apart from the times, which META has too.
bool same_but_for_times(const BodyMetadata& left, const BodyMetadata& right) {
  const auto without_times = [](BodyMetadata metadata) {
    std::erase_if(metadata.headers, [](const auto& field) { return field.first == "date"; });
    metadata.sha256.reset();
    return metadata;
  };
  return without_times(left) == without_times(right);
}

bool is_failure(int status) {
  return status >= 500 || status == 408 || status == 429;
}

class OriginRendering {
 public:
  OriginRendering(const OriginRender& render, const ReadBody& read_body, Clock& clock, RenderContext context)
      : render_(render), read_body_(read_body), clock_(clock), context_(std::move(context)) {}

  Task<Result<Rendered>> run() {
    PagePointer previous = co_await previous_page();
    for (;;) {
      HttpRequest request = render_.request;
      PageValidators validators;
      if (previous) {
        validators = validators_of(*previous, *context_.previous);
        for (const Headers::Field& field : validation_fields(validators))
          request.headers.set(field.name, field.value);
      }
      ExchangeTimes times;
      times.requested_at = epoch_seconds(clock_.now());
      OriginTiming timing(render_.metrics, clock_);
      unstored_status_ = 0;
      BodyPatience patience = [this, times](int status, const Headers& headers) {
        return patience_for(status, headers, times);
      };
      auto answer = co_await render_.origin->send(std::move(request), std::move(patience));
      if (answer) timing.answered(answer->status);
      if (!answer && answer.error().code == ErrorCode::exhausted && unstored_status_ != 0) {
        timing.answered(unstored_status_);
        co_return nothing_to_show();
      }
      times.received_at = epoch_seconds(clock_.now());
      if (!answer && answer.error().code == ErrorCode::exhausted) {
        log(LogLevel::warning, "a page is passed on and not stored: " + answer.error().message);
        co_return nothing_to_show();
      }
      if (!answer) co_return std::move(answer).error();
      if (answer->status != 304) co_return rendered(*std::move(answer), times);
      if (!previous)
        co_return Error{ErrorCode::unavailable, "the origin answered 304 to a request without a condition"};
      if (confirms(answer->headers, validators, times.received_at)) {
        answer->headers = renewed_header(*previous, *context_.previous, answer->headers);
        answer->status = previous->metadata.status;
        answer->body = previous->bytes;
        Rendered renewed = rendered(*std::move(answer), times);
        // Then the body need not be written again.
        if (same_but_for_times(renewed.body.metadata, previous->metadata)) renewed.body = *previous;
        co_return renewed;
      }
      previous.reset();  // It spoke of another page: ask for this one, whole.
    }
  }

 private:
  // The page that is replaced, if the origin can be asked about it.
  Task<PagePointer> previous_page() {
    if (!context_.previous || context_.previous->s3_key.empty()) co_return nullptr;
    std::string s3_key = context_.previous->s3_key;
    auto body = co_await read_body_(std::move(s3_key));
    if (!body) co_return nullptr;
    auto page = std::static_pointer_cast<const PreparedPage>(*std::move(body));
    if (page->variant != variant_key(page->vary, render_.request.headers)) co_return nullptr;
    co_return page;
  }

  std::optional<std::chrono::milliseconds> patience_for(int status, const Headers& headers,
                                                        ExchangeTimes times) {
    if (is_failure(status) || status == 304) return std::nullopt;
    times.received_at = epoch_seconds(clock_.now());
    if (decide_store("GET", render_.request.headers, status, headers, times, render_.policy).store)
      return std::nullopt;
    unstored_status_ = status;
    const bool events = is_event_stream(headers.get("content-type").value_or(""));
    return events ? std::chrono::milliseconds(0) : kUnstoredPatience;
  }

  static Rendered nothing_to_show() {
    Rendered result;
    result.store = false;
    result.body.metadata.status = 0;
    return result;
  }

  Rendered rendered(HttpResponse answer, const ExchangeTimes& times) const {
    StoreDecision decision =
        decide_store("GET", render_.request.headers, answer.status, answer.headers, times, render_.policy);
    Rendered result;
    result.body.bytes = std::move(answer.body);
    BodyMetadata& metadata = result.body.metadata;
    metadata.status = answer.status;
    result.failed = is_failure(answer.status);
    result.store = decision.store && !result.failed;
    if (!result.store) {
      // What is for one client only goes to it as it came, cookies included.
      for (const Headers::Field& field : end_to_end(answer.headers)) {
        if (same_text(field.name, "content-length")) continue;
        if (same_text(field.name, "content-type")) {
          metadata.content_type = field.value;
        } else {
          metadata.headers.emplace_back(lower_case(std::string_view(field.name)), field.value);
        }
      }
      return result;
    }
    metadata = stored_metadata(decision, answer.status, render_.request.headers);
    result.revalidate = std::chrono::seconds(std::max<std::int64_t>(decision.revalidate, 1));
    result.etag = std::move(decision.etag);
    result.tags = std::move(decision.tags);
    result.tags.insert(result.tags.end(), render_.tags.begin(), render_.tags.end());
    if (!decision.vary.empty() && !render_.varying_tag.empty()) result.tags.push_back(render_.varying_tag);
    std::sort(result.tags.begin(), result.tags.end());
    result.tags.erase(std::unique(result.tags.begin(), result.tags.end()), result.tags.end());

    const std::size_t size = size_of(encode_metadata(metadata)) + kDigestField;
    if (result.tags.size() > kMaxTags || size > kMaxMetadataBytes) {
      result.store = false;
      log(LogLevel::warning,
          render_.request.target + " is not stored: " +
              (size > kMaxMetadataBytes ? "its header fields take " + std::to_string(size) + " bytes, and " +
                                              std::to_string(kMaxMetadataBytes) + " can be kept"
                                        : "it has more than " + std::to_string(kMaxTags) + " tags"));
    }
    return result;
  }

  static constexpr std::size_t kDigestField = 100;  // facetheory-sha256, which is added when it is written.

  const OriginRender& render_;
  const ReadBody& read_body_;
  Clock& clock_;
  const RenderContext context_;
  int unstored_status_ = 0;  // Of the answer under way, where it is not to be stored.
};

}  // namespace

Renderer render_from_origin(OriginRender render, ReadBody read_body, Clock& clock) {
  struct Parts {
    OriginRender render;
    ReadBody read_body;
  };
  auto parts = std::make_shared<const Parts>(Parts{std::move(render), std::move(read_body)});
  return [parts, &clock](RenderContext context) -> Task<Result<Rendered>> {
    const auto kept = parts;  // The renderer itself may be gone before its render is.
    OriginRendering rendering(kept->render, kept->read_body, clock, std::move(context));
    co_return co_await rendering.run();
  };
}

}  // namespace facetheory
