#include "facetheory/table/dynamodb_json.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace facetheory {
namespace {

namespace json = boost::json;

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text.push_back(j <= count ? kBase64[group >> (18 - 6 * j) & 63U] : '=');
    }
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = last && text[i + 3] == '=' ? (text[i + 2] == '=' ? 2 : 1) : 0;
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      std::size_t digit = 0;
      if (j < 4 - padding) {
        digit = kBase64.find(text[i + j]);
        if (digit == std::string_view::npos) return std::nullopt;
      }
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t j = 0; j < 3 - padding; ++j)
      bytes.push_back(static_cast<char>(group >> (16 - 8 * j) & 255U));
  }
  return bytes;
}

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

// What stands there, short enough for a message.
std::string excerpt(const json::value& value) {
  std::string text = json::serialize(value);
  constexpr std::size_t kLongest = 80;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

Error malformed(const std::string& expected, const json::value& found) {
  return {ErrorCode::corrupt, "expected " + expected + ", found " + excerpt(found)};
}

json::value typed(std::string_view type, json::value value) {
  json::object object;
  object.emplace(json::string_view(type.data(), type.size()), std::move(value));
  return object;
}

struct ToJson {
  json::value operator()(const std::string& text) const { return json::string(text); }
  json::value operator()(const Number& number) const { return json::string(number.text()); }
  json::value operator()(const Binary& binary) const { return json::string(base64_encode(binary.bytes)); }
  json::value operator()(bool boolean) const { return boolean; }
  json::value operator()(Null) const { return true; }
  json::value operator()(const List& list) const {
    json::array array;
    array.reserve(list.size());
    for (const Value& value : list)
      array.push_back(to_json(value));
    return array;
  }
  json::value operator()(const Attributes& map) const {
    json::object object;
    object.reserve(map.size());
    for (const Attribute& attribute : map)
      object.emplace(attribute.name, to_json(attribute.value));
    return object;
  }
  template <typename T>
  json::value operator()(const SetOf<T>& set) const {
    json::array array;
    array.reserve(set.size());
    for (const T& element : set)
      array.push_back((*this)(element));
    return array;
  }
};

Result<Value> string_from(const json::value& value) {
  const json::string* text = value.if_string();
  if (text == nullptr) return malformed("a string", value);
  return Value(std::string(view(*text)));
}

Result<Value> number_from(const json::value& value) {
  const json::string* text = value.if_string();
  if (text == nullptr) return malformed("a number written as a string", value);
  Result<Number> number = Number::parse(view(*text));
  if (!number) return malformed("a number", value);
  return Value(std::move(number).value());
}

Result<Value> binary_from(const json::value& value) {
  const json::string* text = value.if_string();
  if (text == nullptr) return malformed("base64", value);
  std::optional<std::string> bytes = base64_decode(view(*text));
  if (!bytes) return malformed("base64", value);
  return Value(Binary{std::move(*bytes)});
}

template <typename T>
Result<Value> set_from(const json::value& value, Result<Value> (*element_from)(const json::value&)) {
  const json::array* array = value.if_array();
  if (array == nullptr || array->empty()) return malformed("a set, an array of at least one element", value);
  std::vector<T> elements;
  elements.reserve(array->size());
  for (const json::value& entry : *array) {
    Result<Value> element = element_from(entry);
    if (!element) return element.error();
    elements.push_back(std::move(*element->as<T>()));
  }
  SetOf<T> set(std::move(elements));
  if (set.size() != array->size()) return malformed("a set without repetitions", value);
  return Value(std::move(set));
}

Result<Attributes> attributes_from(const json::object& object) {
  Attributes attributes;
  attributes.reserve(object.size());
  for (const json::key_value_pair& entry : object) {
    std::string name(entry.key().data(), entry.key().size());
    Result<Value> value = value_from_json(entry.value());
    if (!value) {
      Error error = value.error();
      error.message = "attribute \"" + name + "\": " + error.message;
      return error;
    }
    attributes.set(std::move(name), std::move(value).value());
  }
  return attributes;
}

Result<std::string> key_part(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(json::string_view(name.data(), name.size()));
  const json::object* typed_value = value == nullptr ? nullptr : value->if_object();
  const json::value* text = typed_value == nullptr ? nullptr : typed_value->if_contains("S");
  if (text == nullptr || !text->is_string()) {
    return malformed("an item with a string \"" + std::string(name) + "\"", object);
  }
  return std::string(view(text->get_string()));
}

}  // namespace

json::value to_json(const Value& value) {
  return typed(name(value.type()), std::visit(ToJson{}, value.variant()));
}

json::object to_json(const Key& key) {
  json::object object;
  object.emplace("pk", to_json(Value(key.pk)));
  object.emplace("sk", to_json(Value(key.sk)));
  return object;
}

json::object to_json(const Item& item) {
  json::object object = to_json(item.key);
  object.reserve(2 + item.attributes.size());
  for (const Attribute& attribute : item.attributes)
    object.emplace(attribute.name, to_json(attribute.value));
  return object;
}

Result<Value> value_from_json(const json::value& json) {
  const json::object* object = json.if_object();
  if (object == nullptr || object->size() != 1)
    return malformed("a value of one type, as in {\"S\":\"text\"}", json);
  const std::string_view type(object->begin()->key().data(), object->begin()->key().size());
  const json::value& content = object->begin()->value();
  if (type == "S") return string_from(content);
  if (type == "N") return number_from(content);
  if (type == "B") return binary_from(content);
  if (type == "BOOL") {
    if (!content.is_bool()) return malformed("true or false", content);
    return Value(content.get_bool());
  }
  if (type == "NULL") {
    if (!content.is_bool() || !content.get_bool()) return malformed("true as the content of NULL", content);
    return Value(Null{});
  }
  if (type == "L") {
    const json::array* array = content.if_array();
    if (array == nullptr) return malformed("an array", content);
    List list;
    list.reserve(array->size());
    for (const json::value& entry : *array) {
      Result<Value> value = value_from_json(entry);
      if (!value) return value;
      list.push_back(std::move(value).value());
    }
    return Value(std::move(list));
  }
  if (type == "M") {
    const json::object* map = content.if_object();
    if (map == nullptr) return malformed("an object", content);
    Result<Attributes> attributes = attributes_from(*map);
    if (!attributes) return attributes.error();
    return Value(std::move(attributes).value());
  }
  if (type == "SS") return set_from<std::string>(content, string_from);
  if (type == "NS") return set_from<Number>(content, number_from);
  if (type == "BS") return set_from<Binary>(content, binary_from);
  return malformed("one of the types S, N, B, BOOL, NULL, L, M, SS, NS, BS", json);
}

Result<Key> key_from_json(const json::value& json) {
  const json::object* object = json.if_object();
  if (object == nullptr) return malformed("a key", json);
  Result<std::string> pk = key_part(*object, "pk");
  if (!pk) return pk.error();
  Result<std::string> sk = key_part(*object, "sk");
  if (!sk) return sk.error();
  return Key{std::move(pk).value(), std::move(sk).value()};
}

Result<Item> item_from_json(const json::value& json) {
  const json::object* object = json.if_object();
  if (object == nullptr) return malformed("an item", json);
  Result<Key> key = key_from_json(json);
  if (!key) return key.error();
  Result<Attributes> attributes = attributes_from(*object);
  if (!attributes) {
    Error error = attributes.error();
    error.message = "item " + to_string(key.value()) + ": " + error.message;
    return error;
  }
  attributes->erase("pk");
  attributes->erase("sk");
  return Item{std::move(key).value(), std::move(attributes).value()};
}

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = 512;  // An attribute of 32 levels takes two of JSON's for each.
  json::error_code problem;
  json::value value =
      json::parse(json::string_view(text.data(), text.size()), problem, json::storage_ptr(), options);
  if (problem) return Error{ErrorCode::corrupt, "expected JSON: " + problem.message()};
  return value;
}

}  // namespace facetheory
