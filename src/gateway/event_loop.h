// EventLoop: where an HttpServer runs, and who answers there. For .cc files only, since it needs Asio.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/gateway/http_server.h"

namespace facetheory {

// The executor runs on one thread, until the server's drain() is done.
struct EventLoop {
  boost::asio::any_io_executor executor;
  ExchangeHandler handler;
};

}  // namespace facetheory
