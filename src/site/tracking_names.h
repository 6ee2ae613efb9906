// Names that tell where a visitor came from, and nothing about the page.
#pragma once

#include "facetheory/site/name_patterns.h"

namespace facetheory {

const NamePatterns& tracking_parameters();
const NamePatterns& tracking_cookies();

}  // namespace facetheory
