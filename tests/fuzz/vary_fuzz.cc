// Input: a line with the value of Vary; a request's fields; an empty line; another request's fields.
//
// Two requests have the same key only if they say the same in each field named; how they write it makes no difference.
#include <algorithm>
#include <string>
#include <vector>

#include "facetheory/http/field_values.h"
#include "facetheory/rules/compression.h"
#include "facetheory/rules/vary.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

bool is_weighted(std::string_view name) {
  return name == "accept" || name == "accept-language" || name == "accept-charset" ||
         name == "accept-encoding";
}

bool is_no_list(std::string_view name) {
  return name == "cookie" || name == "authorization" || name == "user-agent" || name == "referer";
}

std::vector<std::string> list_of(const Headers& request, std::string_view name) {
  std::vector<std::string> elements;
  for_each_element(request, name, [&](std::string_view element) { elements.emplace_back(element); });
  return elements;
}

void require_told_apart(const std::string& name, const Headers& a, const Headers& b) {
  if (variant_key({name}, a) != variant_key({name}, b)) return;
  require(a.get(name).has_value() == b.get(name).has_value(), "absent is not the same as empty");
  if (name == "accept-encoding") {
    require(accepted_encodings(a) == accepted_encodings(b), "one key, the same codings");
  } else if (is_no_list(name)) {
    require(combined(a, name) == combined(b, name), "one key, the same value");
  } else if (is_weighted(name)) {
    require(list_of(a, name).size() == list_of(b, name).size(), "one key, as many preferences");
  } else {
    std::string of_a;
    std::string of_b;
    for (const std::string& element : list_of(a, name))
      of_a += element + ",";
    for (const std::string& element : list_of(b, name))
      of_b += element + ",";
    require(of_a == of_b, "one key, the same list");
  }
}

// The same request with whitespace where it means nothing, names in other case and each list on lines of its own.
Headers rewritten(const Headers& request) {
  Headers headers;
  for (const auto& [name, value] : request) {
    const std::string lower = lower_case(std::string_view(name));
    if (is_no_list(lower) || value.find('"') != std::string::npos) {
      headers.add(upper_case(std::string_view(name)), value);
      continue;
    }
    ListElements elements(value);
    bool empty = true;
    while (const auto element = elements.next()) {
      headers.add(upper_case(std::string_view(name)), "  " + std::string(*element) + " ,");
      empty = false;
    }
    if (empty) headers.add(upper_case(std::string_view(name)), value);
  }
  return headers;
}

}  // namespace

void fuzz_vary(std::string_view bytes) {
  Input input(bytes);
  Headers response{{"Vary", std::string(input.line())}};
  const std::size_t end = std::min(input.rest().find("\n\n"), input.rest().size());
  const Headers one = headers_of(input.rest().substr(0, end));
  const Headers other = headers_of(input.rest().substr(std::min(end + 2, input.rest().size())));
  require(to_string(accepted_encodings(one)).find_first_not_of("abcdefghijklmnopqrstuvwxyz,!") ==
              std::string::npos,
          "codings are words");
  choose_coding(accepted_encodings(one));

  const auto names = vary_names(response);
  if (!names) return;
  require(std::is_sorted(names->begin(), names->end()), "names are sorted");
  const std::string key = variant_key(*names, one);
  require(names->empty() == key.empty(), "a key is empty where nothing is named");
  require(std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; }),
          "a key is printable");
  require(static_cast<std::size_t>(std::count(key.begin(), key.end(), '&')) + 1 ==
                  std::max<std::size_t>(names->size(), 1) ||
              std::any_of(names->begin(), names->end(),
                          [](const std::string& name) { return name.find('&') != std::string::npos; }),
          "a key has a part for each name");
  std::vector<std::string> reversed(names->rbegin(), names->rend());
  require(variant_key(reversed, one) == key, "the order of names makes no difference");
  require(variant_key(*names, rewritten(one)) == key, "how a request is written makes no difference");
  bool all_same = true;
  for (const std::string& name : *names) {
    require_told_apart(name, one, other);
    all_same = all_same && variant_key({name}, one) == variant_key({name}, other);
  }
  require((variant_key(*names, other) == key) == all_same, "a key is as different as its parts");
}

}  // namespace facetheory::fuzz
