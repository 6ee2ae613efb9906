#include "facetheory/bodies/s3_answers.h"

#include <charconv>
#include <cstdio>
#include <ctime>
#include <utility>

#include <pugixml.hpp>

namespace facetheory {
namespace {

// "2026-11-15T08:55:12.000Z"
std::optional<WallTime> parse_s3_time(const char* text) {
  std::tm parts{};
  int milliseconds = 0;
  if (std::sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &milliseconds) < 6) {
    return std::nullopt;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return WallTime(std::chrono::seconds(::timegm(&parts)) + std::chrono::milliseconds(milliseconds));
}

}  // namespace

S3Error parse_s3_error(std::string_view xml) {
  S3Error error;
  pugi::xml_document document;
  if (document.load_buffer(xml.data(), xml.size())) {
    const pugi::xml_node node = document.child("Error");
    error.code = node.child_value("Code");
    error.message = node.child_value("Message");
    error.region = node.child_value("Region");
  }
  return error;
}

std::optional<BodyPage> parse_s3_list(std::string_view xml, std::string_view prefix) {
  pugi::xml_document document;
  // Keys may consist of what XML takes for nothing.
  if (!document.load_buffer(xml.data(), xml.size(), pugi::parse_default | pugi::parse_ws_pcdata))
    return std::nullopt;
  const pugi::xml_node result = document.child("ListBucketResult");
  if (!result) return std::nullopt;
  BodyPage page;
  for (const pugi::xml_node object : result.children("Contents")) {
    const std::string_view key = object.child_value("Key");
    if (!key.starts_with(prefix) || key.size() == prefix.size()) continue;
    const std::string_view size = object.child_value("Size");
    BodyEntry entry{std::string(key.substr(prefix.size())), 0, WallTime()};
    const auto [end, failure] = std::from_chars(size.data(), size.data() + size.size(), entry.size);
    const auto modified_at = parse_s3_time(object.child_value("LastModified"));
    if (failure != std::errc() || end != size.data() + size.size() || !modified_at) return std::nullopt;
    entry.modified_at = *modified_at;
    page.entries.push_back(std::move(entry));
  }
  if (std::string_view(result.child_value("IsTruncated")) == "true") {
    page.next = result.child_value("NextContinuationToken");
    if (page.next->empty()) return std::nullopt;
  }
  return page;
}

}  // namespace facetheory
