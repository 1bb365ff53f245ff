#pragma once
// What the text of a formula says by itself: how many operations it takes.

#include <cctype>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops::testing {

inline std::vector<std::string> tokens(std::string_view formula) {
  std::vector<std::string> found;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t i = 0; i < formula.size();) {
    std::size_t length = 1;
    while (is_word(formula[i]) && i + length < formula.size() && is_word(formula[i + length])) ++length;
    if (std::string_view("<>=!").find(formula[i]) != std::string_view::npos && formula.substr(i + 1, 1) == "=")
      length = 2;
    if (formula[i] != ' ') found.emplace_back(formula.substr(i, length));
    i += length;
  }
  return found;
}

// One for each function, sign, comparison and arithmetic operation but those of two numbers. Nothing where the text is
// no plain expression of x and constants, or where it is one of two that it chooses between.
inline std::optional<std::int64_t> operations_in(std::string_view formula) {
  static const std::set<std::string> functions = {"abs",  "acos",  "asin",  "atan",  "ceil",  "cos",  "cosh",
                                                  "erf",  "erfc",  "exp",   "expm1", "floor", "frac", "lgamma",
                                                  "log",  "log10", "log1p", "log2",  "max",   "min",  "round",
                                                  "sign", "sin",   "sinh",  "sqrt",  "tan",   "tanh", "trunc"};
  static const std::set<std::string> operands = {"x",    "y",     "z",     "w",      "l",     "t",
                                                 "grad", "alpha", "scale", "slope",  "value", "low",
                                                 "high", "mask",  "noise", "weight", "bound", "inf"};
  static const std::set<std::string> comparisons = {"<", ">", "==", "!=", "<=", ">="};
  const auto all = tokens(formula);
  const auto is_number = [](const std::string& token) { return !token.empty() && std::isdigit(token.front()) != 0; };
  std::int64_t count = 0;
  int depth = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& token = all[i];
    const std::string before = i > 0 ? all[i - 1] : "(";
    const std::string after = i + 1 < all.size() ? all[i + 1] : "";
    const bool is_operand = operands.contains(token) || is_number(token);
    if (is_operand && (operands.contains(before) || is_number(before) || before == ")")) return std::nullopt;  // prose
    depth += token == "(" ? 1 : token == ")" ? -1 : 0;
    if (comparisons.contains(token) || (functions.contains(token) && after == "(")) {
      ++count;
    } else if (token == "-" && (before == "(" || before == "?" || before == ":" || comparisons.contains(before))) {
      count += is_number(after) || after == "l" || after == "inf" ? 0 : 1;  // the sign of a constant is part of it
    } else if (token == "+" || token == "-" || token == "*" || token == "/") {
      count += is_number(before) && is_number(after) ? 0 : 1;
    } else if (token == "," ? depth == 0
                            : !is_operand && !std::set<std::string>{"(", ")", "?", ":", "and", "or"}.contains(token)) {
      return std::nullopt;
    }
  }
  return count;
}

// Whether a line does nothing but count its formula for each element of the output: then its weight is what the text
// says.
inline bool is_held_by_its_formula(const OpCost& line) {
  return line.operations == per_output && line.bytes == nullptr && line.scalars.empty() &&
         operations_in(line.formula) == line.weight;
}

}  // namespace roofprof::ops::testing
