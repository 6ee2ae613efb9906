// Bodies as objects of an S3 bucket, or of whatever speaks its protocol at AWS_ENDPOINT_URL_S3; format in
// docs/formats.md.
//
// A body's object is <prefix>/<key>. Reading accepts all the forms that rows of any writer carry: s3://bucket/key, keys
// with the prefix or without, complete keys outside of the prefix. The one that rows are written in (PointerForm) is
// tried first. Objects of other writers can be read; what they lack in metadata is left at its default. Writes carry
// `If-None-Match: *`, so that a key is never written twice even by two machines. Reads never say `ambiguous`.
#pragma once

#include <memory>
#include <string>

#include "facetheory/aws/service_client.h"
#include "facetheory/base/platform.h"
#include "facetheory/bodies/body_store.h"

namespace facetheory {

// What rows carry as s3_key of a body that is written here. Every form is read, whatever is written.
enum class PointerForm {
  complete,  // The whole key of the object, as readers expect who know of no prefix.
  relative,  // The prefix is left out: some readers put it before every pointer themselves.
};

struct S3Location {
  std::string bucket;
  std::string prefix = {};  // It neither begins nor ends with a slash; empty: the whole bucket.
  PointerForm pointers = PointerForm::complete;
};

// Says where requests for a bucket go: by host name, or by path at a custom endpoint and where the bucket's name
// contains a dot (which the service's certificate would not cover).
struct S3Address {
  Origin origin;
  std::string path;  // "/" or "/bucket/"; the object's key follows.
};
S3Address address_of(const std::string& bucket, const ServiceEndpoint& endpoint);

class S3Bodies final : public BodyStore {
 public:
  // Addresses the bucket by path at a custom endpoint and where its name contains dots, otherwise by host
  // name.
  S3Bodies(const boost::asio::any_io_executor& executor, S3Location location, ServiceEndpoint endpoint,
           std::shared_ptr<CredentialsProvider> credentials, Platform platform, HttpClientOptions http = {},
           RetryPolicy retry = {});
  ~S3Bodies() override;

  std::string reference(std::string_view key) const override;
  std::string address(std::string_view key) const override;

 private:
  struct State;

  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  std::shared_ptr<const State> state_;
};

}  // namespace facetheory
