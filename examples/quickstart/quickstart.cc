// One page, two workers. The first takes the page's lease, renders and publishes; the second is refused while the
// lease is held, and finds the page when it is published.
//
//   quickstart [TABLE_URI BODIES_URI]      default: lmdb: and file: in folders below the current one
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "facetheory/isr/blocking.h"

namespace {

using namespace facetheory;
using namespace std::chrono_literals;

// Good enough here; a service would look at the code, which says what to do next.
template <typename T>
T require(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

Rendered render() {
  Rendered page;
  page.body.bytes = "<h1>Product 42</h1>\n";
  page.body.metadata.content_type = "text/html; charset=utf-8";
  page.revalidate = 60s;
  page.tags = {"products"};
  return page;
}

void tour(BlockingIsr& isr) {
  const Page page = require(page_of("/products/42"));
  require(isr.create_table());
  require(isr.purge(page));  // So that the tour can be taken again.

  const AcquireOutcome first = require(isr.acquire(page, 30s, "worker 1"));
  const Lease& lease = std::get<Lease>(first);
  std::cout << "Worker 1 holds the lease of " << to_string(page) << " and renders the page.\n";

  const AcquireOutcome second = require(isr.acquire(page, 30s, "worker 2"));
  const auto& held = std::get<LeaseHeld>(second);
  std::cout << "Worker 2 is refused: " << held.lock.owner.value_or("somebody") << " holds it for "
            << held.until - epoch_seconds(system_clock().now()) << " s more.\n";

  const PublishOutcome published = require(isr.publish(lease, render(), {.history = 3}));
  std::cout << "Worker 1 published version " << std::get<Published>(published).meta.version.value_or(0)
            << ": META points at the new body and LOCK is gone, both or neither.\n";

  const PageView seen = require(isr.view(page, Consistency::strong));
  std::cout << "A reader finds the page " << name(seen.freshness.state) << " (" << seen.freshness.reason
            << "): " << require(isr.read_body(seen)).value().bytes;

  require(isr.mark_tag("", "products", MarkKind::invalidate));
  const PageView then = require(isr.view(page, Consistency::strong));
  std::cout << "After one write that invalidates the tag `products` it is " << name(then.freshness.state)
            << ": " << then.freshness.reason << ".\n";

  // All of it in the safe order, as a service does it.
  const auto outcome = require(isr.regenerate(page, [](const RenderContext&) { return render(); }, {}));
  if (std::holds_alternative<Regenerated>(outcome)) std::cout << "One call regenerated it.\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && argc != 3) {
    std::cerr << "usage: quickstart [TABLE_URI BODIES_URI]     such as: quickstart lmdb:table file:bodies\n";
    return 2;
  }
  try {
    const auto isr =
        require(BlockingIsr::open(argc == 3 ? argv[1] : "lmdb:table", argc == 3 ? argv[2] : "lmdb:bodies"));
    tour(*isr);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "quickstart: " << error.what() << "\n";
    return 1;
  }
}
