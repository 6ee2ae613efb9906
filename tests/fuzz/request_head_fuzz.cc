// Input: a byte for the cuts, a byte for the limit, then a request as it comes from a connection.
//
// The parser agrees with a plain reading of the grammar, comes to the same however the bytes are cut, and what it takes
// can be written and read again; framing and Host are only told where there is one way to tell them.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"
#include "facetheory/http/request_writer.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/head_oracle.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

std::optional<RequestHead> plainly_read_request(std::string_view bytes, std::size_t limit) {
  RequestHead head;
  const std::size_t begin = bytes.starts_with("\r\n") ? 2 : 0;
  const std::optional<PlainHead> plain = plainly_read(bytes.substr(begin));
  if (!plain || begin + plain->size > limit) return std::nullopt;
  const auto parts = split(plain->start_line, " ");
  if (parts.size() != 3 || !is_token(parts[0]) || parts[0].size() > 64 || parts[1].empty())
    return std::nullopt;
  if (!std::all_of(parts[1].begin(), parts[1].end(), [](char c) { return c > 0x20 && c < 0x7f; }))
    return std::nullopt;
  if (parts[2] != "HTTP/1.0" && parts[2] != "HTTP/1.1") return std::nullopt;
  head.method = parts[0];
  head.target = parts[1];
  head.minor_version = parts[2].back() - '0';
  head.fields = plain->fields;
  head.size = begin + plain->size;
  return head;
}

void require_same(const RequestHead& a, const RequestHead& b, std::string_view sentence) {
  require(a.method == b.method && a.target == b.target && a.minor_version == b.minor_version &&
              a.fields == b.fields && a.size == b.size,
          sentence);
}

// Reads as a connection does: the first bytes at once, then again only when find_head_end() says so.
HeadOutcome read_in_pieces(std::string_view bytes, std::size_t limit, Cuts cuts, RequestHead& head) {
  std::size_t come = std::min(cuts.next(), bytes.size());
  HeadOutcome outcome = parse_request_head(bytes.substr(0, come), limit, head);
  while (outcome.state == HeadState::incomplete && come < bytes.size()) {
    const std::size_t before = come;
    come = std::min(come + cuts.next(), bytes.size());
    const std::string_view seen = bytes.substr(0, come);
    if (find_head_end(seen, before) != std::string_view::npos || come >= limit)
      outcome = parse_request_head(seen, limit, head);
  }
  return outcome;
}

void require_framing(const RequestHead& head) {
  const auto count = [&](std::string_view name) {
    return std::count_if(head.fields.begin(), head.fields.end(),
                         [&](const FieldView& field) { return same_text(field.name, name); });
  };
  const auto framing = request_framing(head);
  const int refusal = framing_refusal(head);
  require(refusal == 400 || refusal == 501, "a framing is refused with 400 or 501");
  if (framing) {
    const auto lengths = count("content-length");
    const auto codings = count("transfer-encoding");
    require(lengths + codings == (framing->kind == BodyFraming::Kind::none ? 0 : 1),
            "one field tells the framing, or none");
    if (framing->kind == BodyFraming::Kind::chunked) {
      require(codings == 1 && head.minor_version == 1 &&
                  same_text(find_field(head.fields, "Transfer-Encoding")->value, "chunked"),
              "chunked is what HTTP/1.1 says with one word");
    }
    if (framing->kind == BodyFraming::Kind::length) {
      std::string digits(find_field(head.fields, "Content-Length")->value);
      digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
      require(std::to_string(framing->length) == digits, "a length is the number that stands there");
    }
    require(framing->kind != BodyFraming::Kind::until_close, "no request ends with the connection");
  }
  const auto host = check_host(head);
  if (host) {
    require(count("host") == (head.minor_version == 1 || find_field(head.fields, "host") ? 1 : 0),
            "there is one Host, or none in HTTP/1.0");
    require(host->find_first_of(" \t/\\?#@,\"<>") == std::string_view::npos, "a host is a host and a port");
  }
  if (find_field(head.fields, "connection") == nullptr)
    require(keeps_alive(head) == (head.minor_version == 1), "the version decides where nothing else does");
}

// A head that was read can be written by us and read again, and is the same then.
void require_writable(const RequestHead& head) {
  if (head.fields.size() + 2 > kMaxHeadFields) return;
  HttpRequest request;
  request.method = head.method;
  request.target = head.target;
  for (const FieldView& field : head.fields) {
    const bool ours = same_text(field.name, "host") || same_text(field.name, "content-length") ||
                      same_text(field.name, "connection") || same_text(field.name, "transfer-encoding");
    if (!ours) request.headers.add(std::string(field.name), std::string(field.value));
  }
  const Origin origin{.tls = false, .host = "origin.test", .port = 8000};
  const auto text = render_request_head(request, origin, BodyFraming{BodyFraming::Kind::length, 7}, false);
  if (!text) {
    require(!request.target.starts_with('/') || request.target.find('#') != std::string::npos ||
                request.method == "CONNECT",
            "what was read can be written, but for odd targets");
    return;
  }
  RequestHead again;
  const HeadOutcome outcome = parse_request_head(*text, text->size(), again);
  require(outcome.state == HeadState::complete && again.size == text->size(), "what we write is one head");
  require(again.method == head.method && again.target == head.target, "method and target arrive");
  require(again.fields.size() ==
              2 + static_cast<std::size_t>(std::distance(request.headers.begin(), request.headers.end())),
          "no field is lost or added");
  std::size_t i = 1;  // After Host.
  for (const auto& [name, value] : request.headers) {
    require(again.fields[i].name == name && again.fields[i].value == value, "fields arrive in their order");
    ++i;
  }
}

// What a log is told of a request, whether its head is good or not.
void require_line(std::string_view bytes, const std::optional<RequestHead>& head) {
  const RequestLine line = read_request_line(bytes);
  require(line.method.empty() || (is_token(line.method) && line.method.size() <= 64), "a method is a token");
  require(std::all_of(line.target.begin(), line.target.end(), [](char c) { return c > 0x20 && c < 0x7f; }),
          "a target is visible ASCII");
  require(!line.method.empty() || line.target.empty(), "no target without a method");
  if (head) require(line.method == head->method && line.target == head->target, "a good head's line is read");
}

}  // namespace

void fuzz_request_head(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t seed = input.byte();
  const std::size_t limit = input.head_limit();
  const std::string_view text = input.rest();

  RequestHead head;
  const HeadOutcome outcome = parse_request_head(text, limit, head);
  const std::optional<RequestHead> plain = plainly_read_request(text, limit);
  require(plain.has_value() == (outcome.state == HeadState::complete), "the grammar decides what a head is");
  require_line(text.substr(0, limit), plain);
  RequestHead in_pieces;
  const HeadOutcome pieces = read_in_pieces(text, limit, Cuts(seed), in_pieces);
  // Cut off before an LF that would have told, it may still be waited for.
  require(pieces.state == outcome.state ||
              (pieces.state == HeadState::incomplete && outcome.state == HeadState::bad),
          "cuts make no difference");
  if (outcome.state == HeadState::bad) {
    require(outcome.status >= 400 && outcome.status <= 505 && !outcome.why.empty(),
            "a refusal has a status and a reason");
    const std::string longer = std::string(text) + "\r\n\r\n";
    require(parse_request_head(longer, limit, in_pieces).state == HeadState::bad, "what is bad stays bad");
    return;
  }
  if (outcome.state != HeadState::complete) {
    require(text.size() < limit, "beyond the limit nothing is waited for");
    return;
  }
  require_same(head, *plain, "what the grammar says stands in the head");
  require_same(head, in_pieces, "cuts change nothing in the head");
  require_framing(head);
  require_writable(head);
}

}  // namespace facetheory::fuzz
