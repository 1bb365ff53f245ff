#include "core/memory_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/roofs.h"

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
  if (bucket.link_bytes > 0 || bytes <= 0 || bucket.counted) return false;
  const auto parts = memory_parts(bucket);
  return parts.size() > bucket.reuse.size() && bytes_of(parts.back().traffic) > kNegligible * bytes;
}

namespace {

MemoryTraffic scaled(const MemoryTraffic& traffic, double reads, double writes) {
  const auto part = [](std::int64_t bytes, double share) { return std::llround(static_cast<double>(bytes) * share); };
  return {part(traffic.read_bytes, reads), part(traffic.write_bytes, writes),
          part(traffic.updated_bytes, std::min(reads, writes))};
}

MemoryTraffic without(const MemoryTraffic& all, const MemoryTraffic& part) {
  const MemoryTraffic rest{all.read_bytes - part.read_bytes, all.write_bytes - part.write_bytes,
                           all.updated_bytes - part.updated_bytes};
  return {rest.read_bytes, rest.write_bytes, std::min({rest.updated_bytes, rest.read_bytes, rest.write_bytes})};
}

// The shares of an op's bytes by what was counted: 0-1 each.
struct Shares {
  double uncounted = 0;  // of all bytes: those of copies and fills
  double reads = 0;      // of the counted reads: those that DRAM was seen to move
  double writes = 0;
};

double share_of(std::int64_t part, double whole) {
  return whole > 0 ? std::clamp(static_cast<double>(part) / whole, 0.0, 1.0) : 0;
}

Shares shares_of(const CountedBytes& counted, const Work& work) {
  const auto reads = static_cast<double>(work.read_bytes);
  const auto writes = static_cast<double>(work.write_bytes);
  Shares shares;
  shares.uncounted = share_of(counted.uncounted_bytes, reads + writes);
  const double left = 1 - shares.uncounted;
  if (counted.dram_read_bytes && counted.dram_write_bytes) {
    shares.reads = share_of(*counted.dram_read_bytes, left * reads);
    shares.writes = share_of(*counted.dram_write_bytes, left * writes);
  } else {
    shares.reads = shares.writes = share_of(counted.dram_bytes, left * (reads + writes));
  }
  return shares;
}

constexpr std::int64_t kBeyondCaches = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::optional<std::vector<HeldTraffic>> held_traffic(const OpBucket& bucket, const Ceilings& ceilings) {
  std::vector<HeldTraffic> held;
  const auto hold = [&](const MemoryTraffic& traffic, std::int64_t working_set) {
    const auto roof = ceilings.memory_roof(traffic, working_set);
    if (roof) held.push_back({traffic, *roof});
    return roof.has_value();
  };
  const auto* cache = last_cache(ceilings);
  const bool by_counts =
      bucket.counted && bucket.work.bytes() > 0 && cache != nullptr && ceilings.memory_for(kBeyondCaches) != nullptr;
  const Shares shares = by_counts ? shares_of(*bucket.counted, bucket.work) : Shares{.uncounted = 1};
  for (const auto& [traffic, working_set] : memory_parts(bucket)) {
    if (shares.uncounted >= 1) {
      if (!hold(traffic, working_set)) return std::nullopt;
      continue;
    }
    const auto by_reuse = scaled(traffic, shares.uncounted, shares.uncounted);
    const auto counted = without(traffic, by_reuse);
    const auto missed = scaled(counted, shares.reads, shares.writes);
    const auto found = without(counted, missed);
    if (bytes_of(by_reuse) > 0 && !hold(by_reuse, working_set)) return std::nullopt;
    if (bytes_of(missed) > 0 && !hold(missed, kBeyondCaches)) return std::nullopt;
    if (bytes_of(found) > 0 && !hold(found, std::min(working_set, cache->capacity_bytes))) return std::nullopt;
  }
  return held;
}

std::optional<double> counted_seconds(const OpBucket& bucket, const Ceilings& ceilings) {
  const auto by_reuse = [&](const OpBucket& of) -> std::optional<double> {
    const auto time = memory_time(of, ceilings);
    if (!time) return std::nullopt;
    double seconds = 0;
    for (const auto& [level, share] : time->at_level) seconds += share.seconds;
    return seconds;
  };
  if (bucket.link_bytes > 0 || (!bucket.counted && bucket.work.bytes() == 0)) return by_reuse(bucket);
  if (!bucket.counted) return std::nullopt;
  const CountedBytes& counted = *bucket.counted;
  double seconds = 0;
  if (counted.uncounted_bytes > 0) {
    OpBucket copied = bucket;
    copied.counted.reset();
    const auto all = by_reuse(copied);
    if (!all) return std::nullopt;
    seconds = *all * shares_of(counted, bucket.work).uncounted;
  }
  const bool apart = counted.dram_read_bytes && counted.dram_write_bytes;
  // Not apart: in the op's own mix.
  const double each =
      bucket.work.bytes() > 0 ? static_cast<double>(counted.dram_bytes) / static_cast<double>(bucket.work.bytes()) : 0;
  MemoryTraffic traffic{counted.dram_bytes, 0, 0};
  if (apart) traffic = {*counted.dram_read_bytes, *counted.dram_write_bytes, 0};
  if (!apart && each > 0) {
    traffic = scaled({bucket.work.read_bytes, bucket.work.write_bytes, 0}, each, each);
  }
  const auto roof = ceilings.memory_roof(traffic, kBeyondCaches);
  if (!roof) return std::nullopt;
  return seconds + bytes_of(traffic) / roof->bytes_per_second;
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
  const auto held = held_traffic(bucket, ceilings);
  if (!held) return std::nullopt;
  for (const auto& [traffic, roof] : *held) add(roof, bytes_of(traffic));
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
