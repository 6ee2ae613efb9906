#include "facetheory/table/dynamodb_expression.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace facetheory {
namespace {

std::string_view symbol(Comparison comparison) {
  switch (comparison) {
    case Comparison::equal:
      return "=";
    case Comparison::not_equal:
      return "<>";
    case Comparison::less:
      return "<";
    case Comparison::less_or_equal:
      return "<=";
    case Comparison::greater:
      return ">";
    case Comparison::greater_or_equal:
      return ">=";
  }
  return "=";
}

class ExpressionRenderer {
 public:
  explicit ExpressionRenderer(Expression& expression) : expression_(expression) {}

  // A term says whether it must be parenthesised inside another: DynamoDB refuses parentheses around
  // parentheses.
  struct Term {
    std::string text;
    bool compound = false;
  };

  Term operator()(const Condition& condition) { return std::visit(*this, condition.variant()); }

  Term operator()(const Condition::Always&) { return {}; }
  Term operator()(const Condition::Compare& compare) {
    return leaf(alias(compare.name) + ' ' + std::string(symbol(compare.comparison)) + ' ' +
                parameter(compare.value));
  }
  Term operator()(const Condition::Between& between) {
    const std::string name = alias(between.name);
    const std::string low = parameter(between.low);
    return leaf(name + " BETWEEN " + low + " AND " + parameter(between.high));
  }
  Term operator()(const Condition::In& in) {
    std::string text = alias(in.name) + " IN (";
    for (const Value& value : in.values) {
      if (text.back() != '(') text += ", ";
      text += parameter(value);
    }
    return leaf(text + ')');
  }
  Term operator()(const Condition::Exists& exists) {
    return leaf("attribute_exists(" + alias(exists.name) + ')');
  }
  Term operator()(const Condition::NotExists& not_exists) {
    return leaf("attribute_not_exists(" + alias(not_exists.name) + ')');
  }
  Term operator()(const Condition::HasType& has_type) {
    return function("attribute_type", has_type.name, Value(name(has_type.type)));
  }
  Term operator()(const Condition::BeginsWith& begins) {
    return function("begins_with", begins.name, begins.prefix);
  }
  Term operator()(const Condition::Contains& contains) {
    return function("contains", contains.name, contains.element);
  }
  Term operator()(const Condition::Size& size) {
    ++expression_.condition_operators;  // size() is one operator, the comparison another.
    return leaf("size(" + alias(size.name) + ") " + std::string(symbol(size.comparison)) + ' ' +
                parameter(Value(size.size)));
  }
  Term operator()(const Condition::And& conjunction) { return junction(conjunction.all, " AND "); }
  Term operator()(const Condition::Or& disjunction) { return junction(disjunction.any, " OR "); }
  Term operator()(const Condition::Not& negation) {
    ++expression_.condition_operators;
    return {"NOT (" + (*this)(negation.one.front()).text + ')', true};
  }

  // DynamoDB wants each clause (SET, REMOVE, ADD, DELETE) at most once.
  void update(const Changes& changes) {
    std::string set, remove, add, erase;
    for (const Changes::Entry& entry : changes.entries()) {
      const std::string name = alias(entry.name);
      if (const auto* to = std::get_if<Changes::Set>(&entry.action)) {
        append(set, name + " = " + parameter(to->value));
      } else if (const auto* once = std::get_if<Changes::SetIfAbsent>(&entry.action)) {
        append(set, name + " = if_not_exists(" + name + ", " + parameter(once->value) + ')');
      } else if (const auto* increment = std::get_if<Changes::Increment>(&entry.action)) {
        append(add, name + ' ' + parameter(Value(increment->by)));
      } else if (const auto* more = std::get_if<Changes::AddToSet>(&entry.action)) {
        append(add, name + ' ' + parameter(more->elements));
      } else if (const auto* fewer = std::get_if<Changes::RemoveFromSet>(&entry.action)) {
        append(erase, name + ' ' + parameter(fewer->elements));
      } else {
        append(remove, name);
      }
    }
    clause("SET ", set);
    clause("REMOVE ", remove);
    clause("ADD ", add);
    clause("DELETE ", erase);
  }

 private:
  Term leaf(std::string text) {
    ++expression_.condition_operators;
    return {std::move(text), false};
  }

  Term function(std::string_view function_name, const std::string& attribute, const Value& operand) {
    const std::string name = alias(attribute);
    return leaf(std::string(function_name) + '(' + name + ", " + parameter(operand) + ')');
  }

  Term junction(const std::vector<Condition>& parts, std::string_view joint) {
    if (parts.size() == 1) return (*this)(parts.front());
    std::string text;
    for (const Condition& part : parts) {
      if (!text.empty()) {
        text += joint;
        ++expression_.condition_operators;
      }
      const Term term = (*this)(part);
      text += term.compound ? '(' + term.text + ')' : term.text;
    }
    return {std::move(text), true};
  }

  std::string alias(const std::string& name) {
    const auto known = std::find(expression_.names.begin(), expression_.names.end(), name);
    const auto index = known - expression_.names.begin();
    if (known == expression_.names.end()) expression_.names.push_back(name);
    return "#n" + std::to_string(index);
  }

  std::string parameter(const Value& value) {
    expression_.values.push_back(value);
    return ":v" + std::to_string(expression_.values.size() - 1);
  }

  static void append(std::string& list, const std::string& action) {
    if (!list.empty()) list += ", ";
    list += action;
  }

  void clause(std::string_view keyword, const std::string& actions) {
    if (actions.empty()) return;
    if (!expression_.update.empty()) expression_.update += ' ';
    expression_.update += keyword;
    expression_.update += actions;
  }

  Expression& expression_;
};

}  // namespace

Expression render(const Condition& condition, const Changes& changes) {
  Expression expression;
  ExpressionRenderer renderer(expression);
  expression.condition = renderer(condition).text;
  renderer.update(changes);
  return expression;
}

}  // namespace facetheory
