// The program's allocator (mimalloc, unless a sanitizer brings its own), and what it is told at the start.
#pragma once

namespace facetheory {

// After this call the process ends, by SIGABRT and with a line on stderr, as soon as no memory is left, whichever
// function asked for it. `operator new` ends it anyway; but what asks through aligned_alloc, as Asio does for the
// frames of coroutines, gets null and throws, which would become an answer 500 to somebody while the process goes on
// without memory. A supervisor starts it again.
void end_when_memory_is_gone();

// A million pages of a site lie in more small pages of memory than the processor can remember the places of.
void use_large_pages();

}  // namespace facetheory
