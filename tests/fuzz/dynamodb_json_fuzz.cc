// Input: JSON that a DynamoDB, or something that poses as one, answers with: an item.
//
// What is taken can be sent and read again, and is the same.
#include <string>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "facetheory/table/dynamodb_json.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {

void fuzz_dynamodb_json(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) {
    require(json.error().code == ErrorCode::corrupt, "what is no JSON is corrupt");
    return;
  }
  if (const auto value = value_from_json(*json)) {
    const std::string sent = boost::json::serialize(to_json(*value));
    const auto parsed = parse_json(sent);
    require(parsed.has_value(), "what is sent is JSON");
    const auto again = value_from_json(*parsed);
    require(again && *again == *value, "a value that is sent is read as it was");
  } else {
    require(value.error().code == ErrorCode::corrupt && !value.error().message.empty(), "a refusal says why");
  }
  const auto item = item_from_json(*json);
  if (!item) {
    require(item.error().code == ErrorCode::corrupt, "what is no item is corrupt");
    return;
  }
  require(item->attributes.find("pk") == nullptr && item->attributes.find("sk") == nullptr,
          "the key is no attribute");
  const auto again = item_from_json(to_json(*item));
  require(again && *again == *item, "an item that is sent is read as it was");
  const auto key = key_from_json(to_json(item->key));
  require(key && *key == item->key, "and so is its key");
}

}  // namespace facetheory::fuzz
