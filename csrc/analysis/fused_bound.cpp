#include "analysis/fused_bound.h"

#include <algorithm>
#include <array>

#include "core/memory_time.h"

namespace roofprof {
namespace {

// Sums over a module's subtree, in one phase.
struct Fused {
  std::int64_t bytes = 0;
  std::int64_t compute_ns = 0;
  double memory_seconds = 0;
};

// The seconds that the bucket's reads and its writes take.
struct Seconds {
  double read = 0;
  double write = 0;
};

Seconds seconds_of(const OpBucket& bucket, const Ceilings& ceilings) {
  Seconds seconds;
  if (bucket.link_bytes > 0) {  // over the host link, from one memory to another
    if (const auto link = memory_time(bucket, ceilings)) {
      for (const auto& [level, share] : link->at_level) seconds.read = seconds.write = share.seconds / 2;
    }
    return seconds;
  }
  const auto held = held_traffic(bucket, ceilings);
  if (!held) return seconds;  // then neither bound is known
  for (const auto& [traffic, roof] : *held) {
    seconds.read += static_cast<double>(traffic.read_bytes) / roof.bytes_per_second;
    seconds.write += static_cast<double>(traffic.write_bytes) / roof.bytes_per_second;
  }
  return seconds;
}

double share_of_bytes(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::vector<FusedBound> fused_bounds(const Profile& data, const std::vector<ModuleSums>& inclusive) {
  if (!data.counts.crossings_known) return {};
  std::vector<std::array<Fused, kPhaseCount>> sums(data.tree.modules.size());
  for (const auto& bucket : data.counts.ops) {
    if (!bucket.costed) continue;
    // Work that did not run on the device takes none of its time.
    const auto compute_ns = roof_shares(bucket, data.roofs).compute_time_ns;
    const auto seconds = bucket.off_device ? Seconds{} : seconds_of(bucket, data.roofs);
    for_each_crossing(bucket, data.tree.modules, [&](ModuleId module, const Crossing& crossing) {
      auto& sum = sums[index_of(module)][static_cast<std::size_t>(bucket.owner.phase)];
      // A predicted op may move less than the one that was counted.
      const auto read = std::min(crossing.read_bytes, bucket.work.read_bytes);
      const auto written = std::min(crossing.write_bytes, bucket.work.write_bytes);
      sum.bytes = saturating_add(sum.bytes, saturating_add(read, written));
      sum.compute_ns = saturating_add(sum.compute_ns, compute_ns);
      sum.memory_seconds += seconds.read * share_of_bytes(read, bucket.work.read_bytes) +
                            seconds.write * share_of_bytes(written, bucket.work.write_bytes);
    });
  }
  std::vector<FusedBound> bounds(data.tree.modules.size());
  for (std::size_t id = 0; id < bounds.size(); ++id) {
    const auto& tally = inclusive[id].tally;
    // Communication takes its time in a fused module, too.
    auto ns = tally.exposed.needed_ns;
    for (const auto& sum : sums[id]) {
      bounds[id].bytes = saturating_add(bounds[id].bytes, sum.bytes);
      ns = saturating_add(ns, std::max(sum.compute_ns, rounded_ns(sum.memory_seconds)));
    }
    bounds[id].time_ns = ns;
  }
  return bounds;
}

void add_fused_figures(const FusedBound& bound, RooflineRow& row) {
  row.fused_bytes = bound.bytes;
  if (!bound.time_ns || !row.lower_bound_time_ns) return;
  const auto lower_ns = *row.lower_bound_time_ns;
  row.fused_bound_time_ns = std::min(*bound.time_ns, lower_ns);  // each op's time was rounded there
  if (!row.percent_of_roof) return;
  const auto share = lower_ns > 0 ? static_cast<double>(*row.fused_bound_time_ns) / static_cast<double>(lower_ns) : 0;
  row.percent_of_fused = *row.percent_of_roof * share;
}

}  // namespace roofprof
