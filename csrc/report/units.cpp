#include "report/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace roofprof {

namespace {

// Three significant digits for 0 < value < 1000; whole numbers below 1,000 of an unscaled unit need no decimals.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size < 9.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// The largest prefix whose rounded number stays below 1,000: 999,600 is "1.00 M", not "1000 k".
std::string scaled(double value, std::string_view unit, std::string_view gap) {
  static constexpr std::array<std::string_view, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t power = 0;
  while (std::abs(value) >= 999.5 && power + 1 < kPrefixes.size()) {
    value /= 1000;
    ++power;
  }
  const bool whole = power == 0 && value == std::floor(value);
  const std::string number = whole ? fmt::format("{:.0f}", value) : three_digits(value);
  const std::string suffix = std::string(kPrefixes[power]) + std::string(unit);
  return suffix.empty() ? number : number + std::string(gap) + suffix;
}

}  // namespace

std::string human_count(double value, std::string_view unit, std::string_view gap) { return scaled(value, unit, gap); }

std::string human_bytes(double bytes, std::string_view gap) { return scaled(bytes, "B", gap); }

std::string human_time(double nanoseconds, std::string_view gap) {
  struct Step {
    double nanoseconds;
    std::string_view unit;
  };
  static constexpr std::array<Step, 3> kSteps = {{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}}};
  for (const auto& step : kSteps) {
    const double value = nanoseconds / step.nanoseconds;
    if (std::abs(value) < 999.5) {
      const bool whole = step.nanoseconds == 1 && value == std::floor(value);
      return (whole ? fmt::format("{:.0f}", value) : three_digits(value)) + std::string(gap) + std::string(step.unit);
    }
  }
  return three_digits(nanoseconds / 1e9) + std::string(gap) + "s";
}

std::string human_ratio(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 0.001) return fmt::format("{:.0e}", value);
  if (size < 0.9995) return fmt::format("{:#.3g}", value);
  return three_digits(value);
}

std::string human_percent(double percent) {
  if (percent == 0) return "0%";
  if (std::abs(percent) < 0.01) return percent < 0 ? ">-0.01%" : "<0.01%";
  if (std::abs(percent) < 0.995) return fmt::format("{:.2f}%", percent);
  return std::abs(percent) < 99.95 ? fmt::format("{:.1f}%", percent) : fmt::format("{:.0f}%", percent);
}

std::string by_dtype_text(const std::array<std::int64_t, kDTypeCount>& counts) {
  std::string text;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (counts[i] != 0) text += fmt::format("{}{}={}", text.empty() ? "" : " ", kDTypeNames[i], counts[i]);
  }
  return text;
}

std::string blocks_text(const std::array<std::int32_t, 3>& blocks) {
  if (blocks == std::array<std::int32_t, 3>{}) return "";
  return fmt::format("{}", fmt::join(blocks, "x"));
}

}  // namespace roofprof
