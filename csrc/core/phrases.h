#pragma once
// Phrases that notes share, and numbers as text.

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

// Returns a name from a file as a sentence can show it: short, and without anything that a terminal would act on.
std::string shown(std::string_view text);

// The number of modules that a note names; further ones are counted.
inline constexpr std::size_t kNamed = 3;

// The rule of findings whose gain is not in the total's time, in which the device is busy.
inline constexpr std::string_view kIdleRule = "idle-device";

// Returns "3.4%" for 0.034, "34%" for 0.34.
std::string percent(double fraction);

// Returns a row's path, or "the model" for the model's own, which is "".
std::string display_path(const std::string& path);

// Returns those of the modules' paths that are not below another one of them.
std::vector<std::string> topmost_of(const std::vector<std::string>& paths);

// Returns "1 copy", "3 copies"; if `many` is empty, the plural is `one` with an s.
std::string counted(std::int64_t count, std::string_view one, std::string_view many = "");

// Adds an item to a list in words: "a", then "a, b".
void add_item(std::string& list, std::string_view item);

// Returns "a, b, c"; with `most`, "a, b, c and 4 more".
template <class Items>
std::string listed(const Items& items, std::size_t most = ~std::size_t{0}) {
  std::string list;
  std::size_t named = 0;
  for (const auto& item : items) {
    if (named == most) return list + " and " + std::to_string(items.size() - named) + " more";
    add_item(list, item);
    ++named;
  }
  return list;
}

// ---- numbers as text, the same in every locale, which printf and streams would follow

// Formats the value as "%.<decimals>f" does.
inline std::string fixed_text(double value, int decimals) {
  std::array<char, 512> text{};  // the largest double has 309 digits
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals).ptr;
  return {text.data(), end};
}

// Formats the value as "%.<digits>g" does.
inline std::string short_text(double value, int digits) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return {text.data(), end};
}

// Lowers ASCII letters alone, so that the result does not depend on the locale (Turkish has another "i").
constexpr char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace roofprof
