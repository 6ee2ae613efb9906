// Input: a byte that says what follows: a list of objects or an error of S3 (XML), credentials (JSON), or one of the
// files that AWS's tools share.
//
// What is taken is whole; what is not is told apart from it.
#include <string>

#include "facetheory/aws/credentials_document.h"
#include "facetheory/aws/shared_config.h"
#include "facetheory/bodies/s3_answers.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

void require_object_list(std::string_view xml, std::string_view prefix) {
  const auto page = parse_s3_list(xml, prefix);
  if (!page) return;
  for (const BodyEntry& entry : page->entries)
    require(!entry.key.empty(), "an object has a key");
  require(!page->next || !page->next->empty(), "a list that goes on says where");
}

void require_credentials(std::string_view json) {
  const auto credentials = parse_credentials_document(json, "the endpoint");
  if (credentials) {
    require(!credentials->access_key_id.empty() && !credentials->secret_access_key.empty(),
            "credentials are whole");
  } else {
    require(credentials.error().code == ErrorCode::unauthorized &&
                credentials.error().message.starts_with("the endpoint"),
            "a refusal names who was asked");
  }
}

void require_shared_file(std::string_view text) {
  const auto sections = parse_config(text, "config");
  if (!sections) {
    require(sections.error().message.starts_with("config:"), "a mistake has a line");
    return;
  }
  std::string written;
  bool plain = true;
  for (const auto& [name, settings] : *sections) {
    plain = plain && name.find_first_of("'\"]") == std::string::npos && name.front() != ' ' &&
            name.back() != ' ' && name.find("  ") == std::string::npos &&
            name.find_first_of("\t\r\n") == std::string::npos;
    written += "[" + name + "]\n";
    for (const auto& [setting, value] : settings) {
      require(!setting.empty() && setting.find('\n') == std::string::npos &&
                  value.find('\n') == std::string::npos,
              "a setting is one line");
      plain = plain && setting.find('.') == std::string::npos && setting.front() != '#' &&
              setting.front() != ';' && setting.front() != '[';
      written.append(setting).append(" = ").append(value).append("\n");
    }
  }
  if (!plain) return;  // A nested setting is written on two lines; quotes and blanks are gone.
  const auto again = parse_config(written, "config");
  require(again && *again == *sections, "a plain file that is written again says the same");
}

}  // namespace

void fuzz_aws_answers(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t kind = input.byte();
  if (kind % 3 == 0) {
    require_object_list(input.rest(), "");
    require_object_list(input.rest(), "pages/");
    parse_s3_error(input.rest());
  } else if (kind % 3 == 1) {
    require_credentials(input.rest());
  } else {
    require_shared_file(input.rest());
  }
}

}  // namespace facetheory::fuzz
