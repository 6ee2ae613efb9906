#include "facetheory/gateway/warm_text.h"

#include "facetheory/table/item_codec.h"

namespace facetheory {

WarmText::WarmText(std::string_view head, std::string_view host, std::string_view tenant,
                   const std::vector<Key>& rows) {
  std::string packed;
  for (const Key& row : rows) {
    encode_bytes(row.pk, packed);
    encode_bytes(row.sk, packed);
  }
  all_.reserve(head.size() + host.size() + tenant.size() + packed.size());
  const auto add = [this](std::string_view text) {
    all_.append(text);
    return static_cast<std::uint32_t>(all_.size());
  };
  ends_ = {add(head), add(host), add(tenant)};
  add(packed);
}

std::vector<Key> WarmText::rows() const {
  std::vector<Key> rows;
  Decoder decoder(std::string_view(all_).substr(ends_[2]));
  while (!decoder.at_end()) {
    Key& row = rows.emplace_back();
    row.pk = decoder.bytes();
    row.sk = decoder.bytes();
  }
  return rows;
}

}  // namespace facetheory
