#include "facetheory/rules/vary.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/sha256.h"
#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

constexpr std::size_t kLongestPlainValue = 200;
constexpr int kFullWeight = 1000;

// "0.5" is 500. Senseless weights count as 1, as if they were not there.
int parse_weight(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return kFullWeight;
  if (text.size() > 1 && text[1] != '.') return kFullWeight;
  int weight = (text[0] - '0') * kFullWeight;
  int scale = kFullWeight / 10;
  for (std::size_t i = 2; i < text.size(); ++i, scale /= 10) {
    if (text[i] < '0' || text[i] > '9') return kFullWeight;
    weight += (text[i] - '0') * scale;
  }
  return std::min(weight, kFullWeight);
}

struct Preference {
  std::string what;  // The element without its weight; whitespace around ';' removed.
  int weight = kFullWeight;
  std::size_t position = 0;
};

Preference read_preference(std::string_view element) {
  Preference preference;
  std::size_t begin = 0;
  bool first = true;
  while (begin <= element.size()) {
    // A quoted parameter may contain a semicolon.
    std::size_t end = begin;
    bool quoted = false;
    while (end < element.size() && (quoted || element[end] != ';')) {
      if (element[end] == '\\' && quoted) ++end;
      if (end < element.size() && element[end] == '"') quoted = !quoted;
      ++end;
    }
    end = std::min(end, element.size());
    const std::string_view part = trimmed(element.substr(begin, end - begin));
    if (first) {
      preference.what = lower_case(part);
    } else if (part.size() > 1 && lower_case(part[0]) == 'q' && part[1] == '=') {
      preference.weight = parse_weight(part.substr(2));
    } else if (!part.empty()) {
      preference.what.append(";").append(part);
    }
    first = false;
    begin = end + 1;
  }
  return preference;
}

// Sorts by falling weight; equal weights stay in the client's order, which some servers go by.
std::string normalised_preferences(const Headers& request, std::string_view name) {
  std::vector<Preference> preferences;
  for_each_element(request, name, [&](std::string_view element) {
    preferences.push_back(read_preference(element));
    preferences.back().position = preferences.size();
  });
  std::sort(preferences.begin(), preferences.end(), [](const Preference& a, const Preference& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.position < b.position;
  });
  std::string text;
  for (const Preference& preference : preferences) {
    if (!text.empty()) text.push_back(',');
    text.append(preference.what);
    if (preference.weight != kFullWeight) text.append(";q=").append(std::to_string(preference.weight));
  }
  return text;
}

std::string normalised_list(const Headers& request, std::string_view name) {
  std::string text;
  for_each_element(request, name, [&](std::string_view element) {
    if (!text.empty()) text.push_back(',');
    text.append(element);
  });
  return text;
}

bool might_be_secret(std::string_view name) {
  return name == "cookie" || name == "authorization" || name == "proxy-authorization";
}

std::string normalised_value(const Headers& request, std::string_view name) {
  if (name == "accept-encoding") return to_string(accepted_encodings(request));
  if (name == "accept" || name == "accept-language" || name == "accept-charset") {
    return normalised_preferences(request, name);
  }
  if (name == "cookie" || name == "authorization" || name == "user-agent" || name == "referer") {
    return combined(request, name).value_or("");  // No lists: a comma is part of the value.
  }
  return normalised_list(request, name);
}

// Injective: what separates parts of the key is escaped, and so is all that is not printable ASCII.
void append_escaped(std::string& key, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E || c == '%' || c == '&') {
      key.push_back('%');
      key.push_back(kDigits[byte >> 4]);
      key.push_back(kDigits[byte & 0xF]);
    } else {
      key.push_back(c);
    }
  }
}

}  // namespace

std::optional<std::vector<std::string>> vary_names(const Headers& response) {
  std::vector<std::string> names;
  bool good = true;
  for_each_element(response, "vary", [&](std::string_view element) {
    good = good && element != "*" && is_token(element);
    names.push_back(lower_case(element));
  });
  if (!good) return std::nullopt;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string variant_key(const std::vector<std::string>& names, const Headers& request) {
  std::vector<std::string> sorted;
  for (const std::string& name : names)
    sorted.push_back(lower_case(std::string_view(name)));
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  std::string key;
  for (const std::string& name : sorted) {
    if (!key.empty()) key.push_back('&');
    append_escaped(key, name);
    if (!request.get(name)) continue;  // Absent is not the same as empty.
    const std::string value = normalised_value(request, name);
    if (might_be_secret(name) || value.size() > kLongestPlainValue) {
      key.append("==").append(sha256_hex(value));
    } else {
      key.push_back('=');
      // A value that begins with '=' must not look like a digest.
      if (value.starts_with('=')) key.append("%");
      append_escaped(key, value);
    }
  }
  return key;
}

AcceptedEncodings accepted_encodings(const Headers& request) {
  AcceptedEncodings accepted;
  struct Named {
    bool& accepted;
    bool named = false;
  };
  Named br{accepted.br};
  Named zstd{accepted.zstd};
  Named gzip{accepted.gzip};
  Named identity{accepted.identity};
  std::optional<bool> others;
  for_each_element(request, "accept-encoding", [&](std::string_view element) {
    const Preference preference = read_preference(element);
    const bool wanted = preference.weight > 0;
    const auto take = [&](Named& coding) {
      coding.accepted = wanted;
      coding.named = true;
    };
    if (preference.what == "br") take(br);
    if (preference.what == "zstd") take(zstd);
    if (preference.what == "gzip" || preference.what == "x-gzip") take(gzip);
    if (preference.what == "identity") take(identity);
    if (preference.what == "*") others = wanted;
  });
  if (others) {
    for (Named* coding : {&br, &zstd, &gzip, &identity}) {
      if (!coding->named) coding->accepted = *others;
    }
  }
  return accepted;
}

std::string to_string(const AcceptedEncodings& accepted) {
  std::string text;
  const auto add = [&](bool is_accepted, std::string_view coding) {
    if (!is_accepted) return;
    if (!text.empty()) text.push_back(',');
    text.append(coding);
  };
  add(accepted.br, "br");
  add(accepted.zstd, "zstd");
  add(accepted.gzip, "gzip");
  if (text.empty()) add(accepted.identity, "identity");
  if (!accepted.identity) add(true, "!identity");
  return text;
}

}  // namespace facetheory
