#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "facetheory/base/sha256.h"
#include "facetheory/isr/requests.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

using ::testing::HasSubstr;

using Inputs = std::map<std::string, std::string>;

TEST(IdempotencyKey, IsTheIdItself) {
  for (const auto key_of : {key_of_request_id, key_of_message_id}) {
    for (const std::string id : {"6f1c", "a b#c/ä", "REQ#1"}) {
      const auto key = key_of(id);
      ASSERT_TRUE(key) << id;
      EXPECT_EQ(*key, id);
    }
  }
}

TEST(IdempotencyKey, RefusesAnIdThatIsEmptyOrNoText) {
  const auto id_refusal = [](const Result<std::string>& key) {
    if (key) return "accepted " + *key;
    EXPECT_EQ(key.error().code, ErrorCode::invalid);
    return key.error().message;
  };
  EXPECT_THAT(id_refusal(key_of_request_id("")), HasSubstr("request id is empty"));
  EXPECT_THAT(id_refusal(key_of_request_id("a\nb")),
              HasSubstr("request id \"a\\x0ab\" contains a control character"));
  EXPECT_THAT(id_refusal(key_of_request_id("a\x7f")), HasSubstr("control character"));
  EXPECT_THAT(id_refusal(key_of_request_id("\xff")), HasSubstr("request id \"\\xff\" is not UTF-8"));
  EXPECT_THAT(id_refusal(key_of_message_id("")), HasSubstr("message id is empty"));
  EXPECT_THAT(id_refusal(key_of_message_id("a\tb")),
              HasSubstr("message id \"a\\x09b\" contains a control character"));
  EXPECT_THAT(id_refusal(key_of_message_id("\xc3")), HasSubstr("message id \"\\xc3\" is not UTF-8"));
}

TEST(IdempotencyKey, OfAVersionIsTheHashOfItsThreeParts) {
  EXPECT_EQ(key_of_version("/news/42", "deploy-7", "3"),
            "d773f7e684d285413db4a875ad950fcd2bbb2f5cc4ba3bd11b2d74b8790bd851");
}

TEST(RequestSk, CarriesTheKeyOrItsHashWhereThatDoesNotFit) {
  EXPECT_EQ(request_sk("6f1c"), "REQ#6f1c");
  const std::string longest(1020, 'k');
  EXPECT_EQ(request_sk(longest), "REQ#" + longest);
  EXPECT_EQ(request_sk(longest).size(), kMaxSkBytes);
  EXPECT_EQ(request_sk(longest + "k"),
            "REQ#bfa073913dc2fc5c2d9ae4675b6c83877c455ba92f71857741dc8c3b1df031d5");
}

// Expected forms are those of Python's json.dumps and of RFC 8785 itself, section 3.2.3.
TEST(CanonicalJson, IsAnObjectWithoutSpaces) {
  EXPECT_EQ(canonical_json({}), "{}");
  EXPECT_EQ(canonical_json({{"tenant", "acme"}, {"cache_key", "/news/42"}, {"policy", "3"}}),
            R"({"cache_key":"/news/42","policy":"3","tenant":"acme"})");
  EXPECT_EQ(canonical_json({{"", ""}}), R"({"":""})");
}

TEST(CanonicalJson, SortsTheNamesOfTheRfcsExampleAsItDoes) {
  EXPECT_EQ(canonical_json({{"\u20ac", "Euro Sign"},
                            {"\r", "Carriage Return"},
                            {"\ufb33", "Hebrew Letter Dalet With Dagesh"},
                            {"1", "One"},
                            {"\U0001f600", "Emoji: Grinning Face"},
                            {"\u0080", "Control"},
                            {"\u00f6", "Latin Small Letter O With Diaeresis"}}),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\","
            "\"\u00f6\":\"Latin Small Letter O With Diaeresis\",\"\u20ac\":\"Euro Sign\","
            "\"\U0001f600\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST(CanonicalJson, SortsByUtf16CodeUnitsNotByCodePoints) {
  // The order of Python's sorted(names, key=lambda name: name.encode("utf-16-be")).
  const std::vector<std::string> sorted{"",        "A",       "a",          "aa",         "a\U00010000",
                                        "a\ue000", "b",       "\x7f",       "\u00e9",     "\u07ff",
                                        "\u0800",  "\ud7ff",  "\U00010000", "\U0001f600", "\U0010ffff",
                                        "\ue000",  "\ue000a", "\uefff",     "\uf000",     "\uffff"};
  Inputs inputs;
  std::string expected;
  for (const std::string& name : sorted) {
    inputs[name] = "";
    expected += (expected.empty() ? "{\"" : ",\"") + name + "\":\"\"";
  }
  EXPECT_EQ(canonical_json(inputs), expected + "}");
}

TEST(CanonicalJson, EscapesWhatMustBeEscapedAndNothingElse) {
  EXPECT_EQ(canonical_json({{"\"\\\b\t\n\f\r", "\"\\\b\t\n\f\r"}}), R"({"\"\\\b\t\n\f\r":"\"\\\b\t\n\f\r"})");
  EXPECT_EQ(canonical_json({{"a", std::string("\0\x01\x0b\x0e\x1b\x1f", 6)}}),
            R"({"a":"\u0000\u0001\u000b\u000e\u001b\u001f"})");
  EXPECT_EQ(canonical_json({{"a", "/<>&'\x7f\u0080\u2028\u2029\ufeffé日😀"}}),
            "{\"a\":\"/<>&'\x7f\u0080\u2028\u2029\ufeffé日😀\"}");
}

TEST(RequestHash, IsTheHashOfTheCanonicalForm) {
  EXPECT_EQ(request_hash({}), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  EXPECT_EQ(request_hash({{"tenant", "acme"}, {"cache_key", "/news/42"}, {"policy", "3"}}),
            "d4d71d28282d306f8ba8d3b28118b239e3f7bfb5b9088b7dbcc26c0c52b0298f");
}

TEST(RequestHash, HasThePolicyWhateverTheCallersOwnInputsAreCalled) {
  const Page page{.pk = "CACHE#0"};
  const PublishPolicy policy{.revalidate = std::chrono::seconds(60), .history = 2};
  for (const char* name : {"page", "history", "revalidate_seconds", "ttl_seconds"}) {
    EXPECT_EQ(request_inputs(page, policy, {{name, "9"}, {"a", "b"}}),
              request_inputs(page, policy, {{"a", "b"}}))
        << name;
  }
}

TEST(RequestHash, TellsPagesAndPoliciesApart) {
  const auto hash = [](const Page& page, const PublishPolicy& policy) {
    return request_hash(request_inputs(page, policy, {}));
  };
  using std::chrono::seconds;
  const Page page{.pk = "CACHE#0"};
  const PublishPolicy policy{.revalidate = seconds(60), .history = 2, .ttl = seconds(600)};
  const std::string same = hash(page, policy);
  EXPECT_EQ(hash(page, policy), same);
  EXPECT_NE(hash(Page{.pk = "CACHE#1"}, policy), same);
  EXPECT_NE(hash(page, {.revalidate = seconds(61), .history = 2, .ttl = seconds(600)}), same);
  EXPECT_NE(hash(page, {.revalidate = {}, .history = 2, .ttl = seconds(600)}), same);
  EXPECT_NE(hash(page, {.revalidate = seconds(60), .history = 2, .ttl = seconds(601)}), same);
  EXPECT_NE(hash(page, {.revalidate = seconds(60), .history = 3, .ttl = seconds(600)}), same);
}

TEST(RequestHash, TellsInputsApartThatLookAlikeWhenJoined) {
  EXPECT_NE(request_hash({{"a", "b\",\"c\":\"d"}}), request_hash({{"a", "b"}, {"c", "d"}}));
  EXPECT_NE(request_hash({{"a", ""}}), request_hash({{"", "a"}}));
  EXPECT_NE(request_hash({{"a", "\\n"}}), request_hash({{"a", "\n"}}));
}

}  // namespace
}  // namespace facetheory
