// What a successful unsafe request has made invalid is purged before its client gets the answer (RFC 9111, 4.4; RFC
// 9875). So nobody is served what was true before the change once the client knows that it was made; unless the table
// takes too long, which must not keep the answer from the client: then the purges go on in the background. For .cc
// files only, since it needs Asio.
#pragma once

#include "facetheory/gateway/gateway_parts.h"
#include "facetheory/http/server_request.h"
#include "facetheory/site/asked_page.h"
#include "facetheory/site/site.h"

namespace facetheory {

// `status` and `headers` are the origin's. `asked` has a route. All of it outlives the call; what is purged may take
// longer than the request lasts, and then needs the parts alone.
Task<void> purge_after(GatewayParts& parts, const Site& site, const ServerRequest& request,
                       const AskedPage& asked, int status, const Headers& headers);

}  // namespace facetheory
