// The program that docs/tutorial.md shows of the library. tools/check_consumer takes it from there, so that it is
// compiled and run as it stands: it must render the page, and find it fresh when it is asked once more.
#include <iostream>
#include <variant>

#include "facetheory/isr/blocking.h"

int main() {
#include "tutorial.inc"
  if (!outcome || !std::holds_alternative<Regenerated>(*outcome)) return 1;
  outcome = isr->regenerate(*page_of("/news/42"), render, options);
  if (!outcome || !std::holds_alternative<AlreadyFresh>(*outcome)) return 1;
  std::cout << "ok\n";
}
