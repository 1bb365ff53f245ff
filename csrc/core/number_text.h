#pragma once
// Numbers as text, the same whatever locale the program has set: printf and streams follow it.

#include <array>
#include <charconv>
#include <string>

namespace roofprof {

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

// ASCII alone: what the locale makes of "I" depends on the locale.
constexpr char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace roofprof
