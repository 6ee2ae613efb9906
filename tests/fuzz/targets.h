// The fuzz targets, one in each <name>_fuzz.cc, which says what the input is. See fuzz.h.
#pragma once

#include <string_view>

namespace facetheory::fuzz {

void fuzz_access_log(std::string_view input);
void fuzz_addresses(std::string_view input);
void fuzz_aws_answers(std::string_view input);
void fuzz_body_metadata(std::string_view input);
void fuzz_cache_control(std::string_view input);
void fuzz_chunked(std::string_view input);
void fuzz_config(std::string_view input);
void fuzz_dynamodb_json(std::string_view input);
void fuzz_field_values(std::string_view input);
void fuzz_http_date(std::string_view input);
void fuzz_invalidation(std::string_view input);
void fuzz_item_codec(std::string_view input);
void fuzz_lmdb_keys(std::string_view input);
void fuzz_number(std::string_view input);
void fuzz_origin_url(std::string_view input);
void fuzz_page_key(std::string_view input);
void fuzz_page_names(std::string_view input);
void fuzz_preconditions(std::string_view input);
void fuzz_replay(std::string_view input);
void fuzz_request_head(std::string_view input);
void fuzz_request_target(std::string_view input);
void fuzz_response_head(std::string_view input);
void fuzz_route(std::string_view input);
void fuzz_rows(std::string_view input);
void fuzz_storing(std::string_view input);
void fuzz_structured_fields(std::string_view input);
void fuzz_vary(std::string_view input);

}  // namespace facetheory::fuzz
