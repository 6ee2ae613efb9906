// The table on DynamoDB, or on whatever speaks its protocol.
//
// Reads are repeated freely. A single write whose fate is unknown (connection lost, 5xx) is not repeated: it
// ends as `ambiguous`. A transaction is, byte for byte under its client token, by which DynamoDB recognises
// it for ten minutes. Throttling and conflicts are repeated within the retry policy, then `unavailable`.
#pragma once

#include <memory>
#include <string>

#include "facetheory/base/platform.h"
#include "facetheory/base/result.h"
#include "facetheory/base/retry.h"
#include "facetheory/http/client.h"
#include "facetheory/table/table.h"

namespace facetheory {

struct DynamoDbOptions {
  HttpClientOptions http = {};
  RetryPolicy retry = {};
  std::chrono::milliseconds create_timeout{
      120'000};  // How long create() waits for the table to become usable.
};

// Opens the table of that name, without asking DynamoDB anything yet. Endpoint, region and credentials come
// from the platform's environment (see aws/service_client.h); `invalid` says what is missing there or wrong
// with the name.
Result<std::unique_ptr<Table>> open_dynamodb_table(std::string name,
                                                   const boost::asio::any_io_executor& executor,
                                                   const Platform& platform, DynamoDbOptions options = {});

}  // namespace facetheory
