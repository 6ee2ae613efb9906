// Renders beside the protocol: within a limit, and as the page that would be stored.
#pragma once

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/regenerate_options.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// Awaits the renderer, which is cancelled at the limit: that is an error then. What it throws, this throws.
Task<Result<Rendered>> render_within(Clock& clock, Duration limit, Renderer renderer, RenderContext context);

// What META would be of a page that is not stored.
MetaRow would_be(const Isr& isr, const Rendered& rendered);

}  // namespace facetheory
