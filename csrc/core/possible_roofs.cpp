#include "core/possible_roofs.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/phrases.h"

namespace roofprof {
namespace {

// Returns the shortest text that reads back as the same number.
std::string text_of(double rate) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), rate).ptr;
  return {text.data(), end};
}

std::string wrong_rate(double rate, const std::string& what) {
  if (std::isfinite(rate) && rate > 0) return "";
  return what + " is " + text_of(rate) + ", not a positive number";
}

std::string wrong_point(const BandwidthPoint& point) {
  const std::string where = " of the curve's working set of " + std::to_string(point.working_set_bytes) + " bytes";
  for (const auto& [name, rate] : std::array<std::pair<std::string_view, double>, 5>{{{"read", point.read},
                                                                                      {"triad", point.triad},
                                                                                      {"copy", point.copy},
                                                                                      {"write", point.write},
                                                                                      {"update", point.update}}}) {
    if (auto wrong = wrong_rate(rate, std::string(name) + where); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

std::string impossible_roof(const Ceilings& ceilings) {
  for (const auto& peak : ceilings.compute) {
    auto wrong = wrong_rate(peak.operations_per_second, "operations_per_second of " + std::string(name_of(peak.dtype)));
    if (!wrong.empty()) return wrong;
  }
  for (const auto& level : ceilings.memory) {
    const std::string name = shown(level.level);
    auto wrong = wrong_rate(level.bytes_per_second, "bytes_per_second of " + name);
    if (!wrong.empty()) return wrong;
    if (level.capacity_bytes < 0) {
      return "capacity_bytes of " + name + " is " + std::to_string(level.capacity_bytes) + ", not 0 or more";
    }
  }
  for (const auto& roof : ceilings.network) {
    const std::string name = shown(roof.collective) + " between " + std::to_string(roof.ranks) + " ranks";
    if (auto wrong = wrong_rate(roof.bytes_per_second, "bytes_per_second of " + name); !wrong.empty()) return wrong;
    if (!std::isfinite(roof.latency_ns) || roof.latency_ns < 0) return "latency_ns of " + name + " is not 0 or more";
  }
  std::int64_t smaller = 0;
  for (const auto& point : ceilings.curve.points) {
    if (point.working_set_bytes <= smaller) return "the working sets of the curve do not rise";
    smaller = point.working_set_bytes;
    if (auto wrong = wrong_point(point); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace roofprof
