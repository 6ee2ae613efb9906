// Opens a body store by its URI:
//   memory:               in this process, gone with it
//   lmdb:<folder>         on this machine, small ones in an embedded table; the folder is made if it is not there
//   file:<folder>         the same, each in a file of its own
//   s3://bucket[/prefix]  in S3, or whatever speaks its protocol at AWS_ENDPOINT_URL_S3
//   s3:                   the same, named by FACETHEORY_ISR_BUCKET and FACETHEORY_ISR_PREFIX (default: isr)
// Either of the last two may end with ?pointers=complete or ?pointers=relative (s3_bodies.h says what these are);
// without, FACETHEORY_ISR_POINTERS says so, and then it is complete.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "facetheory/base/platform.h"
#include "facetheory/base/result.h"
#include "facetheory/bodies/body_store.h"

namespace facetheory {

// The executor carries the store's own network I/O and must keep running while operations are awaited.
Result<std::unique_ptr<BodyStore>> open_bodies(std::string uri, const boost::asio::any_io_executor& executor,
                                               Platform platform = {});

// The same store's URI as it is whoever uses it, from wherever: with what variables gave, with the whole path.
std::string complete_bodies_uri(const std::string& uri, const Environment& environment);

// How the rows of a body store in S3 name bodies, "complete" or "relative" (s3_bodies.h), and what says so:
// "?pointers=relative", "FACETHEORY_ISR_POINTERS" or "the default". Empty: it is another store, which has one form.
// `invalid`: what says so says something else, and opening would be refused.
struct ChosenPointers {
  std::string form;
  std::string why;
};
Result<std::optional<ChosenPointers>> chosen_pointers(const std::string& uri, const Environment& environment);

}  // namespace facetheory
