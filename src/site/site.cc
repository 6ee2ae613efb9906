#include "facetheory/site/site.h"

#include <utility>

namespace facetheory {
namespace {

HttpClientOptions options_of(const OriginConfig& origin) {
  HttpClientOptions options;
  options.connect_timeout = origin.connect_timeout;
  options.read_timeout = origin.read_timeout;
  options.total_timeout = origin.render_timeout;
  options.max_connections = static_cast<std::size_t>(origin.connections);
  options.max_streams = static_cast<std::size_t>(origin.streams);
  options.ca_file = origin.ca_file;
  options.verify_tls = origin.verify_tls;
  options.one_thread = true;
  return options;
}

OriginClients clients_of(const Config& config, const boost::asio::any_io_executor& executor) {
  OriginClients clients;
  for (const auto& [name, origin] : config.origins) {
    HttpClientOptions options = options_of(origin);
    options.max_response_bytes = config.limits.page_bytes;
    clients.emplace(name, std::make_shared<HttpClient>(executor, origin.origin, std::move(options)));
  }
  return clients;
}

}  // namespace

Site::Site(Config with, const boost::asio::any_io_executor& renders)
    : config(std::move(with)), routes(route_table(config)), renderers(clients_of(config, renders)) {}

OriginClients passing_clients(const Config& config, const boost::asio::any_io_executor& loop) {
  return clients_of(config, loop);
}

std::optional<std::string> host_for(const OriginConfig& origin, const std::string& client_host) {
  switch (origin.host) {
    case HostPolicy::client:
      return client_host;
    case HostPolicy::fixed:
      return origin.host_name;
    case HostPolicy::origin:
      break;
  }
  return std::nullopt;
}

}  // namespace facetheory
