// Values and items in DynamoDB's JSON: {"N":"12"}, {"pk":{"S":"..."},...}. Reading is strict: what DynamoDB
// would not send is `corrupt`, with a message that says what stood where and what was expected.
#pragma once

#include <string_view>

#include <boost/json/fwd.hpp>

#include "facetheory/base/result.h"
#include "facetheory/table/item.h"

namespace facetheory {

boost::json::value to_json(const Value& value);
boost::json::object to_json(const Key& key);
boost::json::object to_json(const Item& item);

Result<Value> value_from_json(const boost::json::value& json);
// An error names the item's key, as far as that could be read.
Result<Item> item_from_json(const boost::json::value& json);
Result<Key> key_from_json(const boost::json::value& json);

// Parses a whole message, nested as deep as items can be.
Result<boost::json::value> parse_json(std::string_view text);

}  // namespace facetheory
