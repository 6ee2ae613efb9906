// Task<T>: what every operation that may wait returns. It is Asio's awaitable on any executor.
//
// This header only declares it, so that contracts stay light. A file that defines or awaits a Task includes
// <boost/asio/awaitable.hpp> itself.
#pragma once

namespace boost::asio {
class any_io_executor;
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

namespace facetheory {

template <typename T>
using Task = boost::asio::awaitable<T, boost::asio::any_io_executor>;

}  // namespace facetheory
