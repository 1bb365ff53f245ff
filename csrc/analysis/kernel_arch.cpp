#include "analysis/kernel_arch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace roofprof {

namespace {

// A generation's name in NVIDIA's libraries means its first chip.
constexpr std::array<std::pair<std::string_view, int>, 8> kGenerations = {{{"kepler_", 30},
                                                                           {"maxwell_", 50},
                                                                           {"pascal_", 60},
                                                                           {"volta_", 70},
                                                                           {"turing_", 75},
                                                                           {"ampere_", 80},
                                                                           {"hopper_", 90},
                                                                           {"blackwell_", 100}}};

// Subroutines of device code, named after the architecture that they were written for: "sm20_div", "sm70_shfl".
constexpr std::array<std::string_view, 6> kSubroutines = {"div", "rcp", "dblrcp", "sqrt", "cuda", "shfl"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Calls visit with the text behind each occurrence of `word` (at the start of a word, if asked), until it returns a
// result.
template <class Visit>
std::optional<int> first_behind(std::string_view text, std::string_view word, bool starts_word, Visit visit) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (starts_word && at > 0 && is_word(text[at - 1])) continue;
    if (const auto found = visit(text.substr(at + word.size()))) return found;
  }
  return std::nullopt;
}

// Takes two or three digits off the start and returns their number.
std::optional<int> take_number(std::string_view& text) {
  std::size_t digits = 0;
  int number = 0;
  while (digits < text.size() && is_digit(text[digits]) && digits < 4) number = 10 * number + (text[digits++] - '0');
  constexpr int kFirst = 30;  // older ones cannot run the code of today
  if (digits < 2 || digits > 3 || number < kFirst) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

// Returns the number behind "sm": "80_", "_90a_", "80("; empty for a helper's name.
std::optional<int> after_sm(std::string_view text) {
  if (text.starts_with('_')) text.remove_prefix(1);
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (text.starts_with('a') || text.starts_with('f')) text.remove_prefix(1);  // sm_90a, sm_100f: of this chip alone
  if (!text.empty() && is_word(text.front())) return std::nullopt;
  if (text.starts_with('_')) {
    const auto rest = text.substr(1);
    if (std::any_of(kSubroutines.begin(), kSubroutines.end(), [&](auto name) { return rest.starts_with(name); })) {
      return std::nullopt;
    }
  }
  return number;
}

// Returns the number behind "cutlass_": "80_tensorop".
std::optional<int> after_cutlass(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  for (const std::string_view kind : {"_tensorop", "_wmma", "_simt"}) {
    if (text.starts_with(kind)) return number;
  }
  return std::nullopt;
}

// Returns the number behind "arch::Sm" or, mangled, "4arch4Sm": "80".
std::optional<int> after_tag(std::string_view text) {
  const auto number = take_number(text);
  return text.empty() || !is_digit(text.front()) ? number : std::nullopt;
}

}  // namespace

std::optional<int> architecture_in_name(std::string_view kernel) {
  for (const auto& [generation, number] : kGenerations) {
    if (first_behind(kernel, generation, true, [](auto) { return std::optional(0); })) return number;
  }
  if (const auto found = first_behind(kernel, "sm", true, after_sm)) return found;
  if (const auto found = first_behind(kernel, "cutlass_", true, after_cutlass)) return found;
  for (const std::string_view tag : {"arch::Sm", "4arch4Sm", "4arch5Sm"}) {
    if (const auto found = first_behind(kernel, tag, false, after_tag)) return found;
  }
  return std::nullopt;
}

std::optional<int> architecture_of_device(std::string_view capability) {
  const std::size_t dot = capability.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > 2 || dot + 2 != capability.size()) return std::nullopt;
  int number = 0;
  for (const char c : capability) {
    if (c == '.') continue;
    if (!is_digit(c)) return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

}  // namespace roofprof
