// Routes: which paths a pattern matches, and which of several routes a request belongs to.
//
//   /news/archive        this path
//   /news/{slug}         one segment, not empty
//   /docs/{rest...}      one segment or more, also empty ones; `/docs/*` is the same without a name,
//                        `/docs/{rest+}` another spelling of it
//   /docs/{rest*}        the same, or nothing: /docs too
//
// The most specific route wins, in whatever order they are given. Hosts decide first: an exact name, then the longest
// wildcard (`*.example.com`), then routes for any host. Then the path, from its first segment on: a literal before a
// variable, a variable before a tail, {rest...} before {rest*}. Then methods: a route that lists them before one that
// does not. A route that does not match in all three is out, and the next best is taken.
//
// Paths are compared as normalise_path() leaves them: nothing is decoded that could make two paths one. A trailing
// slash counts, letters keep their case, and a file's extension means nothing.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory {

inline constexpr std::size_t kMaxPathVariables = 16;

// What the variables of a pattern stand for, still encoded; views of the pattern and of the path.
struct PathVariables {
  struct Variable {
    std::string_view name;
    std::string_view value;
  };
  std::array<Variable, kMaxPathVariables> items = {};
  std::size_t count = 0;

  const Variable* begin() const { return items.data(); }
  const Variable* end() const { return items.data() + count; }
  std::optional<std::string_view> get(std::string_view name) const;
};

class PathPattern {
 public:
  struct Segment {
    enum class Kind { literal, variable, tail, optional_tail };
    Kind kind = Kind::literal;
    std::string text = {};  // A literal, normalised, or a variable's name; that of `*` is empty.

    friend bool operator==(const Segment&, const Segment&) = default;
  };

  // `invalid` says what is wrong with the pattern and how to write it.
  static Result<PathPattern> parse(std::string_view text);

  const std::string& text() const { return text_; }
  const std::vector<Segment>& segments() const { return segments_; }
  bool has_variable(std::string_view name) const;

  // The path is normalised.
  bool matches(std::string_view path) const;

  friend bool operator==(const PathPattern&, const PathPattern&) = default;

 private:
  std::string text_;
  std::vector<Segment> segments_;
};

class RouteTable {
 public:
  RouteTable();
  ~RouteTable();
  RouteTable(RouteTable&&) noexcept;
  RouteTable& operator=(RouteTable&&) noexcept;

  // No hosts: any. No methods: any. Hosts are names or "*.name", in lower case and without a port; methods in upper
  // case. When some request would match another route just as well, that one's number is returned and nothing is added.
  // The pattern must outlive the table.
  std::optional<std::size_t> add_or_find_conflict(std::size_t route, const PathPattern& pattern,
                                                  const std::vector<std::string>& hosts,
                                                  const std::vector<std::string>& methods);

  struct Match {
    std::size_t route = 0;
    PathVariables variables = {};
  };
  // Host and path are normalised; a port of the host is ignored. Allocates nothing.
  std::optional<Match> match(std::string_view host, std::string_view method, std::string_view path) const;

 private:
  struct Node;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> hosts_;      // Exact names.
  std::map<std::string, std::unique_ptr<Node>, std::less<>> wildcards_;  // ".example.com"
  std::unique_ptr<Node> any_host_;
};

}  // namespace facetheory
