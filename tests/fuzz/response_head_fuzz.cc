// Input: a byte for the method asked with, a byte for the limit, then an answer as it comes from an origin.
//
// The parser agrees with a plain reading of the grammar, and a body is announced in one way only.
#include <algorithm>
#include <optional>
#include <string>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/message_head.h"
#include "facetheory/http/response_writer.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/head_oracle.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

std::optional<ResponseHead> plainly_read_response(std::string_view bytes, std::size_t limit) {
  const std::optional<PlainHead> plain = plainly_read(bytes);
  if (!plain || plain->size > limit) return std::nullopt;
  const std::string_view line = plain->start_line;
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || (line[7] != '0' && line[7] != '1') ||
      line[8] != ' ')
    return std::nullopt;
  ResponseHead head;
  head.minor_version = line[7] - '0';
  for (std::size_t i = 9; i < 12; ++i) {
    if (line[i] < (i == 9 ? '1' : '0') || line[i] > '9') return std::nullopt;
    head.status = head.status * 10 + (line[i] - '0');
  }
  if (line.size() > 12 && line[12] != ' ') return std::nullopt;
  head.reason = line.substr(std::min<std::size_t>(13, line.size()));
  head.fields = plain->fields;
  head.size = plain->size;
  return head;
}

void require_body_rules(const ResponseHead& head, std::string_view method) {
  const auto framing = response_framing(head, method);
  if (!framing) return;
  const bool never = method == "HEAD" || head.status / 100 == 1 || head.status == 204 || head.status == 304 ||
                     (method == "CONNECT" && head.status / 100 == 2);
  require((framing->kind == BodyFraming::Kind::none) == never, "an answer has a body unless it must not");
  if (never && method == "CONNECT" && head.status / 100 == 2) return;
  const auto count = [&](std::string_view name) {
    return std::count_if(head.fields.begin(), head.fields.end(),
                         [&](const FieldView& field) { return same_text(field.name, name); });
  };
  require(count("content-length") + count("transfer-encoding") <= 1, "a body is announced once");
  if (framing->kind == BodyFraming::Kind::until_close)
    require(count("content-length") + count("transfer-encoding") == 0, "what is announced is not guessed");
}

}  // namespace

void fuzz_response_head(std::string_view bytes) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "CONNECT", "POST"};
  Input input(bytes);
  const std::string_view method = kMethods[input.byte() % 4];
  const std::size_t limit = input.head_limit();
  const std::string_view text = input.rest();

  ResponseHead head;
  const HeadOutcome outcome = parse_response_head(text, limit, head);
  const std::optional<ResponseHead> plain = plainly_read_response(text, limit);
  require(plain.has_value() == (outcome.state == HeadState::complete), "the grammar decides what a head is");
  if (outcome.state == HeadState::bad) {
    require(outcome.status == 502 || outcome.status == 431, "a bad answer is the origin's fault");
    ResponseHead longer;
    require(parse_response_head(std::string(text) + "\r\n\r\n", limit, longer).state == HeadState::bad,
            "what is bad stays bad");
    return;
  }
  if (outcome.state != HeadState::complete) return;
  require(head.status == plain->status && head.reason == plain->reason &&
              head.minor_version == plain->minor_version && head.fields == plain->fields &&
              head.size == plain->size,
          "what the grammar says stands in the head");
  require(parse_response_head(text.substr(0, head.size - 1), limit + 1, head).state == HeadState::incomplete,
          "a head less its last byte is waited for");
  parse_response_head(text, limit, head);
  require_body_rules(head, method);

  std::string written;
  append_status_line(written, head.status);
  for (const FieldView& field : head.fields)
    append_field(written, field.name, field.value);
  written += "\r\n";
  ResponseHead again;
  require(parse_response_head(written, written.size(), again).state == HeadState::complete &&
              again.status == head.status && again.fields == head.fields && again.size == written.size(),
          "what we write is the same head");
}

}  // namespace facetheory::fuzz
