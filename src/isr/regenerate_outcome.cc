#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {
namespace {

struct OutcomeName {
  std::string_view operator()(const AlreadyFresh&) const { return "already_fresh"; }
  std::string_view operator()(const Regenerated&) const { return "published"; }
  std::string_view operator()(const Replayed&) const { return "replayed"; }
  std::string_view operator()(const LeaseHeld&) const { return "lease_held"; }
  std::string_view operator()(const RequestInProgress&) const { return "request_in_progress"; }
  std::string_view operator()(const RequestMismatch&) const { return "request_mismatch"; }
  std::string_view operator()(const RequestFailed&) const { return "request_failed"; }
  std::string_view operator()(const RenderFailed& failed) const {
    return failed.in_backoff ? "in_backoff" : "failed";
  }
  std::string_view operator()(const LeaseLost&) const { return "lease_lost"; }
  std::string_view operator()(const PublishRefused&) const { return "refused"; }
  std::string_view operator()(const NotStored&) const { return "not_stored"; }
  std::string_view operator()(const CalledStale&) const { return "called_stale"; }
  std::string_view operator()(const NoTurn&) const { return "no_turn"; }
};

}  // namespace

std::string_view name(const RegenerateOutcome& outcome) {
  return std::visit(OutcomeName(), outcome);
}

}  // namespace facetheory
