#include "facetheory/gateway/route.h"

#include <algorithm>
#include <utility>

#include <arpa/inet.h>

#include "facetheory/base/letter_case.h"
#include "facetheory/isr/key_text.h"

namespace facetheory {
namespace {

Error bad_path(std::string_view path, const std::string& why) {
  return {ErrorCode::invalid, "path " + quoted_for_message(path) + " " + why};
}

Error bad_pattern(std::string_view pattern, const std::string& why) {
  return {ErrorCode::invalid, "pattern " + quoted_for_message(pattern) + " " + why};
}

constexpr bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that text[at], a '%', stands for with the two digits behind it.
std::optional<char> encoded_byte(std::string_view text, std::size_t at) {
  if (at + 2 >= text.size()) return std::nullopt;
  const int high = hex_digit(text[at + 1]);
  const int low = hex_digit(text[at + 2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

void append_encoded_byte(std::string& text, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  text += '%';
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

struct Normalised {
  std::string text;
  bool lone_percent = false;
  bool encoded_control = false;
};

// Whether a digit at the end of this text would make an encoded byte of a '%' that was none: "%4" and then "1".
bool completes_encoding(std::string_view text) {
  return text.ends_with('%') ||
         (text.size() >= 2 && text[text.size() - 2] == '%' && hex_digit(text.back()) >= 0);
}

Normalised normalise_encoding(std::string_view text) {
  Normalised out;
  out.text.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      const std::optional<char> byte = encoded_byte(text, i);
      if (!byte) {
        out.lone_percent = true;
        out.text += c;
        continue;
      }
      out.encoded_control = out.encoded_control || is_control_character(*byte);
      const bool ambiguous = out.lone_percent && hex_digit(*byte) >= 0 && completes_encoding(out.text);
      if (is_unreserved(*byte) && !ambiguous) {
        out.text += *byte;
      } else {
        append_encoded_byte(out.text, *byte);
      }
      i += 2;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      append_encoded_byte(out.text, c);
    } else {
      out.text += c;
    }
  }
  return out;
}

// Whether some origin would take a part of this normalised path for "." or "..": one between slashes, encoded slashes
// or backslashes, with or without a parameter behind ';'.
bool has_dot_segment(std::string_view path) {
  std::size_t begin = 0;
  const auto is_dots = [&](std::size_t end) {
    std::string_view part = path.substr(begin, end - begin);
    part = part.substr(0, part.find(';'));
    part = part.substr(0, part.find("%3B"));
    return part == "." || part == "..";
  };
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::size_t width = 0;
    if (path[i] == '/' || path[i] == '\\') width = 1;
    if (path.substr(i, 3) == "%2F" || path.substr(i, 3) == "%5C") width = 3;
    if (width == 0) continue;
    if (is_dots(i)) return true;
    begin = i + width;
    i += width - 1;
  }
  return is_dots(path.size());
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || c == '-' || (c >= '0' && c <= '9');
  });
}

Result<PathPattern::Segment> parse_segment(std::string_view pattern, std::string_view text) {
  using Kind = PathPattern::Segment::Kind;
  if (text == "*") return PathPattern::Segment{.kind = Kind::tail};
  if (text.find_first_of("{}") == std::string_view::npos) {
    if (text.find('*') != std::string_view::npos) {
      return bad_pattern(pattern,
                         "has a '*' beside other characters; write {name} for a segment, /* for all below");
    }
    return PathPattern::Segment{.kind = Kind::literal, .text = normalise_encoding(text).text};
  }
  if (!text.starts_with('{') || text.find('}') != text.size() - 1) {
    return bad_pattern(pattern, "has a variable that is not a whole segment; write /news/{slug}");
  }
  std::string_view name = text.substr(1, text.size() - 2);
  Kind kind = Kind::variable;
  if (name.ends_with("...")) {
    kind = Kind::tail;
    name.remove_suffix(3);
  } else if (name.ends_with('+') || name.ends_with('*')) {
    kind = name.back() == '+' ? Kind::tail : Kind::optional_tail;
    name.remove_suffix(1);
  }
  if (!is_variable_name(name)) {
    return bad_pattern(pattern, "has a variable named " + quoted_for_message(name) +
                                    "; a name has letters, digits, '_' and '-', and begins with a letter");
  }
  return PathPattern::Segment{.kind = kind, .text = std::string(name)};
}

// Takes the first segment off the path, which begins with a slash.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

bool matches_from(const PathPattern::Segment* segment, const PathPattern::Segment* end,
                  std::string_view path) {
  using Kind = PathPattern::Segment::Kind;
  for (; segment != end; ++segment) {
    if (segment->kind == Kind::optional_tail) return true;
    if (path.empty()) return false;
    if (segment->kind == Kind::tail) return true;
    const std::string_view part = take_segment(path);
    if (segment->kind == Kind::literal ? part != segment->text : part.empty()) return false;
  }
  return path.empty();
}

}  // namespace

Result<std::string> normalise_path(std::string_view path) {
  if (!path.starts_with('/')) return bad_path(path, "does not begin with a slash");
  for (const char c : path) {
    if (is_control_character(c) || c == ' ' || c == '?' || c == '#') {
      return bad_path(path, "contains a character that must be percent-encoded");
    }
  }
  Normalised normalised = normalise_encoding(path);
  if (normalised.lone_percent) return bad_path(path, "has a '%' without two hexadecimal digits");
  if (normalised.encoded_control) return bad_path(path, "contains an encoded control character");
  if (has_dot_segment(normalised.text)) return bad_path(path, "has a segment '.' or '..'; resolve it first");
  return std::move(normalised.text);
}

Result<std::string> normalise_query(std::string_view query) {
  for (const char c : query) {
    if (is_control_character(c) || c == ' ' || c == '#') {
      return Error{ErrorCode::invalid, "query " + quoted_for_message(query) +
                                           " contains a character that must be percent-encoded"};
    }
  }
  return normalise_encoding(query).text;
}

std::string decode_percent(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> byte = text[i] == '%' ? encoded_byte(text, i) : std::nullopt;
    decoded += byte.value_or(text[i]);
    if (byte) i += 2;
  }
  return decoded;
}

std::optional<std::string_view> PathVariables::get(std::string_view name) const {
  for (const Variable& variable : *this) {
    if (variable.name == name) return variable.value;
  }
  return std::nullopt;
}

Result<PathPattern> PathPattern::parse(std::string_view text) {
  if (!text.starts_with('/'))
    return bad_pattern(text, "does not begin with a slash; write /news/{slug} or /*");
  for (const char c : text) {
    if (is_control_character(c) || c == ' ') {
      return bad_pattern(text, "contains a space or a control character; percent-encode it");
    }
    if (c == '?' || c == '#') {
      return bad_pattern(text,
                         "contains '?' or '#'; a pattern is about the path, `query` is about parameters");
    }
  }
  const Normalised whole = normalise_encoding(text);
  if (whole.lone_percent) return bad_pattern(text, "has a '%' without two hexadecimal digits; write %25");
  if (whole.encoded_control || has_dot_segment(whole.text)) {
    return bad_pattern(text, "matches nothing: paths with '.', '..' or control characters are refused");
  }

  PathPattern pattern;
  pattern.text_ = std::string(text);
  std::size_t variables = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (!pattern.segments_.empty() && pattern.segments_.back().kind >= Segment::Kind::tail) {
      return bad_pattern(text, "has something behind its tail; {name...} and * stand at the end");
    }
    auto segment = parse_segment(text, take_segment(rest));
    if (!segment) return segment.error();
    if (segment->kind != Segment::Kind::literal && !segment->text.empty()) {
      if (pattern.has_variable(segment->text)) {
        return bad_pattern(text, "names " + quoted_for_message(segment->text) + " twice");
      }
      if (++variables > kMaxPathVariables) {
        return bad_pattern(text, "has more than " + std::to_string(kMaxPathVariables) + " variables");
      }
    }
    pattern.segments_.push_back(*std::move(segment));
  }
  return pattern;
}

bool PathPattern::has_variable(std::string_view name) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return segment.kind != Segment::Kind::literal && segment.text == name;
  });
}

bool PathPattern::matches(std::string_view path) const {
  return matches_from(segments_.data(), segments_.data() + segments_.size(), path);
}

std::string_view without_port(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return host.substr(0, colon);
}

Result<std::string> normalise_host(std::string_view host) {
  const auto refused = [&](const char* why) {
    return Error{ErrorCode::invalid, "host " + quoted_for_message(host) + " " + why};
  };
  const std::string lower = lower_case(host);
  std::string_view name = without_port(lower);
  std::string_view port = std::string_view(lower).substr(name.size());
  if (!port.empty()) {
    port.remove_prefix(1);
    const bool digits = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
    while (port.size() > 1 && port.front() == '0')
      port.remove_prefix(1);
    if (!digits || port.size() > 5 || (port.size() == 5 && port > "65535") || port == "0") {
      return refused("has a port that is not 1 to 65535");
    }
  }
  std::string normal;
  if (name.starts_with('[')) {
    in6_addr address = {};
    char text[INET6_ADDRSTRLEN] = {};
    if (!name.ends_with(']') ||
        ::inet_pton(AF_INET6, std::string(name.substr(1, name.size() - 2)).c_str(), &address) != 1) {
      return refused("is no IPv6 address in brackets");
    }
    ::inet_ntop(AF_INET6, &address, text, sizeof text);
    normal = "[" + std::string(text) + "]";
  } else {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty() || name.size() > 253 || name.starts_with('.') || name.ends_with('.') ||
        name.find("..") != std::string_view::npos ||
        name.find_first_not_of(kAllowed) != std::string_view::npos) {
      return refused("is no host name");
    }
    normal = name;
  }
  if (!port.empty()) normal += ":" + std::string(port);
  return normal;
}

struct RouteTable::Node {
  struct Entry {
    std::size_t route = 0;
    const PathPattern* pattern = nullptr;
    std::vector<std::string> methods = {};  // Empty: any.
  };
  // Those that list methods before the one that does not.
  using Entries = std::vector<Entry>;

  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals = {};
  std::unique_ptr<Node> variable = {};
  Entries here = {};
  Entries tail = {};
  Entries optional_tail = {};

  Entries& entries_of(const PathPattern& pattern) {
    using Kind = PathPattern::Segment::Kind;
    Node* node = this;
    for (const PathPattern::Segment& segment : pattern.segments()) {
      if (segment.kind == Kind::tail) return node->tail;
      if (segment.kind == Kind::optional_tail) return node->optional_tail;
      std::unique_ptr<Node>& next =
          segment.kind == Kind::literal ? node->literals[segment.text] : node->variable;
      if (!next) next = std::make_unique<Node>();
      node = next.get();
    }
    return node->here;
  }

  static const Entry* find(const Entries& entries, std::string_view method) {
    for (const Entry& entry : entries) {
      if (entry.methods.empty() ||
          std::find(entry.methods.begin(), entry.methods.end(), method) != entry.methods.end()) {
        return &entry;
      }
    }
    return nullptr;
  }

  // Every node is reached by one sequence of segments only, so none is visited twice.
  const Entry* match(std::string_view method, std::string_view path) const {
    if (path.empty()) {
      const Entry* found = find(here, method);
      return found != nullptr ? found : find(optional_tail, method);
    }
    std::string_view rest = path;
    const std::string_view segment = take_segment(rest);
    if (const auto literal = literals.find(segment); literal != literals.end()) {
      if (const Entry* found = literal->second->match(method, rest)) return found;
    }
    if (variable && !segment.empty()) {
      if (const Entry* found = variable->match(method, rest)) return found;
    }
    const Entry* found = find(tail, method);
    return found != nullptr ? found : find(optional_tail, method);
  }
};

RouteTable::RouteTable() = default;
RouteTable::~RouteTable() = default;
RouteTable::RouteTable(RouteTable&&) noexcept = default;
RouteTable& RouteTable::operator=(RouteTable&&) noexcept = default;

std::optional<std::size_t> RouteTable::add(std::size_t route, const PathPattern& pattern,
                                           const std::vector<std::string>& hosts,
                                           const std::vector<std::string>& methods) {
  std::vector<Node::Entries*> places;
  const auto place = [&](std::unique_ptr<Node>& root) {
    if (!root) root = std::make_unique<Node>();
    places.push_back(&root->entries_of(pattern));
  };
  if (hosts.empty()) place(any_host_);
  for (const std::string& host : hosts) {
    place(host.starts_with("*.") ? wildcards_[host.substr(1)] : hosts_[host]);
  }

  for (const Node::Entries* entries : places) {
    for (const Node::Entry& other : *entries) {
      const bool shared = std::any_of(methods.begin(), methods.end(), [&](const std::string& method) {
        return std::find(other.methods.begin(), other.methods.end(), method) != other.methods.end();
      });
      if (shared || (methods.empty() && other.methods.empty())) return other.route;
    }
  }
  for (Node::Entries* entries : places) {
    entries->insert(methods.empty() ? entries->end() : entries->begin(),
                    Node::Entry{.route = route, .pattern = &pattern, .methods = methods});
  }
  return std::nullopt;
}

std::optional<RouteTable::Match> RouteTable::match(std::string_view host, std::string_view method,
                                                   std::string_view path) const {
  if (!path.starts_with('/')) return std::nullopt;
  host = without_port(host);
  const Node::Entry* found = nullptr;
  if (const auto exact = hosts_.find(host); exact != hosts_.end()) found = exact->second->match(method, path);
  for (std::size_t dot = host.find('.');
       found == nullptr && dot != std::string_view::npos && !wildcards_.empty();
       dot = host.find('.', dot + 1)) {
    const auto wildcard = wildcards_.find(host.substr(dot));
    if (wildcard != wildcards_.end()) found = wildcard->second->match(method, path);
  }
  if (found == nullptr && any_host_) found = any_host_->match(method, path);
  if (found == nullptr) return std::nullopt;

  using Kind = PathPattern::Segment::Kind;
  Match match{.route = found->route};
  for (const PathPattern::Segment& segment : found->pattern->segments()) {
    const bool is_tail = segment.kind == Kind::tail || segment.kind == Kind::optional_tail;
    std::string_view value = path;
    if (is_tail) {
      if (!value.empty()) value.remove_prefix(1);
    } else {
      value = take_segment(path);
    }
    if (segment.kind == Kind::literal || segment.text.empty()) continue;
    match.variables.items[match.variables.count++] = {.name = segment.text, .value = value};
  }
  return match;
}

}  // namespace facetheory
