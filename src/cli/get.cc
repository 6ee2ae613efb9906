// facetheory get
#include <string_view>
#include <utility>

#include <openssl/evp.h>

#include "facetheory/base/utf8.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/configured_tags.h"
#include "facetheory/cli/version_name.h"

namespace facetheory {
namespace {

constexpr std::string_view kHeals = "regenerating the page heals it";

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with NUL.
  const int length =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

class Get final : public Command {
 public:
  std::string name() const override { return "get"; }

  CommandHelp help() const override {
    return {
        .summary = "Prints a page's body.",
        .about =
            "Reads META, judges it together with the invalidations of its tags and its tenant, and "
            "prints the body that it "
            "points at, byte by byte, also if it is stale. A page whose META another writer has replaced has "
            "the tags that the configuration's routes give it (--config, or facetheory.toml), where its pk "
            "names its route. With --json the object has META's fields, the "
            "body's "
            "metadata, and the bytes as `body` if they are UTF-8, else as `body_base64`. With --version "
            "it is the body "
            "of a version that was kept; with --s3-key that of any key, such as the result of a request.",
        .examples = {"facetheory get /news/42 >page.html",
                     "facetheory get /news/42 --version VER#01J9ZQ6Y7N3F8G5C2B1A0X4T9W",
                     "facetheory get --s3-key isr/0a1b/1.html"},
        .outcomes = {{"fresh", 0, "The page."},
                     {"stale", 0, "The page, which waits to be rendered again."},
                     {"found", 0, "The body of --version or --s3-key."},
                     {"missing", 1, "There is no page, or it was purged; or no such version or body."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.text("--version", "VERSION", version_,
                   "A version that was kept, as `facetheory versions` shows it; the VER# may be left out.");
    arguments.text("--s3-key", "S3_KEY", s3_key_, "The key of a body; instead of KEY.");
  }

  Answer run(Session& session) override {
    if (s3_key_ && (page_.key || page_.pk || version_))
      return usage("--s3-key names a body by itself: give neither KEY, --pk nor --version");
    if (s3_key_) return stored(session, {}, *s3_key_, "there is no body " + *s3_key_);
    const Page page = session.page(page_);
    if (version_) return kept(session, page);
    const Result<PageView> view =
        session.isr_with_bodies().view(page, Consistency::strong, ConfiguredTags(session).of(page));
    if (!view) return failed(view.error());
    Result<std::optional<Body>> body = session.isr_with_bodies().read_body(*view);
    if (!body) {
      Error error = std::move(body).error();
      if (error.code == ErrorCode::corrupt) {
        if (error.message.find(kHeals) == std::string::npos) error.message += "; " + std::string(kHeals);
        error.message += " (facetheory regenerate --force)";
      }
      return failed(error);
    }
    if (!*body) {
      return Answer{.exit = kFailed,
                    .outcome = "missing",
                    .fields = fields_of(page),
                    .message = to_string(page) + " is missing (" + view->freshness.reason +
                               "); publish it, or let `facetheory regenerate` render it"};
    }
    return found(*view, **std::move(body));
  }

 private:
  Answer kept(Session& session, const Page& page) const {
    const Result<std::string> sk = version_sk_named("--version", *version_);
    if (!sk) return usage(sk.error().message);
    const Result<std::optional<VersionRow>> row = session.isr_with_bodies().get_version(page, *sk);
    if (!row) return failed(row.error());
    if (!*row) {
      return Answer{.exit = kFailed,
                    .outcome = "missing",
                    .fields = fields_of(page),
                    .message = to_string(page) + " has no version " + *sk +
                               "; facetheory versions shows which there are"};
    }
    Fields fields = fields_of(page);
    append(fields, fields_of(**row));
    return stored(session, std::move(fields), (*row)->s3_key,
                  "the body " + (*row)->s3_key + " of the version " + *sk + " is gone");
  }

  static Answer stored(Session& session, Fields fields, const std::string& s3_key, std::string gone) {
    Result<std::optional<Body>> body = session.isr_with_bodies().read_stored(s3_key);
    if (!body) return failed(body.error());
    add(fields, Field{"s3_key", s3_key});
    if (!*body) {
      return Answer{
          .exit = kFailed, .outcome = "missing", .fields = std::move(fields), .message = std::move(gone)};
    }
    Answer answer = done("found", std::move(fields));
    show(answer, **std::move(body));
    return answer;
  }

  static Answer found(const PageView& view, Body body) {
    Answer answer =
        done(std::string(facetheory::name(view.freshness.state)), {Field{"reason", view.freshness.reason}});
    append(answer.fields, fields_of(view.page, *view.meta));
    show(answer, std::move(body));
    return answer;
  }

  static void show(Answer& answer, Body body) {
    add(answer.fields, Field{"status", static_cast<std::int64_t>(body.metadata.status)});
    add(answer.fields, Field{"content_type", body.metadata.content_type});
    std::vector<std::string> headers;
    for (const auto& [field, value] : body.metadata.headers)
      headers.push_back(field + ": " + value);
    add(answer.fields, Field{"headers", std::move(headers)});
    add(answer.fields, "sha256", body.metadata.sha256);
    if (is_utf8(body.bytes)) {
      add(answer.fields, Field{"body", body.bytes});
    } else {
      add(answer.fields, Field{"body_base64", base64(body.bytes)});
    }
    answer.text = std::move(body.bytes);
  }

  PageName page_;
  std::optional<std::string> version_;
  std::optional<std::string> s3_key_;
};

}  // namespace

void add_get_command(Commands& commands) {
  commands.push_back(std::make_unique<Get>());
}

}  // namespace facetheory
