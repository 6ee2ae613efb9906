// facetheory get
#include <utility>

#include <openssl/evp.h>

#include "facetheory/base/utf8.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"

namespace facetheory {
namespace {

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
    return {.summary = "Prints a page's body.",
            .about =
                "Reads META, judges it together with the invalidations of its tags and its tenant, and "
                "prints the body that it "
                "points at, byte by byte, also if it is stale. With --json the object has META's fields, the "
                "body's "
                "metadata, and the bytes as `body` if they are UTF-8, else as `body_base64`.",
            .examples = {"facetheory get /news/42 >page.html"},
            .outcomes = {{"fresh", 0, "The page."},
                         {"stale", 0, "The page, which waits to be rendered again."},
                         {"missing", 1, "There is no page, or it was purged."}}};
  }

  void declare(Arguments& arguments) override { arguments.page(page_); }

  Answer run(Session& session) override {
    const Page page = session.page(page_);
    const Result<PageView> view = session.isr().view(page, Consistency::strong);
    if (!view) return failed(view.error());
    Result<std::optional<Body>> body = session.isr().read_body(*view);
    if (!body) {
      Error error = std::move(body).error();
      if (error.code == ErrorCode::corrupt) {
        error.message += "; regenerating the page heals it (facetheory regenerate --force)";
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
  static Answer found(const PageView& view, Body body) {
    Answer answer =
        done(std::string(facetheory::name(view.freshness.state)), {Field{"reason", view.freshness.reason}});
    append(answer.fields, fields_of(view.page, *view.meta));
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
    return answer;
  }

  PageName page_;
};

}  // namespace

void add_get_command(Commands& commands) {
  commands.push_back(std::make_unique<Get>());
}

}  // namespace facetheory
