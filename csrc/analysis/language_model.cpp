#include "analysis/language_model.h"

#include <algorithm>
#include <string>

#include "analysis/gainable_idle.h"
#include "analysis/rows.h"
#include "analysis/within.h"

namespace roofprof {
namespace {

std::optional<std::int64_t> known(std::int64_t context) { return context < 0 ? std::nullopt : std::optional(context); }

}  // namespace

std::vector<TokenPhase> token_phases(const Profile& data) {
  std::vector<TokenPhase> phases;
  for (const TokenCalls& calls : data.run.token_calls) {
    TokenPhase& phase = phases.emplace_back();
    phase.name = calls.region;
    phase.calls = calls.calls;
    phase.sequences = calls.sequences;
    phase.tokens = calls.tokens;
    phase.least_context = known(calls.least_context);
    phase.most_context = known(calls.most_context);
    phase.weight_bytes = calls.weight_bytes;
    phase.cache_bytes = calls.cache_bytes;
    const Profile within = within_region(data, calls.region);
    const RooflineRow total = join_total(within, join_rows(within));
    phase.macs = total.macs;
    phase.flops = total.flops;
    phase.bytes = total.bytes;
    phase.intensity = total.intensity;
    phase.time_ns = total.wall_ns;
    // A trace has the host's time, and an engine does not wait for the device.
    if (data.origin.imported && data.device && total.time_ns)
      phase.time_ns = std::max(phase.time_ns.value_or(0), *total.time_ns);
    if (phase.tokens == 0) continue;
    const auto tokens = static_cast<double>(phase.tokens);
    phase.flops_per_token = static_cast<double>(phase.flops) / tokens;
    if (phase.time_ns && *phase.time_ns > 0)
      phase.tokens_per_second = tokens / (static_cast<double>(*phase.time_ns) * 1e-9);
  }
  return phases;
}

namespace {

struct TimeOfWork {
  std::int64_t ns = 0;
  std::string of;
};

// Returns the time that a program took for all of its MACs. A trace's wall time has what was recorded before and behind
// the device's work, too.
TimeOfWork time_of_work(const Profile& data, const RooflineRow& total) {
  if (data.origin.imported && total.busy_ns)
    return {device_span_ns(total), "from the device's first launch to its last"};
  if (total.wall_ns) return {*total.wall_ns, "its wall time"};
  return {total.time_ns.value_or(0), "the time of its rows"};
}

}  // namespace

std::optional<FlopsUtilization> flops_utilization(const Profile& data, const RooflineRow& total) {
  const auto time = time_of_work(data, total);
  if (time.ns <= 0) return std::nullopt;
  double model = 0;  // seconds at the peak
  double recomputed = 0;
  for (const OpBucket& bucket : data.counts.ops) {
    if (bucket.work.macs == 0 || bucket.off_device || bucket.owner.phase == Phase::optimizer) continue;
    const ComputeCeiling* peak = data.roofs.compute_for(bucket.dtype);
    if (peak == nullptr || peak->operations_per_second <= 0) return std::nullopt;
    const double seconds = 2 * static_cast<double>(bucket.work.macs) / peak->operations_per_second;
    (bucket.owner.phase == Phase::recompute ? recomputed : model) += seconds;
  }
  if (model + recomputed <= 0) return std::nullopt;
  const double percent = 100 / (static_cast<double>(time.ns) * 1e-9);
  return FlopsUtilization{
      .mfu = percent * model, .hfu = percent * (model + recomputed), .time_ns = time.ns, .time_of = time.of};
}

}  // namespace roofprof
