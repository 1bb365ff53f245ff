#include "analysis/ranks/collective_rows.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "analysis/communication/exposed.h"
#include "analysis/derivations.h"
#include "analysis/rows.h"
#include "core/collective_kinds.h"

namespace roofprof {

namespace {

std::int64_t times(double factor, std::int64_t bytes) { return std::llround(factor * static_cast<double>(bytes)); }

std::optional<std::int64_t> bytes_by(Algorithm algorithm, CollectiveKind kind, const Collective& row) {
  const auto factor = wire_factor(kind, algorithm, row.ranks);
  return factor ? std::optional(times(*factor, row.bytes)) : std::nullopt;
}

void add_times(const CollectiveBucket& bucket, double share, double factor, Collective& row) {
  row.time_ns = bucket.time_ns;
  if (bucket.exposed_known) row.exposed_ns = bucket.exposed_ns;
  if (bucket.waited_calls == bucket.timed_calls) {
    row.wait_ns = bucket.wait_ns;
    row.transfer_ns = bucket.transfer_ns;
  }
  const auto seconds = static_cast<double>(row.transfer_ns.value_or(bucket.time_ns)) * 1e-9;
  if (seconds <= 0 || row.bytes <= 0) return;
  row.algorithm_bandwidth = share * static_cast<double>(row.bytes) / seconds;
  row.bus_bandwidth = *row.algorithm_bandwidth * factor;
}

void add_bound(double bound_ns, Collective& row) {
  row.lower_bound_ns = std::llround(bound_ns);
  row.bound = {BoundKind::network, row.backend};
  if (!row.time_ns || *row.time_ns <= 0) return;
  row.percent_of_roof = 100 * bound_ns / static_cast<double>(*row.time_ns);
  row.wasted_ns = std::max<std::int64_t>(*row.time_ns - *row.lower_bound_ns, 0);
}

}  // namespace

std::vector<Collective> collective_rows(const ProfileData& data) {
  record_derivation("collectives", data);
  std::vector<Collective> rows;
  for (const auto& bucket : data.collectives.collectives) {
    const auto& op = data.ops[static_cast<std::size_t>(bucket.bucket)];
    const auto& group = data.collectives.groups[static_cast<std::size_t>(bucket.group)];
    const auto kind = collective_of(op.op);
    if (!kind || op.calls <= 0 || bucket.calls <= 0) continue;
    Collective row;
    row.name = name_of(*kind);
    row.op = op.op;
    row.group = group.name;
    row.backend = group.backend;
    row.ranks = group.ranks;
    row.hosts = group.hosts;
    row.module = data.modules[index_of(op.owner.module)].path;
    row.phase = kPhaseNames.at(static_cast<std::size_t>(op.owner.phase));
    row.dtype = op.dtype;
    row.shapes = op.shapes;
    row.calls = bucket.calls;
    row.timed_calls = bucket.timed_calls;
    // An op may be called in several groups.
    const auto all = message_bytes(*kind, op.work, group.ranks);
    row.bytes = times(static_cast<double>(bucket.calls) / static_cast<double>(op.calls), all);
    const double factor = bus_factor(*kind, group.ranks);
    row.wire_bytes = times(factor, row.bytes);
    row.ring_bytes = bytes_by(Algorithm::ring, *kind, row);
    row.tree_bytes = bytes_by(Algorithm::tree, *kind, row);
    row.direct_bytes = bytes_by(Algorithm::direct, *kind, row);
    const double share = static_cast<double>(bucket.timed_calls) / static_cast<double>(bucket.calls);
    if (bucket.timed_calls > 0) add_times(bucket, share, factor, row);
    if (const auto bound_ns = network_bound_ns(data, bucket)) add_bound(*bound_ns, row);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const Collective& row) { return std::tuple(row.time_ns.value_or(-1), row.bytes); });
  return rows;
}

void add_communication(const ProfileData& data, std::vector<RooflineRow>& rows, RooflineRow& total) {
  struct Sum {
    bool any = false;  // collectives that it caused
    std::int64_t caused_ns = 0;
    std::int64_t exposed_ns = 0;
  };
  std::vector<Sum> sums(data.modules.size() + 1);  // the last one is of all
  const auto add = [&](ModuleId module, auto add_to) {
    add_to(sums.back());
    for (; module >= 0; module = data.modules[index_of(module)].parent) add_to(sums[index_of(module)]);
  };
  bool any = false;
  for (const auto& bucket : data.collectives.collectives) {
    if (bucket.timed_calls == 0) continue;
    any = true;
    add(data.ops[static_cast<std::size_t>(bucket.bucket)].owner.module, [&](Sum& sum) {
      sum.any = true;
      sum.caused_ns = saturating_add(sum.caused_ns, bucket.time_ns);
    });
  }
  const auto exposed = any ? exposed_by_module(data) : std::nullopt;
  for (std::size_t id = 0; exposed && id < exposed->size(); ++id) {
    add(static_cast<ModuleId>(id),
        [&](Sum& sum) { sum.exposed_ns = saturating_add(sum.exposed_ns, (*exposed)[id].time_ns); });
  }
  const auto add_to_row = [&](const Sum& sum, RooflineRow& row) {
    if (sum.any) row.communication_ns = sum.caused_ns;
    if (exposed && row.time_ns) row.exposed_communication_ns = sum.exposed_ns;
  };
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < rows.size(); ++i) add_to_row(sums[index_of(ids[i])], rows[i]);
  add_to_row(sums.back(), total);
}

}  // namespace roofprof
