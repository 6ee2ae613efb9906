#include "facetheory/base/loop_bound.h"

#include <string>
#include <utility>

#include "facetheory/base/mistake.h"

namespace facetheory {

LoopBound LoopBound::to_loop(const boost::asio::any_io_executor& loop, const char* what) {
  const auto* of_context = loop.target<boost::asio::io_context::executor_type>();
  if (of_context == nullptr) return to_strand(loop, what);
  return {*of_context, what};
}

LoopBound LoopBound::to_strand(const boost::asio::any_io_executor& executor, const char* what) {
  const auto* of_context = executor.target<boost::asio::io_context::executor_type>();
  boost::asio::io_context* const context = of_context != nullptr ? &of_context->context() : nullptr;
  return {boost::asio::make_strand(executor), context, what};
}

LoopBound::LoopBound(boost::asio::io_context::executor_type loop, const char* what)
    : executor_(loop), loop_(loop), context_(&loop.context()), what_(what) {}

LoopBound::LoopBound(Strand strand, boost::asio::io_context* context, const char* what)
    : executor_(strand), strand_(std::move(strand)), context_(context), what_(what) {}

void LoopBound::used_elsewhere(const char* what) {
  end_program(std::string(what) + " was used on another thread than its own");
}

}  // namespace facetheory
