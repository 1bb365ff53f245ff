#include "analysis/coverage.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "analysis/device_coverage.h"
#include "analysis/exposed.h"
#include "analysis/roofline.h"
#include "analysis/rows.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

constexpr std::size_t kListedModules = 8;  // in the list of an op without a cost

double spread_of(const Provenance* provenance) { return provenance ? provenance->spread.value_or(0) : 0; }

const Provenance* provenance_of(const Bound& bound, const Ceilings& ceilings) {
  if (bound.kind == BoundKind::memory) {
    const auto* level = ceilings.memory_level(bound.resource);
    return level ? &level->provenance : nullptr;
  }
  const auto* peak = ceilings.compute_for(dtype_from_name(bound.resource));
  return peak ? &peak->provenance : nullptr;
}

// Returns the spread of the roof that bounds the bucket: for memory, that of its place on the curve, if there is a
// curve.
double spread_of(const OpBucket& bucket, const Bound& roof, const Ceilings& ceilings) {
  if (roof.kind != BoundKind::memory) return spread_of(provenance_of(roof, ceilings));
  const auto memory = memory_roof(bucket, ceilings);
  return memory ? memory->spread.value_or(0) : 0;
}

struct AboveRoof {
  double ratio = 0;  // lower bound / time
  std::string path;
  double spread = 0;  // of the roof
};

struct RoofFinding {
  std::string what;  // op name
  Bound roof;
  bool operator<(const RoofFinding& other) const {
    return std::tie(what, roof.kind, roof.resource) < std::tie(other.what, other.roof.kind, other.roof.resource);
  }
};

Note describe(const RoofFinding& finding, std::vector<AboveRoof> rows) {
  const double spread = std::ranges::max(rows, {}, &AboveRoof::spread).spread;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.ratio > b.ratio; });
  std::vector<std::string> named;
  for (const auto& row : rows) named.push_back(display_path(row.path) + " (" + percent(row.ratio) + ")");
  std::string note = "above its roof: " + finding.what + " in " + listed(named, kNamed);
  note += " of the " + finding.roof.resource + " roof";
  note += spread > 0 ? ", whose spread is " + percent(spread) : std::string(", which states no spread");
  note += "; this roof is too low, or the data came from a faster level";
  std::vector<std::string> where;
  for (const auto& row : rows) where.push_back(row.path);
  return make_note("above-roof", std::move(note), std::move(where));
}

// Notes ops above their roof. A bucket that ran faster than its lower bound allows, by more than the roof's own
// uncertainty, says that the roof is wrong. The reader must see that, so it is a note, and nothing is cut at 100%.
void note_ops_above_roof(const Profile& data, std::vector<Note>& notes) {
  std::map<RoofFinding, std::vector<AboveRoof>> findings;
  for (const auto& bucket : data.counts.ops) {
    const std::int64_t time_ns = bucket.time_ns.value_or(0);
    if (!bucket.costed || time_ns <= 0) continue;
    const RoofShares shares = roof_shares(bucket, data.roofs);
    if (!shares.known || shares.lower_bound_time_ns == 0) continue;
    const Bound roof = largest_share(shares);
    const double ratio = static_cast<double>(shares.lower_bound_time_ns) / static_cast<double>(time_ns);
    const double spread = spread_of(bucket, roof, data.roofs);
    if (ratio <= 1 + spread) continue;
    findings[{bucket.op, roof}].push_back(
        {ratio, data.tree.modules[static_cast<std::size_t>(bucket.owner.module)].path, spread});
  }
  for (const auto& [finding, above] : findings) add_note(notes, describe(finding, above));
}

// Does the same for modules, in data whose ops have no times.
void note_rows_above_roof(const Profile& data, const std::vector<RooflineRow>& rows, std::vector<Note>& notes) {
  const bool ops_timed =
      std::any_of(data.counts.ops.begin(), data.counts.ops.end(), [](const auto& op) { return op.time_ns; });
  if (ops_timed) return;
  std::map<RoofFinding, std::vector<AboveRoof>> findings;
  for (const auto& row : rows) {
    if (!row.self.percent_of_roof || row.self.bound.resource.empty()) continue;
    const double ratio = *row.self.percent_of_roof / 100;
    const double spread = spread_of(provenance_of(row.self.bound, data.roofs));
    if (ratio > 1 + spread) findings[{"a module's own ops", row.self.bound}].push_back({ratio, row.path, spread});
  }
  for (const auto& [finding, above] : findings) add_note(notes, describe(finding, above));
}

// Bytes have a known distance if their op was observed with its memory.
void note_footprints(const Profile& data, std::vector<Note>& notes) {
  if (data.roofs.memory.empty() || data.origin.predicted() != nullptr) return;
  std::set<std::string> ops;
  bool all = true;
  for (const auto& bucket : data.counts.ops) {
    if (!bucket.costed || bucket.off_device || bucket.link_bytes > 0 || bucket.work.bytes() == 0) continue;
    const bool unknown = stands_at_footprint(bucket);
    if (unknown) ops.insert(bucket.op);
    all = all && unknown;
  }
  if (ops.empty()) return;
  const std::vector<std::string> named(ops.begin(), ops.end());
  add_note(notes, "reuse-not-known",
           "when memory was last touched is not known of " + (all ? "the ops" : listed(named, kNamed)) +
               ": their memory roofs are those of the cache that holds one call, though others may have evicted it",
           all ? std::vector<std::string>() : named);
}

void note_missing_roofs(const Profile& data, std::vector<Note>& notes) {
  if (data.roofs.empty()) return;
  std::set<DType> unknown;
  std::set<DType> by_bytes_alone;
  bool no_level = false;
  bool no_link = false;
  for (const auto& bucket : data.counts.ops) {
    if (!bucket.costed || bucket.off_device) continue;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (bucket.work.operations[i] <= 0 || data.roofs.compute_for(dtype) != nullptr) continue;
      (needs_roof(bucket.work, dtype) ? unknown : by_bytes_alone).insert(dtype);
    }
    if (memory_roof(bucket, data.roofs)) continue;
    no_link = no_link || bucket.link_bytes > 0;
    no_level =
        no_level || (bucket.link_bytes == 0 && bucket.work.bytes() / std::max<std::int64_t>(bucket.calls, 1) > 0);
  }
  std::set<std::string> without_network;
  for (const auto& part : exposed_parts(data).value_or(std::vector<ExposedPart>{})) {
    if (part.exposed.time_ns > 0 && !part.exposed.roof_known)
      without_network.insert(data.counts.ops[static_cast<std::size_t>(part.bucket)].op);
  }
  const auto list = [](const std::set<DType>& dtypes) {
    std::string names;
    for (const DType dtype : dtypes) add_item(names, name_of(dtype));
    return names;
  };
  if (!unknown.empty()) {
    add_note(notes, "no-roof", "no roof for " + list(unknown) + ": rows with such work have no lower bound");
  }
  if (no_level) add_note(notes, "no-roof", "no memory roof holds the largest ops: rows with them have no lower bound");
  if (no_link) {
    add_note(notes, "no-roof",
             "no roof for the host link: rows with copies between host and device have no lower bound");
  }
  if (!without_network.empty()) {
    add_note(notes, "no-roof",
             "no roof of the network for " +
                 listed(std::vector<std::string>(without_network.begin(), without_network.end()), kNamed) +
                 ": their exposed time has no %roof, and all of it counts as wasted");
  }
  if (!by_bytes_alone.empty()) {
    add_note(notes, "roof-by-bytes-alone",
             "no roof for " + list(by_bytes_alone) +
                 " operations outside matrix products: their lower bound comes from their bytes alone");
  }
}

using Ranked = std::vector<std::pair<std::string, std::int64_t>>;

// Returns the ops that `counts` holds for, with what their buckets weigh together, the heaviest first.
template <class Counts, class WeightOf>
Ranked ranked_ops(const std::vector<OpBucket>& buckets, Counts counts, WeightOf weight_of) {
  std::map<std::string, std::int64_t> weights;
  for (const auto& bucket : buckets) {
    if (!counts(bucket)) continue;
    auto& sum = weights[bucket.op];
    sum = saturating_add(sum, weight_of(bucket));
  }
  Ranked ranked(weights.begin(), weights.end());
  std::ranges::stable_sort(ranked, std::greater(), &Ranked::value_type::second);
  return ranked;
}

// Names the ops that launched nothing on the device, those of most bytes first.
void note_off_device(const Profile& data, std::vector<Note>& notes) {
  std::vector<std::string> ops;
  for (const auto& [op, bytes] : ranked_ops(
           data.counts.ops, [](const OpBucket& bucket) { return bucket.off_device; },
           [](const OpBucket& bucket) { return bucket.work.bytes(); })) {
    ops.push_back(op);
  }
  if (ops.empty() || data.roofs.empty()) return;
  add_note(notes, "off-device",
           "in some places these launched nothing on the device, as ops do that run on the host or are captured into a "
           "graph: their work is counted, and no roof of the device holds it: " +
               listed(ops, kNamed),
           ops);
}

// Names operators of which only a lower limit is known, longest time first.
void note_lower_limits(const Profile& data, const RooflineRow& total, std::vector<Note>& notes) {
  const auto all_ns = total.op_time_ns.value_or(0);
  std::vector<std::string> named;
  std::vector<std::string> ops;
  for (const auto& [op, time_ns] : ranked_ops(
           data.counts.ops, [](const OpBucket& bucket) { return bucket.costed && bucket.work.lower_limit; },
           [](const OpBucket& bucket) { return bucket.time_ns.value_or(0); })) {
    ops.push_back(op);
    named.push_back(all_ns > 0 && time_ns > 0
                        ? op + " (" + percent(static_cast<double>(time_ns) / static_cast<double>(all_ns)) +
                              " of the op time)"
                        : op);
  }
  if (ops.empty()) return;
  add_note(notes, "lower-limits", "only a part of the work is known of " + listed(named, kNamed), ops);
}

// Returns the uncosted ops, longest time first, then most calls; the modules in the model's order.
std::vector<UncostedOp> uncosted_ops(const Profile& data, const RooflineRow& total) {
  struct Found {
    std::int64_t calls = 0;
    std::optional<std::int64_t> time_ns;
    std::set<ModuleId> modules;
  };
  std::map<std::string, Found> found;
  for (const auto& bucket : data.counts.ops) {
    if (bucket.costed || data.counts.unobserved.contains(bucket.op)) continue;
    Found& op = found[bucket.op];
    op.calls = saturating_add(op.calls, bucket.calls);
    op.modules.insert(bucket.owner.module);
    if (bucket.time_ns) op.time_ns = saturating_add(op.time_ns.value_or(0), *bucket.time_ns);
  }

  std::vector<std::pair<std::int64_t, UncostedOp>> ranked;  // by time
  const auto all_ops_ns = total.op_time_ns.value_or(0);
  for (const auto& [name, op] : found) {
    UncostedOp entry{name, op.calls, std::nullopt, {}, std::ssize(op.modules)};
    if (op.time_ns && all_ops_ns > 0) {
      entry.percent_of_time = 100.0 * static_cast<double>(*op.time_ns) / static_cast<double>(all_ops_ns);
    }
    for (const ModuleId id : op.modules) {
      if (entry.modules.size() == kListedModules) break;
      entry.modules.push_back(data.tree.modules[static_cast<std::size_t>(id)].path);
    }
    ranked.emplace_back(op.time_ns.value_or(0), std::move(entry));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.calls) > std::tie(b.first, b.second.calls);
  });
  std::vector<UncostedOp> ops;
  ops.reserve(ranked.size());
  for (auto& [time_ns, op] : ranked) ops.push_back(std::move(op));
  return ops;
}

struct Uncalled {
  std::vector<std::string> dead;        // nothing of them was used
  std::vector<std::string> other_ways;  // other methods of theirs ran
  std::vector<std::string> used;        // others read their parameters
};

// Returns whether the module is an embedding. Other code often reads its table alone, and reading rows is not work.
bool is_table(const Module& module) { return module.type.find("Embedding") != std::string::npos; }

// Returns whether not calling the module leaves nothing out: a Dropout whose rate a fused operator reads, an Identity.
bool is_idle_by_nature(const Module& module) {
  return module.params == 0 && (module.type.find("Dropout") != std::string::npos || module.type == "Identity");
}

// Returns the modules that were not called. A module with several places ran if it did at one of them.
Uncalled uncalled_modules(const Profile& data) {
  const auto calls = calls_by_module(data);
  const auto& modules = data.tree.modules;
  const auto first_place = [&](std::size_t id) {
    return modules[id].same_as < 0 ? id : static_cast<std::size_t>(modules[id].same_as);
  };
  std::vector<bool> ran(modules.size());
  std::vector<bool> used(modules.size());        // it ran, or ops read its parameters
  std::vector<bool> ran_inside(modules.size());  // some module below it ran
  std::vector<bool> used_inside(modules.size());
  for (std::size_t id = 0; id < modules.size(); ++id) {
    if (calls[id] > 0) ran[first_place(id)] = true;
    if (calls[id] > 0 || modules[id].parameters_read) used[first_place(id)] = true;
  }
  // Parents stand before children, so one walk from the end carries everything up.
  for (std::size_t id = modules.size(); id-- > 0;) {
    if (modules[id].parent < 0) continue;
    const auto parent = index_of(modules[id].parent);
    if (ran[first_place(id)] || ran_inside[id]) ran_inside[parent] = true;
    if (used[first_place(id)] || used_inside[id]) used_inside[parent] = true;
  }
  // torch's own modules use the parameters of those inside without a call (nn.MultiheadAttention).
  const auto is_used_by_torch = [&](std::size_t id) {
    auto around = modules[id].parent;
    while (around >= 0 && !ran[first_place(index_of(around))]) around = modules[index_of(around)].parent;
    return around >= 0 && modules[index_of(around)].forward_of_torch;
  };
  Uncalled uncalled;
  for (std::size_t id = 0; id < modules.size(); ++id) {
    const Module& module = modules[id];
    const bool pseudo = id == kOutside || id == kOptimizer;
    if (pseudo || !module.has_forward || !module.calls_visible || ran[first_place(id)]) continue;
    const bool is_used = module.parameters_read && !module.parameters_tied && module.same_as < 0;
    if (is_used && !ran_inside[id] && module.compiled_region < 0 && !is_table(module) && !is_used_by_torch(id))
      uncalled.used.push_back(module.path);
    // The user's own code may well call the model's parts.
    if (ran_inside[id] && !module.forward_of_torch && id != kModel) uncalled.other_ways.push_back(module.path);
    if (!used[first_place(id)] && !used_inside[id] && !is_idle_by_nature(module)) uncalled.dead.push_back(module.path);
  }
  return uncalled;
}

bool is_saturated(const Figures& figures) {
  return std::max({figures.macs, figures.causal_macs, figures.flops, figures.int_ops, figures.bytes}) == kSaturated;
}

std::string percent_of_wall(const RooflineRow& total) {
  return percent(static_cast<double>(*total.time_ns) / static_cast<double>(*total.wall_ns));
}

}  // namespace

Coverage make_coverage(const Profile& data, const std::vector<RooflineRow>& rows, const RooflineRow& total) {
  Coverage coverage;
  coverage.unobserved = data.counts.unobserved;
  coverage.dropped_records = data.device->dropped_records;
  coverage.unattributed_kernels = data.device->unattributed_kernels;
  coverage.uncosted_ops = uncosted_ops(data, total);
  for (const auto& op : coverage.uncosted_ops) coverage.uncosted.emplace(op.op, op.calls);

  auto uncalled = uncalled_modules(data);
  coverage.uncalled_modules = std::move(uncalled.dead);
  coverage.notes = data.notes;
  if (!uncalled.other_ways.empty()) {
    add_note(coverage.notes, "forward-not-called",
             "forward not called (other methods were): " + listed(topmost_of(uncalled.other_ways), kNamed),
             uncalled.other_ways);
  }
  if (!uncalled.used.empty()) {
    add_note(coverage.notes, "weights-used-elsewhere",
             "no call of these modules was seen, but their parameters were used: that work is in the rows of others: " +
                 listed(uncalled.used, kNamed),
             uncalled.used);
  }
  // A merged profile may be partial because ranks are missing.
  const auto* merged = data.origin.merged();
  if (data.run.partial && (merged == nullptr || std::ranges::any_of(merged->ranks, &Rank::partial)))
    add_note(coverage.notes, "partial", "partial: an exception ended it; only what ran before is counted");
  if (is_saturated(total)) {
    add_note(coverage.notes, "count-saturated",
             "a count reached the largest 64-bit integer; it and its sums are lower limits");
  }
  if (threads_overlap(data, total)) {
    add_note(coverage.notes, "threads-overlap",
             "several threads ran, or waited for others, at once: rows add up the times of threads (to " +
                 percent_of_wall(total) +
                 " of the wall time); the total's rates, %roof and wasted time are those of the wall time");
  }
  note_lower_limits(data, total, coverage.notes);
  note_counters(data, coverage.notes);
  note_older_kernels(data, coverage.notes);
  note_missing_roofs(data, coverage.notes);
  note_off_device(data, coverage.notes);
  note_footprints(data, coverage.notes);
  note_ops_above_roof(data, coverage.notes);
  note_rows_above_roof(data, rows, coverage.notes);
  return coverage;
}

}  // namespace roofprof
