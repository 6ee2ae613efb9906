#include "facetheory/gateway/origin_render.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "facetheory/base/first_to_end.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/base/log.h"
#include "facetheory/bodies/metadata_fields.h"
#include "facetheory/gateway/answer_failure.h"
#include "facetheory/gateway/live_answer.h"
#include "facetheory/http/field_values.h"
#include "facetheory/isr/page.h"
#include "facetheory/rules/preconditions.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

using PagePointer = std::shared_ptr<const PreparedPage>;

// How soon a kept connection is found closed that was closed as it was used. The origin has then seen nothing of the
// request.
constexpr std::chrono::seconds kClosedAsItWasUsed{1};

// The entity tag that the origin gave; one that was made here means nothing to it.
std::string_view origins_etag(const PreparedPage& page, const MetaRow& meta) {
  const bool ours = !meta.etag || is_own_etag(*meta.etag, page.bytes());
  return ours ? std::string_view() : std::string_view(*meta.etag);
}

// What the origin can be asked to confirm.
PageValidators validators_of(const PreparedPage& page, const MetaRow& meta) {
  PageValidators validators;
  validators.status = page.status();
  validators.size = page.bytes().size();
  validators.last_modified = page.last_modified();
  validators.date = page.date();
  validators.etag = origins_etag(page, meta);
  return validators;
}

// The header of a page that was confirmed, as if it had just been sent.
Headers renewed_header(const PreparedPage& page, const MetaRow& meta, const Headers& not_modified) {
  const ReplayedHeaders stored{std::string(page.content_type()), page.metadata().headers};
  const ReplayedHeaders update = freshened(stored, not_modified);
  Headers header;
  if (!update.content_type.empty()) header.add("content-type", update.content_type);
  for (const auto& [name, value] : update.headers) {
    const bool of_the_old_answer = name == kVariantField || name == kWindowField || name == kReceivedField ||
                                   name == "age" || (name == "date" && !not_modified.get("date"));
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

// The times do not count: META has them, too.
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

// Whether an origin that does ISR itself, or another gateway of ours, says that the page it answers with has had its
// time. Published, that page would be of a new generation.
bool is_called_stale(const Headers& answer) {
  const auto state = answer.get("x-facetheory-isr");
  return state && lower_case(trimmed(*state)).starts_with(name(ServedAs::stale));  // Or stale-metadata-error.
}

constexpr std::string_view kCalledStale =
    "the origin itself calls its answer stale (x-facetheory-isr); one that keeps its pages in this table "
    "needs "
    "renders = \"origin\"";

// Brings what is left of an answer to the one client that it is for.
Task<void> pump(std::unique_ptr<HttpExchange> exchange, std::shared_ptr<LiveAnswer> live) {
  const auto reading = [&]() -> Task<void> {
    for (;;) {
      const auto piece = co_await exchange->read();
      if (!piece) co_return live->fail(failure_of(*exchange, piece.error(), true));
      if (piece->empty()) co_return live->end(exchange->trailers());
      const bool taken = co_await live->give_in_time(*piece);
      if (!taken) co_return;
    }
  };
  Task<void> read = reading();
  Task<void> left = live->until_left();
  co_await first_to_end(std::move(read), std::move(left));
  live->fail();  // Unless it has ended.
}

class OriginRendering {
 public:
  OriginRendering(const OriginRender& render, const ReadBody& read_body, Clock& clock, RenderContext context)
      : render_(render), read_body_(read_body), clock_(clock), context_(std::move(context)) {
    if (render_.live && render_.live->claim()) live_ = render_.live;
  }
  ~OriginRendering() {
    if (!live_ || ending_ == Ending::handed_over) return;
    // Where the limit is over it is the origin that has not answered.
    const bool is_late = ending_ == Ending::interrupted && context_.late.stop_requested();
    if (ending_ == Ending::failed || is_late) live_->fail(std::move(failure_));
    if (ending_ == Ending::interrupted) live_->interrupt();  // Unless it is late.
    live_->end({});  // Unless it has ended, failed or was interrupted.
  }

  Task<Result<Rendered>> run() {
    PagePointer previous = co_await previous_page();
    for (;;) {
      std::optional<PageValidators> validators;
      if (previous) validators = validators_of(*previous, *context_.previous);
      OriginTiming timing(render_.metrics, clock_);
      auto head = co_await ask(validators);
      if (!head) co_return std::move(head).error();
      if (render_.live) render_.live->note_status(head->status);
      if (head->status != 304) {
        const int status = head->status;
        auto made = co_await take_body(*std::move(head));
        if (!made) co_return made;
        timing.answered(status);
        if (ending_ == Ending::interrupted) ending_ = Ending::whole;
        co_return made;
      }
      timing.answered(304);
      if (!previous) {
        co_return failed(not_modified_unasked());
      }
      // A cookie is for one client alone: the answer that has it is that client's, whole.
      const bool sets_cookie = head->headers.get("set-cookie").has_value();
      if (!sets_cookie && confirms(head->headers, *validators, times_.received_at)) {
        ending_ = Ending::whole;
        const bool stale = is_called_stale(head->headers);
        Rendered page = renewed(*previous, *std::move(head));
        if (stale) call_stale(page);
        co_return page;
      }
      previous.reset();  // It spoke of another page, or is for one client: ask for this one, whole.
    }
  }

 private:
  // The head of the answer; the rest is left to exchange_. Where a kept connection is closed before any of it came, it
  // is asked for once more.
  Task<Result<HttpResponseStart>> ask(const std::optional<PageValidators>& validators) {
    HttpRequest request = render_.request;
    if (validators) {
      for (const Headers::Field& field : validation_fields(*validators))
        request.headers.set(field.name, field.value);
    }
    const Duration began = clock_.monotonic();
    for (int attempt = 0;; ++attempt) {
      times_.requested_at = epoch_seconds(clock_.now());
      HttpRequest copy = request;
      auto opened = co_await render_.origin->ask(std::move(copy));
      if (!opened) {
        co_return failed(no_answer(std::move(opened).error()));
      }
      exchange_ = *std::move(opened);
      auto head = co_await read_final_head();
      times_.received_at = epoch_seconds(clock_.now());
      const bool closed = !head && exchange_->was_closed_unanswered() && !hinted_ &&
                          clock_.monotonic() - began < kClosedAsItWasUsed;
      if (closed && attempt == 0) continue;
      if (!head) co_return failed(failure_of(*exchange_, head.error(), false));
      co_return head;
    }
  }

  Task<Result<HttpResponseStart>> read_final_head() {
    for (;;) {
      auto head = co_await exchange_->read_head();
      if (!head || head->status / 100 != 1) co_return head;
      hinted_ = true;
      if (live_) live_->hint({head->status, std::move(head->headers)});
    }
  }

  Task<Result<Rendered>> take_body(HttpResponseStart head) {
    std::optional<std::uint64_t> length;
    if (head.framing.kind == BodyFraming::Kind::length) length = head.framing.length;
    Rendered result = shape_of(head, length && *length > render_.page_bytes ? Unfit::too_large : Unfit::no);
    if (result.as == RenderedAs::page && length && context_.admit && !context_.admit(*length))
      result = shape_of(head, Unfit::no_room);
    if (result.as == RenderedAs::transient) {
      LiveHead live{std::move(result), length};
      co_return co_await hand_over(std::move(live), {});
    }
    // A render that belongs to one request, because a store is away, is counted until it ends.
    const bool is_live = live_ && result.as == RenderedAs::page && !context_.lease.token.empty();
    if (is_live) {
      LiveHead live{result, length};
      live_->begin(std::move(live));
    }
    std::string body;
    // A string that grows has twice the bytes in the end.
    if (length && *length <= render_.page_bytes) body.reserve(*length);
    for (;;) {
      const auto piece = co_await exchange_->read();
      if (!piece) {
        co_return failed(failure_of(*exchange_, piece.error(), true));
      }
      if (piece->empty()) break;
      const bool fits = piece->size() <= render_.page_bytes - body.size();
      body += *piece;
      if (is_live) live_->give(*piece);
      if (fits) continue;
      LiveHead live{shape_of(head, Unfit::too_large), {}};
      if (is_live) body.clear();
      co_return co_await hand_over(std::move(live), std::move(body), is_live);
    }
    if (live_) live_->end(exchange_->trailers());
    result.body.bytes = std::move(body);
    co_return result;
  }

  // Gives it to the client for whom the render was begun: what is left has no more to do with the page. Whoever has got
  // some of it waits as long as a render may take; others are refused if there is no place for them among the streams.
  Task<Result<Rendered>> hand_over(LiveHead head, std::string so_far, bool has_begun = false) {
    Rendered nothing;
    nothing.as = head.shape.as;
    nothing.handed_over = true;
    nothing.body.metadata.status = head.shape.body.metadata.status;
    nothing.why_not_stored = head.shape.why_not_stored;
    if (!live_ || !live_->is_wanted()) co_return nothing;
    bool has_place = false;
    const auto taking_place = [&]() -> Task<void> { has_place = co_await exchange_->let_last(has_begun); };
    Task<void> place = taking_place();
    Task<void> left = live_->until_left();
    co_await first_to_end(std::move(place), std::move(left));
    if (!has_place) {
      live_->refuse();
      co_return nothing;
    }
    if (!has_begun) live_->begin(std::move(head));
    live_->give(so_far);
    ending_ = Ending::handed_over;
    boost::asio::co_spawn(render_.origin->executor(), pump(std::move(exchange_), live_),
                          [live = live_](std::exception_ptr interrupted) {
                            if (interrupted) live->fail();
                          });
    co_return nothing;
  }

  // The origin's failure, which the client is told of.
  Error failed(AnswerFailure failure) {
    ending_ = Ending::failed;
    failure_ = std::move(failure);
    return failure_.error;
  }

  // The page that is replaced, if the origin can be asked about it.
  Task<PagePointer> previous_page() {
    if (!context_.previous || context_.previous->s3_key.empty()) co_return nullptr;
    std::string s3_key = context_.previous->s3_key;
    auto body = co_await read_body_(std::move(s3_key));
    if (!body) co_return nullptr;
    auto page = std::static_pointer_cast<const PreparedPage>(*std::move(body));
    if (page->variant() != variant_key(page->vary(), render_.request.headers)) co_return nullptr;
    co_return page;
  }

  // The page as it is, confirmed by a 304.
  Rendered renewed(const PreparedPage& previous, HttpResponseStart not_modified) {
    not_modified.headers = renewed_header(previous, *context_.previous, not_modified.headers);
    not_modified.status = previous.status();
    Rendered result = shape_of(not_modified, Unfit::no);
    result.body.bytes = previous.bytes();
    // Then the body need not be written again.
    if (same_but_for_times(result.body.metadata, previous.metadata())) result.body = previous.body();
    return result;
  }

  // Why an answer is not stored that might be.
  enum class Unfit { no, too_large, no_room };

  // What is made of an answer with that head, but for its bytes.
  Rendered shape_of(const HttpResponseStart& answer, Unfit unfit) const {
    StoreDecision decision =
        decide_store("GET", render_.request.headers, answer.status, answer.headers, times_, render_.policy);
    Rendered result;
    BodyMetadata& metadata = result.body.metadata;
    metadata.status = answer.status;
    if (!decision.store) result.as = RenderedAs::transient;
    if (is_failure(answer.status)) result.as = RenderedAs::failed;
    result.why_not_stored = decision.reason;
    if (result.as != RenderedAs::failed && is_called_stale(answer.headers)) call_stale(result);
    if (result.as == RenderedAs::page && unfit == Unfit::no_room) {
      result.as = RenderedAs::transient;
      result.why_not_stored = "there is no room for it on the disk";
    }
    if (result.as == RenderedAs::page && unfit == Unfit::too_large) {
      result.as = RenderedAs::transient;
      result.why_not_stored =
          "it is larger than " + std::to_string(render_.page_bytes) + " bytes (limits.page_bytes)";
      tell_not_stored(result);
    }
    if (result.as == RenderedAs::page) prepare_storing(result, std::move(decision), answer);
    if (result.as == RenderedAs::page) return result;
    // What is for one client only goes to it as it came, cookies included.
    metadata.headers.clear();
    for (const Headers::Field& field : end_to_end(answer.headers)) {
      if (same_text(field.name, "content-length") || same_text(field.name, "x-facetheory-isr")) continue;
      if (same_text(field.name, "content-type")) {
        metadata.content_type = field.value;
      } else {
        metadata.headers.emplace_back(lower_case(std::string_view(field.name)), field.value);
      }
    }
    if (answer.minor_version == 0) metadata.headers.emplace_back(kReceivedField, "1.0");
    // Whoever it was rendered for may have said more than the origin was told.
    const auto vary = vary_names(answer.headers);
    if (vary && !vary->empty())
      metadata.headers.emplace_back(kVariantField, variant_key(*vary, render_.request.headers));
    return result;
  }

  static void call_stale(Rendered& result) {
    result.as = RenderedAs::called_stale;
    result.why_not_stored = kCalledStale;
  }

  // Not stored after all, if there is more of it than can be kept.
  void prepare_storing(Rendered& result, StoreDecision decision, const HttpResponseStart& answer) const {
    result.revalidate = std::chrono::seconds(std::max<std::int64_t>(decision.revalidate, 1));
    result.etag = decision.etag;
    result.tags = decision.tags;
    result.tags.insert(result.tags.end(), render_.tags.begin(), render_.tags.end());
    if (!decision.vary.empty() && !render_.varying_tag.empty()) result.tags.push_back(render_.varying_tag);
    std::sort(result.tags.begin(), result.tags.end());
    result.tags.erase(std::unique(result.tags.begin(), result.tags.end()), result.tags.end());
    BodyMetadata& metadata = result.body.metadata;
    metadata =
        stored_metadata(std::move(decision), answer.status, render_.request.headers, answer.minor_version);

    const std::size_t size = size_of(encode_metadata(metadata)) + kDigestField;
    const bool too_large = size > render_.max_metadata;
    if (!too_large && result.tags.size() <= kMaxTags) return;
    result.as = RenderedAs::transient;
    result.why_not_stored = too_large ? "its header fields take " + std::to_string(size) +
                                            " bytes, and bodies keep " + std::to_string(render_.max_metadata)
                                      : "it has more than " + std::to_string(kMaxTags) + " tags";
    tell_not_stored(result);
  }

  // The origin has said nothing of the kind, so only the log can tell.
  void tell_not_stored(const Rendered& result) const {
    log(LogLevel::warning, render_.request.target + " is not stored: " + result.why_not_stored);
  }

  static constexpr std::size_t kDigestField = 100;  // facetheory-sha256, which is added when it is written.

  const OriginRender& render_;
  const ReadBody& read_body_;
  Clock& clock_;
  const RenderContext context_;
  std::shared_ptr<LiveAnswer> live_;        // Null: nobody waits for it, or another render has it.
  ExchangeTimes times_;                     // They belong to the last request.
  std::unique_ptr<HttpExchange> exchange_;  // So does this.
  bool hinted_ = false;                     // Something has come before the answer.
  enum class Ending {
    interrupted,  // It was cancelled: the lease was lost, say, or the limit of renders was over.
    failed,       // The origin did.
    whole,        // All of it is there.
    handed_over,  // The live answer gets it from elsewhere.
  };
  Ending ending_ = Ending::interrupted;
  AnswerFailure failure_;  // Of the origin; as it is here, the limit was over.
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
