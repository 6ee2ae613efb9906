// These functions say which header fields go where: from one connection to the next, into the store, from the store to
// a client. They are pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/random.h"
#include "facetheory/http/message.h"
#include "facetheory/http/server_request.h"

namespace facetheory {

// Leaves out what concerns one connection only (RFC 9110, 7.6.1): Connection and all it names, Keep-Alive, Proxy-*, TE,
// Trailer, Transfer-Encoding, Upgrade. Call this on a request before anything is read from it for the cache key: else a
// client could have a field count here and be removed on the way to the origin. Host, Content-Length, Content-Type,
// Cache-Control, Cookie, Authorization and what else guards the page cannot be named away.
Headers end_to_end(const Headers& headers);

// The protocol that the request wants to go on with: "Connection: upgrade" and an Upgrade that names it; without both
// it is none. Nor is it in HTTP/1.0 (RFC 9110, 7.8). Nor is h2c: through it a client could speak to the origin past
// everything that is decided here.
std::optional<std::string> wanted_protocol(const Headers& headers, int minor_version);

// What this gateway adds to the Via of a message that it has received in HTTP/1.<minor_version> (RFC 9110, 7.6.3).
// Clients are told what all gateways are called. The origin is told the name of this one, by which it knows a request
// that comes back to it from one that another gateway passes on.
std::string via(int minor_version, std::string_view pseudonym = "facetheory");
// The same for a request, in whatever version of HTTP it came.
std::string via(const ServerRequest& request, std::string_view pseudonym);
// "facetheory-0b9c5ad26b1f", for one process: nobody can guess it, and so nobody can have requests taken for its own.
std::string new_pseudonym(Random& random);
// Whether the gateway of that name has passed the request on before.
bool has_passed(const Headers& request, std::string_view pseudonym);

// What a page replays, as BodyMetadata has it: names in lower case, the content type apart.
struct ReplayedHeaders {
  std::string content_type = {};
  std::vector<std::pair<std::string, std::string>> headers = {};

  friend bool operator==(const ReplayedHeaders&, const ReplayedHeaders&) = default;
};

// The fields of a response that are worth storing: end to end; without those that are made anew for each answer
// (Content-Length, Age, ETag: the page has its own place for it), without cookies and what else is meant for one
// client, without `withheld` (lower case: private="..." and no-cache="...").
ReplayedHeaders worth_storing(const Headers& response, const std::vector<std::string>& withheld = {});

// The stored fields after a 304 (RFC 9111, 3.2): each that it carries takes the place of those stored under its name,
// but for those that describe the stored bytes (Content-Encoding, Content-MD5, Content-Range).
ReplayedHeaders freshened(const ReplayedHeaders& stored, const Headers& not_modified,
                          const std::vector<std::string>& withheld = {});

// Whether a stored field is sent to clients. Three kinds are not: those that are meant for caches like this one
// (Cache-Tag, Surrogate-Key, Surrogate-Control), `age`, which is the age that the page had when it was asked for, and
// what no page can have: fields of one connection, of a body's length, of one client. Other writers, and people, may
// have stored these all the same.
bool sent_to_clients(std::string_view name);

// Whether a field of the page belongs into a 304 (RFC 9110, 15.4.5): not what describes a body that is not sent.
bool sent_with_not_modified(std::string_view name);

}  // namespace facetheory
