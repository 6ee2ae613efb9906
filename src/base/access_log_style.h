// How the access log's lines look, as the configuration names it.
#pragma once

namespace facetheory {

enum class AccessLog { text, json, off };

}  // namespace facetheory
