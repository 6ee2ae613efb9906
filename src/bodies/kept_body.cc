#include "facetheory/bodies/kept_body.h"

#include <cstring>
#include <utility>

namespace facetheory {
namespace {

std::string packed(const BodyMetadata& metadata) {
  std::string fields;
  encode_bytes(metadata.content_type, fields);
  for (const auto& [name, value] : metadata.headers) {
    encode_bytes(name, fields);
    encode_bytes(value, fields);
  }
  return fields;
}

}  // namespace

KeptBytes::KeptBytes(std::string bytes) : size_(static_cast<std::uint32_t>(bytes.size())) {
  if (size_ > kMostCopied) {
    bytes.shrink_to_fit();  // Stores read into buffers that are larger.
    held_ = new std::string(std::move(bytes));
  } else if (size_ > 0) {
    auto* const copy = new char[size_];
    std::memcpy(copy, bytes.data(), size_);
    held_ = copy;
  }
}

KeptBytes::~KeptBytes() {
  if (size_ > kMostCopied) {
    delete static_cast<std::string*>(held_);
  } else {
    delete[] static_cast<char*>(held_);
  }
}

KeptBody::KeptBody(Body body)
    : bytes_(std::move(body.bytes)),
      status_(static_cast<std::uint16_t>(body.metadata.status)),
      fields_(packed(body.metadata)) {
  // Somebody may have changed the bytes since they were read.
  if (!body.on_disk || !body.on_disk->are(bytes())) return;
  file_ = body.on_disk->place().file;
  offset_ = body.on_disk->place().offset;
  checksum_ = body.on_disk->checksum();
}

std::string_view KeptBody::content_type() const {
  return Decoder(fields_.text()).bytes();
}

BodyMetadata KeptBody::metadata() const {
  BodyMetadata metadata;
  metadata.status = status_;
  metadata.content_type = content_type();
  each_header(
      [&](std::string_view name, std::string_view value) { metadata.headers.emplace_back(name, value); });
  return metadata;
}

Body KeptBody::body() const {
  return {std::string(bytes()), metadata(), on_disk()};
}

std::optional<StoredBytes> KeptBody::on_disk() const {
  if (!file_) return std::nullopt;
  return StoredBytes(FilePlace{file_, offset_}, bytes().size(), checksum_);
}

std::size_t KeptBody::memory() const {
  constexpr std::size_t kOwner = 32;  // What counts those who hold it.
  return kOwner + sizeof(KeptBody) + allocated(bytes().size()) + fields_.memory();
}

}  // namespace facetheory
