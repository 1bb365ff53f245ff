#include "analysis/roofline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/memory_time.h"

#include "core/collective_kinds.h"

namespace roofprof {

namespace {

constexpr double kNanosecondsPerSecond = 1e9;

void add_known(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& part) {
  if (part) sum = saturating_add(sum.value_or(0), *part);
}

bool has_work(const Work& work) {
  return work.bytes() > 0 || std::any_of(work.operations.begin(), work.operations.end(), [](auto n) { return n > 0; });
}

// Returns the bytes that pass the roof that holds the bucket.
std::int64_t moved_bytes(const OpBucket& bucket) {
  return bucket.link_bytes > 0 ? bucket.link_bytes : bucket.work.bytes();
}

DType largest_dtype(const std::array<double, kDTypeCount>& seconds) {
  return static_cast<DType>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
}

// Returns the entry with the most seconds in a map from the names of levels.
template <class Share, class Seconds>
auto largest_level(const std::map<std::string, Share>& shares, Seconds seconds) {
  return std::ranges::max_element(shares, {}, [&](const auto& share) { return seconds(share.second); });
}

// Returns the work that took the time.
Work timed_work(const Tally& tally) {
  Work work = tally.work;
  const Work& elsewhere = tally.off_device;
  for (std::size_t i = 0; i < kDTypeCount; ++i) work.operations[i] -= elsewhere.operations[i];
  work.macs -= elsewhere.macs;
  work.read_bytes -= elsewhere.read_bytes;
  work.write_bytes -= elsewhere.write_bytes;
  return work;
}

std::int64_t leading_operations(const Work& work) { return std::max(work.flops(), work.int_ops()); }

// Returns min(peak, AI x bandwidth); only one of the two where the other does not apply.
std::optional<double> attainable_rate(const Work& work, const RoofShares& shares, const Ceilings& ceilings) {
  const auto operations = leading_operations(work);
  if (!shares.known || (operations == 0 && work.bytes() == 0)) return std::nullopt;
  if (operations == 0) return 0.0;
  double rate = std::numeric_limits<double>::infinity();
  auto leading = shares.at_dtype;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (is_floating(static_cast<DType>(i)) == (work.int_ops() > work.flops())) leading[i] = 0;
  }
  const DType dtype = largest_dtype(leading);
  if (const auto* peak = ceilings.compute_for(dtype); peak && leading[static_cast<std::size_t>(dtype)] > 0) {
    rate = peak->operations_per_second;
  }
  const auto level = largest_level(shares.at_level, [](const LevelShare& share) { return share.seconds; });
  if (level != shares.at_level.end() && work.bytes() > 0) {
    const double intensity = static_cast<double>(operations) / static_cast<double>(work.bytes());
    rate = std::min(rate, intensity * level->second.bytes / level->second.seconds);
  }
  return rate;
}

Bound bound_of(const Tally& tally, const Timing& timing, const Figures& figures) {
  if (!figures.time_ns) return {};
  if (2 * tally.exposed.time_ns > *figures.time_ns) return {BoundKind::network, tally.exposed.backend};
  Bound overhead{BoundKind::overhead, ""};
  if (timing.device && timing.device->between_ns - timing.device->by_observing_ns > timing.device->busy_ns) {
    return overhead;
  }
  if (!has_work(timed_work(tally))) {
    // Nothing is known of an uncosted op's work, nor of a kernel's that no op launched: such a row is not called
    // overhead. Nor is one for which a device did nothing and waited no time.
    return tally.incomplete || timing.of_device ? Bound{} : overhead;
  }
  const bool mostly_outside_ops = figures.op_time_ns && *figures.op_time_ns < *figures.time_ns - *figures.op_time_ns;
  if (!timing.of_device && mostly_outside_ops) return overhead;
  if (tally.floor_ns > *figures.time_ns / 2) return overhead;  // predicted
  if (!tally.roof.known) return {};
  if (tally.communicates && largest_share(tally.roof) == Bound{})
    return tally.incomplete ? Bound{} : Bound{BoundKind::network, ""};
  // Work so far from every roof would take as long under a higher one.
  if (figures.percent_of_roof.value_or(100) < kRoofBounds) {
    // Unless the rest of its work, which is not known, is what takes the time.
    return tally.work.lower_limit ? Bound{} : Bound{BoundKind::latency, ""};
  }
  return largest_share(tally.roof);
}

}  // namespace

std::int64_t rounded_ns(double seconds) {
  const double ns = seconds * kNanosecondsPerSecond;
  return ns < static_cast<double>(kSaturated) ? std::llround(ns) : kSaturated;
}

std::string to_string(const Bound& bound) {
  const std::string kind(name_of(bound.kind));
  return bound.resource.empty() ? kind : kind + " " + bound.resource;
}

RoofShares& RoofShares::operator+=(const RoofShares& other) {
  known = known && other.known;
  compute_time_ns = saturating_add(compute_time_ns, other.compute_time_ns);
  memory_time_ns = saturating_add(memory_time_ns, other.memory_time_ns);
  lower_bound_time_ns = saturating_add(lower_bound_time_ns, other.lower_bound_time_ns);
  counted_bound_ns = saturating_add(counted_bound_ns, other.counted_bound_ns);
  all_counted = all_counted && other.all_counted;
  any_counted = any_counted || other.any_counted;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    at_dtype[i] += other.at_dtype[i];
    bound_by_dtype[i] += other.bound_by_dtype[i];
  }
  for (const auto& [level, share] : other.at_level) at_level[level] += share;
  for (const auto& [level, seconds] : other.bound_by_level) bound_by_level[level] += seconds;
  return *this;
}

bool needs_roof(const Work& work, DType dtype) {
  return work.operations_in(dtype) > 0 && (is_floating(dtype) || work.macs > 0);
}

RoofShares roof_shares(const OpBucket& bucket, const Ceilings& ceilings) {
  RoofShares shares;
  if (is_communication(bucket.op) || bucket.off_device) return shares;
  const Work& work = bucket.work;
  double compute_seconds = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (work.operations[i] <= 0) continue;
    if (const auto* roof = ceilings.compute_for(dtype)) {
      shares.at_dtype[i] = static_cast<double>(work.operations[i]) / roof->operations_per_second;
      compute_seconds += shares.at_dtype[i];
    } else if (needs_roof(work, dtype)) {
      shares.known = false;
    }
  }

  double memory_seconds = 0;
  if (moved_bytes(bucket) > 0) {
    if (auto memory = memory_time(bucket, ceilings)) {
      shares.at_level = std::move(memory->at_level);
      for (const auto& [level, share] : shares.at_level) memory_seconds += share.seconds;
    } else {
      shares.known = false;
    }
  }

  if (!shares.known) return shares;
  shares.compute_time_ns = rounded_ns(compute_seconds);
  shares.memory_time_ns = rounded_ns(memory_seconds);
  shares.lower_bound_time_ns = std::max(shares.compute_time_ns, shares.memory_time_ns);
  const auto counted = counted_seconds(bucket, ceilings);
  shares.all_counted = counted.has_value();
  shares.any_counted = bucket.counted.has_value();
  if (counted) shares.counted_bound_ns = std::max(shares.compute_time_ns, rounded_ns(*counted));
  if (compute_seconds > memory_seconds) {
    shares.bound_by_dtype = shares.at_dtype;
  } else if (memory_seconds > 0) {
    for (const auto& [level, share] : shares.at_level) shares.bound_by_level[level] = share.seconds;
  }
  return shares;
}

Bound largest_share(const RoofShares& shares) {
  double compute = 0;
  double memory = 0;
  for (const double seconds : shares.bound_by_dtype) compute += seconds;
  for (const auto& [level, seconds] : shares.bound_by_level) memory += seconds;
  if (compute <= 0 && memory <= 0) return {};
  if (compute > memory) return {BoundKind::compute, std::string(name_of(largest_dtype(shares.bound_by_dtype)))};
  return {BoundKind::memory, largest_level(shares.bound_by_level, std::identity())->first};
}

void Tally::add(const OpBucket& bucket, const Ceilings& ceilings) {
  ++buckets;
  add_known(op_time_ns, bucket.time_ns);
  if (bucket.time_ns && bucket.time_low_ns && bucket.time_high_ns) {
    add_known(predicted_ns, bucket.time_ns);
    below_ns.add(static_cast<double>(*bucket.time_ns - *bucket.time_low_ns));
    above_ns.add(static_cast<double>(*bucket.time_high_ns - *bucket.time_ns));
  }
  floor_ns = saturating_add(floor_ns, bucket.floor_ns);
  if (!bucket.costed) {
    incomplete = true;
    return;
  }
  incomplete = incomplete || bucket.work.lower_limit;
  work += bucket.work;
  if (bucket.off_device) off_device += bucket.work;
  roof += roof_shares(bucket, ceilings);
  communicates = communicates || is_communication(bucket.op);
}

Tally& Tally::operator+=(const Tally& other) {
  work += other.work;
  off_device += other.off_device;
  roof += other.roof;
  add_known(op_time_ns, other.op_time_ns);
  add_known(predicted_ns, other.predicted_ns);
  below_ns += other.below_ns;
  above_ns += other.above_ns;
  floor_ns = saturating_add(floor_ns, other.floor_ns);
  exposed += other.exposed;
  communicates = communicates || other.communicates;
  incomplete = incomplete || other.incomplete;
  buckets += other.buckets;
  return *this;
}

Figures derive_figures(const Tally& tally, const Timing& timing, const Ceilings& ceilings, double common_error) {
  Figures figures;
  const Work& work = tally.work;
  const Work timed = timed_work(tally);
  figures.macs = work.macs;
  figures.causal_macs = work.causal_macs;
  figures.flops = work.flops();
  figures.int_ops = work.int_ops();
  figures.operations_by_dtype = work.operations;
  figures.read_bytes = work.read_bytes;
  figures.write_bytes = work.write_bytes;
  figures.bytes = work.bytes();
  figures.incomplete = tally.incomplete;
  const auto operations = static_cast<double>(figures.leading_operations());
  const bool no_operation_known = work.lower_limit && operations == 0;
  if (figures.bytes > 0 && !no_operation_known) figures.intensity = operations / static_cast<double>(figures.bytes);
  figures.attainable = attainable_rate(timed, tally.roof, ceilings);

  figures.time_ns = timing.time_ns;
  figures.time_spread = timing.spread;
  figures.op_time_ns = tally.op_time_ns;
  if (tally.predicted_ns) {
    const auto predicted = static_cast<double>(*tally.predicted_ns);
    figures.time_low_ns = rounded_ns((predicted - tally.below_ns.of_sum(common_error)) / kNanosecondsPerSecond);
    figures.time_high_ns = rounded_ns((predicted + tally.above_ns.of_sum(common_error)) / kNanosecondsPerSecond);
  }
  if (figures.time_ns && tally.buckets == 0 && !timing.of_device) figures.op_time_ns = 0;
  figures.host_time_ns = timing.host_ns;
  if (timing.device) {
    figures.busy_ns = timing.device->busy_ns;
    figures.idle_ns = saturating_add(timing.device->between_ns, timing.device->ends_ns);
    const auto both = saturating_add(timing.device->busy_ns, *figures.idle_ns);
    if (both > 0) figures.utilization = 100.0 * static_cast<double>(timing.device->busy_ns) / static_cast<double>(both);
  }
  if (const auto time_ns = figures.time_ns.value_or(0); time_ns > 0) {
    const double seconds = static_cast<double>(time_ns) / kNanosecondsPerSecond;
    figures.achieved_flops = static_cast<double>(leading_operations(timed)) / seconds;
    figures.achieved_bandwidth = static_cast<double>(timed.bytes()) / seconds;
  }

  // A row of uncosted ops alone has no lower bound: 0 would call all of its time wasted. Nor has one whose work was not
  // done on the device.
  const bool nothing_to_hold = (tally.incomplete || has_work(work)) && !has_work(timed);
  if (tally.roof.known && !nothing_to_hold) {
    figures.compute_time_ns = tally.roof.compute_time_ns;
    figures.memory_time_ns = tally.roof.memory_time_ns;
    figures.lower_bound_time_ns = saturating_add(tally.roof.lower_bound_time_ns, tally.exposed.needed_ns);
  }
  // Work that took no time at all was not timed here.
  const bool not_timed = figures.time_ns == 0 && figures.lower_bound_time_ns > 0;
  if (figures.time_ns && figures.lower_bound_time_ns && !not_timed) {
    figures.wasted_time_ns = *figures.time_ns - *figures.lower_bound_time_ns;
    // The network's roof holds collectives, not the calls that begin them.
    const bool begins_collectives = tally.communicates && *figures.lower_bound_time_ns == 0;
    if (has_work(timed) && *figures.time_ns > 0 && !begins_collectives) {
      figures.percent_of_roof =
          100.0 * static_cast<double>(*figures.lower_bound_time_ns) / static_cast<double>(*figures.time_ns);
      if (tally.roof.any_counted && tally.roof.all_counted) {
        const auto counted_ns = saturating_add(tally.roof.counted_bound_ns, tally.exposed.needed_ns);
        figures.percent_of_roof_counted =
            100.0 * static_cast<double>(counted_ns) / static_cast<double>(*figures.time_ns);
      }
    }
  }
  figures.bound = bound_of(tally, timing, figures);
  return figures;
}

}  // namespace roofprof
