#include "core/memory_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace roofprof {

namespace {

// The share of an op's bytes that may be missing, because parts of views are rounded down.
constexpr double kNegligible = 0.01;

double bytes_of(const MemoryTraffic& traffic) {
  return static_cast<double>(traffic.read_bytes) + static_cast<double>(traffic.write_bytes);
}

// Makes the parts' sum that of the op: what is too much is taken from all in proportion, what is missing is the last
// part's, of which nothing else is known.
void fit(std::vector<MemoryPart>& parts, std::int64_t MemoryTraffic::* bytes, std::int64_t whole) {
  double sum = 0;
  for (const auto& part : parts) sum += static_cast<double>(part.traffic.*bytes);
  const double scale = sum > static_cast<double>(whole) ? static_cast<double>(whole) / sum : 1;
  double before = 0;
  std::int64_t given = 0;
  for (auto& part : parts) {
    before += static_cast<double>(part.traffic.*bytes);
    const double scaled = before * scale;
    const std::int64_t until = scaled < static_cast<double>(whole) ? std::llround(scaled) : whole;
    part.traffic.*bytes = until - std::exchange(given, until);
  }
  parts.back().traffic.*bytes += whole - given;
}

}  // namespace

std::vector<MemoryPart> memory_parts(const OpBucket& bucket) {
  const Work& work = bucket.work;
  std::vector<MemoryPart> parts;
  for (const auto& reused : bucket.reuse) {
    const auto known = [](std::int64_t bytes) { return std::max<std::int64_t>(bytes, 0); };  // a file may say anything
    parts.push_back({{known(reused.read_bytes), known(reused.write_bytes), known(reused.updated_bytes)},
                     known(reused.distance_bytes)});
  }
  const auto calls = std::max<std::int64_t>(bucket.calls, 1);
  const MemoryTraffic call{work.read_bytes / calls, work.write_bytes / calls, work.updated_bytes / calls};
  parts.push_back({{}, call.footprint_bytes()});
  fit(parts, &MemoryTraffic::read_bytes, work.read_bytes);
  fit(parts, &MemoryTraffic::write_bytes, work.write_bytes);
  fit(parts, &MemoryTraffic::updated_bytes, work.updated_bytes);
  for (auto& [traffic, working_set] : parts) {
    traffic.updated_bytes = std::min({traffic.updated_bytes, traffic.read_bytes, traffic.write_bytes});
  }
  if (parts.size() > 1 && bytes_of(parts.back().traffic) == 0) parts.pop_back();
  return parts;
}

bool stands_at_footprint(const OpBucket& bucket) {
  const auto bytes = static_cast<double>(bucket.work.bytes());
  if (bucket.link_bytes > 0 || bytes <= 0) return false;
  const auto parts = memory_parts(bucket);
  return parts.size() > bucket.reuse.size() && bytes_of(parts.back().traffic) > kNegligible * bytes;
}

std::optional<MemoryTime> memory_time(const OpBucket& bucket, const Ceilings& ceilings) {
  MemoryTime time;
  const auto add = [&](const MemoryRoof& roof, double bytes) {
    time.at_level[std::string(roof.level)] += {bytes / roof.bytes_per_second, bytes};
    if (roof.spread) time.spread = std::max(time.spread.value_or(0), *roof.spread);
  };
  if (bucket.link_bytes > 0) {
    const auto* link = ceilings.memory_level(kHostLink);
    if (link == nullptr || !(link->bytes_per_second > 0)) return std::nullopt;
    add({link->level, link->bytes_per_second, link->provenance.spread}, static_cast<double>(bucket.link_bytes));
    return time;
  }
  for (const auto& [traffic, working_set] : memory_parts(bucket)) {
    const auto roof = ceilings.memory_roof(traffic, working_set);
    if (!roof) return std::nullopt;
    add(*roof, bytes_of(traffic));
  }
  return time;
}

std::optional<MemoryRoof> memory_roof(const OpBucket& bucket, const Ceilings& ceilings) {
  const auto time = memory_time(bucket, ceilings);
  if (!time) return std::nullopt;
  const auto leading =
      std::ranges::max_element(time->at_level, {}, [](const auto& share) { return share.second.seconds; });
  const auto* level = ceilings.memory_level(leading->first);
  double seconds = 0;
  double bytes = 0;
  for (const auto& [name, share] : time->at_level) {
    seconds += share.seconds;
    bytes += share.bytes;
  }
  const double rate = seconds > 0 ? bytes / seconds : level->bytes_per_second;
  return MemoryRoof{level->level, rate, time->spread};
}

}  // namespace roofprof
