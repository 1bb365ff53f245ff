#include "ncu/kernel_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/kernel_names.h"

namespace roofprof::ncu {

namespace {

constexpr std::string_view kUnnamed = "@unnamed";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_identifier(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Returns the end of the bracket that opens at `begin`, behind it; the text's end where none closes it.
std::size_t end_of_bracket(std::string_view text, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if ((text[i] == ')' || text[i] == ']' || text[i] == '}') && --depth == 0) return i + 1;
  }
  return text.size();
}

// Returns "{lambda#1}" for "{lambda(int)#1}" and "[lambda(int)(instance1)]", whose parameters the two write
// differently.
std::string with_plain_lambdas(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const auto rest = text.substr(i);
    if (!rest.starts_with("{lambda(") && !rest.starts_with("[lambda(")) {
      plain += text[i++];
      continue;
    }
    const auto end = end_of_bracket(text, i);
    std::string number;
    for (auto at = end - 1; at > i; --at) {
      if (is_digit(text[at])) {
        number.insert(number.begin(), text[at]);
      } else if (!number.empty()) {
        break;
      }
    }
    plain += "{lambda#" + number + "}";
    i = end;
  }
  return plain;
}

// Writes numbers among template arguments without their types: "4" for "(int)4" and "4ul", "true" for "(bool)1".
std::string with_plain_numbers(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const bool begins = i > 0 && (text[i - 1] == '<' || text[i - 1] == ',');
    std::size_t number = i;
    std::string_view type;
    if (begins && text[i] == '(') {
      number = end_of_bracket(text, i);
      type = text.substr(i + 1, number - i - 2);
    }
    std::size_t end = number;
    if (end < text.size() && text[end] == '-') ++end;
    const auto digits = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (!begins || end == digits) {
      plain += text[i++];
      continue;
    }
    auto suffix = end;
    while (suffix < text.size() && (text[suffix] == 'u' || text[suffix] == 'l')) ++suffix;
    if (suffix < text.size() && in_identifier(text[suffix])) {
      plain += text[i++];
      continue;
    }
    const auto value = text.substr(number, end - number);
    plain += type == "bool" ? (value == "0" ? "false" : "true") : std::string(value);
    i = suffix;
  }
  return plain;
}

// Returns where the parameters begin, or the text ends. Template arguments may have brackets too.
std::size_t parameters_of(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && (i == 0 || text[i - 1] != '-')) --depth;
    if (text[i] == '(' && depth <= 0 && i > 0) return i;
  }
  return text.size();
}

}  // namespace

std::string plain_name(std::string_view name) {
  auto text = demangled(std::string(name));
  if (text.starts_with("void ")) text.erase(0, 5);
  std::erase(text, ' ');
  replace_all(text, "(anonymousnamespace)", kUnnamed);
  replace_all(text, "<unnamed>", kUnnamed);
  text = with_plain_numbers(with_plain_lambdas(text));
  return text.substr(0, parameters_of(text));
}

std::string function_name(std::string_view name) {
  const auto plain = plain_name(name);
  const auto qualified = std::string_view(plain).substr(0, plain.find('<'));
  const auto scope = qualified.rfind("::");
  return std::string(scope == std::string_view::npos ? qualified : qualified.substr(scope + 2));
}

}  // namespace roofprof::ncu
