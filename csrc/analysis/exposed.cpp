#include "analysis/exposed.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/collective_kinds.h"

namespace roofprof {

namespace {

// Returns the part of its exposed time that the network's roof explains; empty where that is not known.
std::optional<double> needed_share(const Profile& data, const CollectiveBucket& collective) {
  const auto bound_ns = network_bound_ns(data, collective);
  if (!bound_ns) return std::nullopt;
  if (collective.exposed_ns <= 0) return 0;
  return std::min(1.0, *bound_ns / static_cast<double>(collective.exposed_ns));
}

bool is_known(const Profile& data) {
  const auto& collectives = *data.comms;
  return !collectives.exposed_in.empty() || std::ranges::all_of(collectives.collectives, [](const auto& one) {
    return one.timed_calls == 0 || (one.exposed_known && one.exposed_ns == 0);
  });
}

}  // namespace

const NetworkCeiling* network_roof(const Ceilings& ceilings, std::string_view collective, const ProcessGroup& group) {
  if (collective == name_of(CollectiveKind::recv)) collective = name_of(CollectiveKind::send);
  const auto found = std::ranges::find_if(ceilings.network, [&](const NetworkCeiling& roof) {
    return roof.collective == collective && roof.backend == group.backend && roof.ranks == group.ranks;
  });
  return found == ceilings.network.end() || found->bytes_per_second <= 0 ? nullptr : &*found;
}

std::optional<double> network_bound_ns(const Profile& data, const CollectiveBucket& collective) {
  const auto& op = data.counts.ops[static_cast<std::size_t>(collective.bucket)];
  const auto& group = data.comms->groups[static_cast<std::size_t>(collective.group)];
  const auto kind = collective_of(op.op);
  if (!kind || op.calls <= 0 || !op.costed || collective.uneven) return std::nullopt;
  const auto* roof = network_roof(data.roofs, name_of(*kind), group);
  if (roof == nullptr) return std::nullopt;
  const auto calls = static_cast<double>(collective.timed_calls);
  const double bytes = static_cast<double>(message_bytes(*kind, op.work, group.ranks)) / static_cast<double>(op.calls);
  const double sent = bus_factor(*kind, group.ranks) * bytes * calls;
  return roof->latency_ns * calls + sent / roof->bytes_per_second * 1e9;
}

Exposed& Exposed::operator+=(const Exposed& other) {
  if (other.time_ns > time_ns) backend = other.backend;
  time_ns = saturating_add(time_ns, other.time_ns);
  needed_ns = saturating_add(needed_ns, other.needed_ns);
  roof_known = roof_known && other.roof_known;
  return *this;
}

std::optional<std::vector<ExposedPart>> exposed_parts(const Profile& data) {
  if (!is_known(data)) return std::nullopt;
  const auto& collectives = *data.comms;
  std::vector<ExposedPart> parts;
  for (const auto& part : collectives.exposed_in) {
    const auto& collective = collectives.collectives[static_cast<std::size_t>(part.collective)];
    const auto share = needed_share(data, collective);
    const auto needed_ns = std::llround(share.value_or(0) * static_cast<double>(part.exposed_ns));
    const auto& backend = collectives.groups[static_cast<std::size_t>(collective.group)].backend;
    parts.push_back({part.owner.module,
                     part.owner.region,
                     collective.bucket,
                     {part.exposed_ns, needed_ns, share.has_value(), backend}});
  }
  return parts;
}

std::optional<std::vector<HiddenTime>> hidden_times(const Profile& data) {
  const auto& collectives = data.comms->collectives;
  const auto is_unknown = [](const auto& one) { return one.timed_calls > 0 && !one.exposed_known; };
  if ((data.device && !is_known(data)) || std::ranges::any_of(collectives, is_unknown)) return std::nullopt;
  // A collective that the host timed may take longer than its kernels.
  std::map<std::pair<Owner, std::string_view>, std::int64_t> of_kernels;
  for (const auto& kernel : data.device->kernels) {
    if (kernel.kind != KernelKind::kernel) continue;
    auto& sum_ns = of_kernels[{kernel.owner, kernel.op}];
    sum_ns = saturating_add(sum_ns, kernel.total_ns);
  }
  std::vector<HiddenTime> hidden;
  for (const auto& one : collectives) {
    const auto& op = data.counts.ops[static_cast<std::size_t>(one.bucket)];
    auto ns = std::max<std::int64_t>(one.time_ns - one.exposed_ns, 0);
    if (data.device) {
      auto& left_ns = of_kernels[{op.owner, op.op}];
      ns = std::min(ns, left_ns);
      left_ns -= ns;
    }
    if (ns > 0) hidden.push_back({one.bucket, op.owner, ns});
  }
  return hidden;
}

std::vector<HiddenTime> hidden_in_kernels(const Profile& data) {
  if (!data.device) return {};
  return hidden_times(data).value_or(std::vector<HiddenTime>{});
}

std::optional<std::vector<Exposed>> exposed_by_module(const Profile& data) {
  const auto parts = exposed_parts(data);
  if (!parts) return std::nullopt;
  std::vector<Exposed> exposed(data.tree.modules.size());
  for (const auto& part : *parts) exposed[index_of(part.module)] += part.exposed;
  return exposed;
}

}  // namespace roofprof
