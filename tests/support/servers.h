// Real servers for tests: each is a child process on a free loopback port that is gone when its object, or
// the test program, is; and the fault proxy that stands between our code and them.
//
// Constructors throw std::runtime_error, with what the server printed, when it does not answer in time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/environment.h"

#include "tests/support/temporary_directory.h"

namespace facetheory::test {

// A child process: killed and reaped by the destructor, and killed by the kernel if this process dies first.
// What it prints is collected. It must not fork: nothing would end its own children.
class ChildProcess {
 public:
  // The first word is looked up in PATH.
  explicit ChildProcess(std::vector<std::string> command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool running() const;
  std::string output() const;  // The latest of what it printed, stdout and stderr together.

  // Waits until the output contains the text; false: the process ended or the time was up.
  bool wait_for_output(std::string_view text, std::chrono::milliseconds deadline) const;
  // Waits for the end; the exit status, or 128 + signal. Throws when the time is up.
  int wait(std::chrono::milliseconds deadline);
  void kill();  // SIGKILL, and waits for the end.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The proxy accepts these alone; the servers behind it accept anything.
inline constexpr std::string_view kTestAccessKey = "AKIDTESTACCESSKEY001";
inline constexpr std::string_view kTestSecretKey = "not/a+secret/only+for/tests/4f1c9a2e77b0d3";
inline constexpr std::string_view kTestRegion = "us-east-1";

// Credentials, region and AWS_ENDPOINT_URL_<SERVICE> ("dynamodb", "s3") for a client of that endpoint.
std::map<std::string, std::string, std::less<>> aws_variables(std::string_view service,
                                                              std::string_view endpoint,
                                                              std::string_view session_token = {});

// Amazon's DynamoDB Local, in memory, one database for all credentials.
class DynamoDbLocal {
 public:
  DynamoDbLocal();
  const std::string& endpoint() const { return endpoint_; }  // "http://127.0.0.1:49152"

 private:
  std::unique_ptr<ChildProcess> process_;
  std::string endpoint_;
};

// s3rver on a temporary folder, with one bucket.
class S3Server {
 public:
  explicit S3Server(std::string bucket = "bodies");
  const std::string& endpoint() const { return endpoint_; }
  const std::string& bucket() const { return bucket_; }

  // An unsigned PUT, as somebody else would have made it: "/bucket" makes a bucket, "/bucket/key" an object.
  void put(std::string_view target, const std::map<std::string, std::string>& headers = {},
           std::string_view body = {}) const;

 private:
  TemporaryDirectory directory_;
  std::string bucket_;
  std::unique_ptr<ChildProcess> process_;
  std::string endpoint_;
};

// moto's S3, in memory. It checks no signatures, and honours `If-None-Match: *` by itself, so that clients speak to it
// without a proxy in between.
class MotoServer {
 public:
  MotoServer();
  const std::string& endpoint() const { return endpoint_; }

  Environment environment() const;  // For a client of it.
  void make_bucket(std::string_view bucket) const;

 private:
  std::unique_ptr<ChildProcess> process_;
  std::string endpoint_;
};

// One per test program, started by the first call, stopped at exit.
const std::string& shared_dynamodb_local();  // its endpoint
const S3Server& shared_s3_server();
const MotoServer& shared_moto();

// What the proxy does to a request; tests/servers/fault_proxy.py says precisely what.
enum class ProxyFault {
  throttle,
  conflict,
  delay,
  cut_before,    // The request is not forwarded.
  cut_after,     // It is, and its answer is dropped.
  cut_answer,    // It is, and the connection ends in the middle of the answer.
  error_before,  // 500 (or `status`), not forwarded.
  error_after,   // 500 (or `status`), forwarded.
  garbage,       // Forwarded; the answer is 200 with a senseless body.
  not_http,      // Not forwarded; the answer is not HTTP.
  corrupt,       // Forwarded; one byte of the answer's body is flipped.
};

std::string_view name(ProxyFault kind);

struct FaultRule {
  ProxyFault kind = ProxyFault::throttle;
  // "PutItem", "TransactWriteItems", "PutObject", "ListObjectsV2", ...; empty: any.
  std::string operation = {};
  int count = 1;  // For that many requests,
  int skip = 0;   // after letting so many through.
  std::chrono::milliseconds delay{100};
  int status = 500;       // For error_before and error_after.
  std::string code = {};  // Another error code than the kind's own, for throttle and error_*.
};

struct ProxyRequest {
  std::string operation;
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // Names in lower case.
  std::string body;                            // Its first 64 KiB.
};

// Stands in front of one server. It refuses, and counts, every request that is not signed with the test
// credentials. Each object is a proxy process of its own.
class FaultProxy {
 public:
  // `service` is "dynamodb" or "s3".
  FaultProxy(std::string service, const std::string& upstream, std::string session_token = {});

  const std::string& endpoint() const { return endpoint_; }
  // A client with this environment uses this proxy.
  Environment environment() const;

  void inject(const FaultRule& rule);
  // Requests that no rule touches meet these faults with these probabilities, repeatably.
  void randomise(std::uint64_t seed, const std::map<ProxyFault, double>& probabilities,
                 std::string operation = {});
  void clear();  // No more faults; counters stay.
  void reset();  // No more faults; counters and log start anew.

  struct Counters {
    std::map<std::string, int> requests;   // Per operation.
    std::map<std::string, int> forwarded;  // Per operation; those that reached the server.
    std::map<std::string, int> faults;     // Per kind, those applied.
    int pending = 0;                       // Rules not used up yet.
    std::vector<std::string> signature_failures;
  };
  Counters counters() const;
  std::vector<ProxyRequest> log() const;  // The latest 500, in order of arrival.

 private:
  std::string service_;
  std::string session_token_;
  std::unique_ptr<ChildProcess> process_;
  std::string endpoint_;
};

}  // namespace facetheory::test
