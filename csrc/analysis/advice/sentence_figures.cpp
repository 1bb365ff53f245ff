#include "analysis/advice/sentence_figures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/number_text.h"
#include "core/phrases.h"

namespace roofprof::sentences {

std::string number(double value) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kPrefixes = {{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  std::string_view prefix;
  for (const auto& [size, name] : kPrefixes) {
    if (prefix.empty() && std::abs(value) >= size * 0.9995) {
      value /= size;
      prefix = name;
    }
  }
  const bool whole = prefix.empty() && value == std::floor(value);
  return (whole ? fixed_text(value, 0) : short_text(value, 3)).append(prefix);
}

double value_of(const NamedFigures& figures, std::string_view name) {
  const auto found =
      std::ranges::find(figures, name, [](const auto& figure) { return std::string_view(figure.first); });
  return found == figures.end() ? 0 : found->second;
}

std::string text_of(const NamedFigures& figures, std::string_view name) { return number(value_of(figures, name)); }

std::string percent_of_roof(const NamedFigures& figures) {
  const double reached = value_of(figures, "percent_of_roof");
  return (reached < 0.1 ? "under 0.1%" : percent(reached / 100)) + " of the roof";
}

std::string text_of_microseconds(double us) { return us < 1e3 ? number(us) + " us" : number(us / 1e3) + " ms"; }

}  // namespace roofprof::sentences
