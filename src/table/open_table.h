// Opens a table by its URI:
//   memory:            in this process, gone with it
//   lmdb:<directory>   on this machine, shared by its processes; made if it is not there
//   dynamodb:<table>   on DynamoDB, or whatever speaks its protocol at AWS_ENDPOINT_URL_DYNAMODB; the table
//   must exist or
//                      be made with create()
//   dynamodb:          the same, named by FACETHEORY_CACHE_TABLE_NAME (or, with a warning,
//   APPTHEORY_CACHE_TABLE_NAME)
#pragma once

#include <memory>
#include <string>

#include "facetheory/base/platform.h"
#include "facetheory/base/result.h"
#include "facetheory/table/table.h"

namespace facetheory {

// The executor carries the table's own I/O and must keep running while operations are awaited.
Result<std::unique_ptr<Table>> open_table(std::string uri, const boost::asio::any_io_executor& executor,
                                          Platform platform = {});

// The same table's URI as it is whoever uses it, from wherever: with the name that a variable gave, with the whole
// path.
std::string complete_table_uri(const std::string& uri, const Environment& environment);

// Whether the URI names an embedded table (lmdb:) that nobody has made yet: opening it would make it. Of a table
// elsewhere, and where that cannot be told, it is false.
bool is_yet_to_be_made(const std::string& uri);

}  // namespace facetheory
