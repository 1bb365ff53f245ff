#include "core/roofs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/phrases.h"
#include "roofprof/ceilings.h"

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
    if (wrong.empty() && peak.sustained) {
      wrong = wrong_rate(peak.sustained->operations_per_second,
                         "sustained operations_per_second of " + std::string(name_of(peak.dtype)));
    }
    if (!wrong.empty()) return wrong;
  }
  for (const auto& level : ceilings.memory) {
    const std::string name = shown(level.level);
    auto wrong = wrong_rate(level.bytes_per_second, "bytes_per_second of " + name);
    if (!wrong.empty()) return wrong;
    if (level.counted_bytes_per_second != 0) {
      wrong = wrong_rate(level.counted_bytes_per_second, "counted_bytes_per_second of " + name);
      if (!wrong.empty()) return wrong;
    }
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

const MemoryCeiling* last_cache(const Ceilings& ceilings) {
  const MemoryCeiling* last = nullptr;
  for (const auto& level : ceilings.memory) {
    const bool is_cache = level.level != kHostLink && level.capacity_bytes > 0 && level.bytes_per_second > 0;
    if (is_cache && (last == nullptr || level.capacity_bytes > last->capacity_bytes)) last = &level;
  }
  return last;
}

namespace {

std::int64_t capacity_of(const MemoryCeiling& ceiling) {
  return ceiling.capacity_bytes > 0 ? ceiling.capacity_bytes : std::numeric_limits<std::int64_t>::max();
}

// Returns the bandwidth for a working set. Between two measured ones it follows the logarithms, as both axes of a curve
// span decades.
double interpolated(const std::vector<BandwidthPoint>& points, double BandwidthPoint::* mix, std::int64_t working_set) {
  const auto next = std::ranges::lower_bound(points, working_set, {}, &BandwidthPoint::working_set_bytes);
  if (next == points.begin()) return points.front().*mix;
  if (next == points.end()) return points.back().*mix;
  const auto& before = *std::prev(next);
  const auto log_of = [](std::int64_t bytes) { return std::log(static_cast<double>(bytes)); };
  const double share = (log_of(working_set) - log_of(before.working_set_bytes)) /
                       (log_of(next->working_set_bytes) - log_of(before.working_set_bytes));
  return std::exp(std::lerp(std::log(before.*mix), std::log((*next).*mix), share));
}

void refuse_empty(const BandwidthCurve& curve) {
  if (curve.empty()) throw LogicError("roofprof: the bandwidth curve has no points; ask empty() before");
}

struct Mix {
  double written;  // share of the bytes
  double BandwidthPoint::* rate;
};
constexpr std::array kMixes = {Mix{0, &BandwidthPoint::read}, Mix{1.0 / 3, &BandwidthPoint::triad},
                               Mix{0.5, &BandwidthPoint::copy}, Mix{1, &BandwidthPoint::write}};

}  // namespace

// The time of a byte, not its rate, is linear in the share of writes where one bus carries both.
double BandwidthCurve::bytes_per_second(const MemoryTraffic& traffic, std::int64_t working_set_bytes) const {
  refuse_empty(*this);
  const auto rate = [&](double BandwidthPoint::* mix) { return interpolated(points, mix, working_set_bytes); };
  const auto seconds_per_byte = [&](double BandwidthPoint::* mix) { return 1 / rate(mix); };
  const auto updated = static_cast<double>(traffic.updated_bytes);
  const double reads = static_cast<double>(traffic.read_bytes) - updated;
  const double writes = static_cast<double>(traffic.write_bytes) - updated;
  const double total = reads + writes + 2 * updated;
  if (total <= 0) return rate(&BandwidthPoint::read);

  double seconds = 2 * updated * seconds_per_byte(&BandwidthPoint::update);
  if (const double others = reads + writes; others > 0) {
    const double written = std::clamp(writes / others, 0.0, 1.0);
    std::size_t above = 1;
    while (above + 1 < kMixes.size() && kMixes[above].written < written) ++above;
    const Mix& low = kMixes[above - 1];
    const Mix& high = kMixes[above];
    seconds += others * std::lerp(seconds_per_byte(low.rate), seconds_per_byte(high.rate),
                                  (written - low.written) / (high.written - low.written));
  }
  return total / seconds;
}

double BandwidthCurve::spread_at(std::int64_t working_set_bytes) const {
  refuse_empty(*this);
  const auto next = std::ranges::lower_bound(points, working_set_bytes, {}, &BandwidthPoint::working_set_bytes);
  return next == points.end() ? points.back().spread : next->spread;
}

const ComputeCeiling* Ceilings::compute_for(DType dtype) const& {
  for (const auto& ceiling : compute) {
    if (ceiling.dtype == dtype && ceiling.operations_per_second > 0) return &ceiling;
  }
  return nullptr;
}

// Searches by capacity, not by position: a ceilings file edited by hand may list its levels in any order.
const MemoryCeiling* Ceilings::memory_for(std::int64_t working_set_bytes) const& {
  const MemoryCeiling* smallest = nullptr;
  for (const auto& ceiling : memory) {
    if (ceiling.level == kHostLink || !(ceiling.bytes_per_second > 0)) continue;
    if (capacity_of(ceiling) < working_set_bytes) continue;
    if (smallest == nullptr || capacity_of(ceiling) < capacity_of(*smallest)) smallest = &ceiling;
  }
  return smallest;
}

std::optional<MemoryRoof> Ceilings::memory_roof(const MemoryTraffic& traffic, std::int64_t working_set_bytes) const& {
  const MemoryCeiling* level = memory_for(working_set_bytes);
  if (level == nullptr) return std::nullopt;
  if (curve.empty()) return MemoryRoof{level->level, level->bytes_per_second, level->provenance.spread};
  return MemoryRoof{level->level, curve.bytes_per_second(traffic, working_set_bytes),
                    curve.provenance.spread ? std::optional(curve.spread_at(working_set_bytes)) : std::nullopt};
}

std::optional<MemoryRoof> Ceilings::memory_roof(const MemoryTraffic& traffic, std::int64_t working_set_bytes) const&& {
  static auto& mutex = *new std::mutex;
  static auto& levels = *new std::set<std::string, std::less<>>;
  auto roof = memory_roof(traffic, working_set_bytes);
  if (!roof) return roof;
  const std::lock_guard lock(mutex);
  roof->level = *levels.emplace(roof->level).first;
  return roof;
}

const MemoryCeiling* Ceilings::memory_level(std::string_view level) const& {
  for (const auto& ceiling : memory) {
    if (ceiling.level == level) return &ceiling;
  }
  return nullptr;
}

}  // namespace roofprof
