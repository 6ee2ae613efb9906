#include "facetheory/site/route.h"

#include <algorithm>
#include <utility>

#include <arpa/inet.h>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/http/normal_form.h"

namespace facetheory {
namespace {

Error bad_pattern(std::string_view pattern, const std::string& why) {
  return {ErrorCode::invalid, "pattern " + quoted_for_message(pattern) + " " + why};
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
  const NormalEncoding whole = normalise_encoding(text);
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

std::optional<std::size_t> RouteTable::add_or_find_conflict(std::size_t route, const PathPattern& pattern,
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
