// Site: a configuration made ready for use: its routes by what a request names, its origins with their connections.
//
// Does not change; a reload makes another one, and requests under way end with the one they began with.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "facetheory/base/task.h"
#include "facetheory/http/client.h"
#include "facetheory/site/config.h"
#include "facetheory/site/route.h"

namespace facetheory {

using OriginClients = std::map<std::string, std::shared_ptr<HttpClient>, std::less<>>;

struct Site {
  // Renders run on that executor.
  Site(Config with, const boost::asio::any_io_executor& renders);

  const Config config;
  const RouteTable routes;        // Points into the config.
  const OriginClients renderers;  // By the origin's name; an answer beyond page_bytes is `exhausted`.
};

// Connections for requests that are passed on, of one event loop.
OriginClients passing_clients(const Config& config, const boost::asio::any_io_executor& loop);

// What the origin is asked for instead of its own name; empty: its own.
std::optional<std::string> host_for(const OriginConfig& origin, const std::string& client_host);

}  // namespace facetheory
