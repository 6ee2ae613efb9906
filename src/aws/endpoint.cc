#include <optional>
#include <utility>

#include "facetheory/aws/service_client.h"
#include "facetheory/aws/shared_config.h"
#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

// The profile, read when the environment does not say it all.
class LazyProfile {
 public:
  explicit LazyProfile(const Environment& environment) : environment_(environment) {}

  const Result<Profile>& get() {
    if (!profile_) profile_ = Profile::load(environment_);
    return *profile_;
  }

 private:
  const Environment& environment_;
  std::optional<Result<Profile>> profile_;
};

}  // namespace

Result<ServiceEndpoint> resolve_endpoint(std::string_view service, const Environment& environment) {
  ServiceEndpoint endpoint;
  endpoint.scope.service = service;
  LazyProfile profile(environment);

  std::string source = "AWS_ENDPOINT_URL_" + upper_case(service);
  std::optional<std::string> url = environment.get(source);
  if (!url) {
    source = "AWS_ENDPOINT_URL";
    url = environment.get(source);
  }
  if (!url) {
    if (!profile.get()) return profile.get().error();
    source = "endpoint_url of profile \"" + profile.get()->name() + "\"";
    url = profile.get()->endpoint_url(service);
  }

  std::string region_source = "AWS_REGION";
  std::optional<std::string> region = environment.get("AWS_REGION");
  if (!region) {
    region_source = "AWS_DEFAULT_REGION";
    region = environment.get("AWS_DEFAULT_REGION");
  }
  if (!region) {
    if (!profile.get()) return profile.get().error();
    region_source = "region of profile \"" + profile.get()->name() + "\"";
    region = profile.get()->get("region");
  }
  if (!region && url) region = "us-east-1";
  if (!region) {
    return Error{ErrorCode::invalid, "no AWS region for " + std::string(service) +
                                         ": set AWS_REGION (AWS_DEFAULT_REGION and profile \"" +
                                         profile.get()->name() + "\" of " + profile.get()->files() +
                                         " name none either), or AWS_ENDPOINT_URL_" + upper_case(service) +
                                         " for another service"};
  }
  // It becomes part of a host name and of every signature.
  if (region->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
    return Error{ErrorCode::invalid,
                 region_source + " is \"" + *region + "\", which is no AWS region; one looks like eu-west-1"};
  }
  endpoint.scope.region = *region;

  if (url) {
    Result<Origin> origin = parse_origin(*url);
    if (!origin) return Error{ErrorCode::invalid, source + ": " + origin.error().message};
    endpoint.origin = *std::move(origin);
    endpoint.custom = true;
  } else {
    const std::string suffix = region->starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
    endpoint.origin = {true, std::string(service) + "." + *region + suffix, 443};
  }
  return endpoint;
}

}  // namespace facetheory
