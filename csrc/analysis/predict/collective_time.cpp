#include "analysis/predict/collective_time.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/phrases.h"

namespace roofprof {

namespace {

// NVIDIA's switches add up what ranks send where NCCL asks them to: in all_reduces of so many ranks.
constexpr std::int64_t kSwitchRanks = 8;
// A rank that copies reads and writes each byte.
constexpr double kReadAndWritten = 2;

// Returns the steps from rank to rank that one piece of the data takes.
double steps_of(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1);
    case CollectiveKind::all_to_all:
    case CollectiveKind::barrier:
      return std::log2(ranks);
    case CollectiveKind::send:
    case CollectiveKind::recv:
      return 1;
    default:
      return ranks - 1;
  }
}

const NetworkCeiling* measured_roof(CollectiveKind kind, std::int64_t ranks, const Ceilings& ceilings) {
  const auto found = std::ranges::find_if(ceilings.network, [&](const NetworkCeiling& roof) {
    return roof.collective == name_of(kind) && roof.ranks == ranks && roof.bytes_per_second > 0;
  });
  return found == ceilings.network.end() ? nullptr : &*found;
}

}  // namespace

bool is_on_pcie(const CardFacts& facts) { return facts.link.starts_with("PCIe"); }

double collective_seconds(CollectiveKind kind, double bytes, std::int64_t ranks, const Ceilings& ceilings,
                          const PredictionParameters& parameters) {
  constexpr double kNanosecond = 1e-9;
  if (ranks < 2) return 0;
  const double wire = bus_factor(kind, ranks) * bytes;
  if (const auto* roof = measured_roof(kind, ranks, ceilings)) {
    return roof->latency_ns * kNanosecond + wire / roof->bytes_per_second;
  }
  const CardFacts& facts = ceilings.facts;
  const auto* dram = ceilings.memory_level("DRAM");
  if (facts.link_bytes_per_second <= 0 || dram == nullptr) {
    throw InvalidArgument("how the devices of a machine with several of '" + shown(ceilings.device) +
                          "' are linked is not known: give roofs with a measured network");
  }
  const CollectiveParameters& known = parameters.collectives;
  const AchievedShare& architecture = or_usual(parameters.achieved_on(facts.compute_capability));
  const auto n = static_cast<double>(ranks);
  const bool reduces = kind == CollectiveKind::all_reduce;
  const bool direct = kind == CollectiveKind::all_to_all;
  // Ranks on PCIe share their host, through which their data goes.
  const double of_link = is_on_pcie(facts) ? known.of_pcie * 2 / n : known.of_fabric;
  // No part of an all_reduce is copied.
  const double own = reduces ? 0 : kReadAndWritten * bytes / n;
  double sending = wire / (facts.link_bytes_per_second * of_link) + own / (dram->bytes_per_second * known.of_memory);
  if (reduces && ranks >= kSwitchRanks) sending /= architecture.switch_reduction;
  const double half = direct ? known.direct_bytes : known.ring_bytes;
  const double filling = wire <= 0 ? 0 : (direct ? known.direct_filling : known.ring_filling) * wire / (wire + half);
  const double latency = known.launch + known.step * steps_of(kind, n) + filling;
  return latency * architecture.link_latency + sending;
}

}  // namespace roofprof
