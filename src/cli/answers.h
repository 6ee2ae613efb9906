// The outcomes of the protocol as answers: their word, their fields (named as in the rows), their exit code, and
// the sentence that says what to do about it.
#pragma once

#include <cstdint>
#include <string>

#include "facetheory/base/result.h"
#include "facetheory/cli/output.h"
#include "facetheory/isr/blocking.h"

namespace facetheory {

Answer done(std::string outcome, Fields fields = {});
Answer failed(const Error& error);
Answer usage(std::string message);
Answer misconfigured(const Error& mistakes);  // read_config gives them, a line each.
Answer somebody_else(std::string outcome, Fields fields, std::string message);

Fields fields_of(const Page& page);
Fields fields_of(const Page& page, const MetaRow& meta);
Fields fields_of(const LockRow& lock);  // Leaves out the token, which is its holder's alone.
Fields fields_of(const VersionRow& version);
Fields fields_of(const RequestRow& request);
Fields fields_of(const TagRow& tag);

Answer answer_of(const Page& page, const LeaseHeld& held, std::int64_t now);
Answer answer_of(const Page& page, const LeaseLost& lost, std::int64_t now);
Answer answer_of(const Page& page, const PublishRefused& refused);
Answer answer_of(const Page& page, const RequestInProgress& request, std::int64_t now);
Answer answer_of(const Page& page, const RequestMismatch& mismatch);
Answer answer_of(const Page& page, const RequestFailed& request);

}  // namespace facetheory
