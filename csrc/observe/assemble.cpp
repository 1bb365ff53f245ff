#include "observe/assemble.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "observe/compiled_regions.h"
#include "observe/script_times.h"

namespace roofprof::observe {
namespace {

std::unordered_map<BucketKey, const Pass::Op*, BucketKeyHash> by_key(const Pass& pass) {
  std::unordered_map<BucketKey, const Pass::Op*, BucketKeyHash> index;
  for (const auto& op : pass.ops) index.emplace(op.key, &op);
  return index;
}

std::int64_t median_run(const std::vector<Pass>& timed) {
  if (timed.empty()) return -1;
  std::vector<std::size_t> order(timed.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return timed[a].wall_ns < timed[b].wall_ns; });
  return static_cast<std::int64_t>(order[(order.size() - 1) / 2]);
}

std::vector<ModuleTime> module_times(const Pass& counting, const std::vector<Pass>& timed) {
  std::map<std::pair<ModuleId, Phase>, ModuleTime> times;
  const auto entry = [&](const Pass::Clock& clock) -> ModuleTime& {
    auto& time = times[{clock.module, clock.phase}];
    time.module = clock.module;
    time.phase = clock.phase;
    time.self_ns.resize(timed.size());
    return time;
  };
  for (const auto& clock : counting.clocks) entry(clock).calls = clock.calls;
  for (std::size_t run = 0; run < timed.size(); ++run) {
    for (const auto& clock : timed[run].clocks) entry(clock).self_ns[run] = clock.self_ns;
  }
  std::vector<ModuleTime> result;
  for (auto& [place, time] : times) result.push_back(std::move(time));
  return result;
}

// Whether ops were counted in rows below that one.
std::vector<bool> modules_with_work_below(const Pass& pass, const std::vector<Module>& modules) {
  std::vector<bool> below(modules.size());
  for (const auto& op : pass.ops) {
    if (op.key.op->unobserved != Unobserved::no || (op.costed && op.work == Work{})) continue;
    auto parent = modules[static_cast<std::size_t>(op.key.module)].parent;
    for (; parent >= 0; parent = modules[static_cast<std::size_t>(parent)].parent) {
      below[static_cast<std::size_t>(parent)] = true;
    }
  }
  return below;
}

}  // namespace

bool same_work(const Pass& a, const Pass& b) {
  // What bypassed the dispatcher is looked for in the counting pass alone.
  const auto is_op = [](const Pass::Op& op) { return op.key.op->unobserved == Unobserved::no; };
  if (std::ranges::count_if(a.ops, is_op) != std::ranges::count_if(b.ops, is_op)) return false;
  const auto index = by_key(a);
  return std::ranges::all_of(b.ops, [&](const Pass::Op& op) {
    if (!is_op(op)) return true;
    const auto found = index.find(op.key);
    return found != index.end() && found->second->calls == op.calls;
  });
}

LaunchPlaces assemble(const Pass& counting, const std::vector<Pass>& timed, ProfileData& data) {
  data.runs.chosen = median_run(timed);
  for (const auto& pass : timed) data.runs.total_ns.push_back(pass.wall_ns);
  data.times = module_times(counting, timed);

  const Pass* chosen = timed.empty() ? nullptr : &timed[static_cast<std::size_t>(data.runs.chosen)];
  const auto timed_ops = chosen != nullptr ? by_key(*chosen) : decltype(by_key(counting)){};
  const auto with_work = modules_with_work_below(counting, data.modules);
  LaunchPlaces places;
  for (const auto& op : counting.ops) {
    const auto unobserved = op.key.op->unobserved;
    // Other threads may have done what the module waited for.
    if (unobserved == Unobserved::module && with_work[static_cast<std::size_t>(op.key.module)]) continue;
    if (unobserved != Unobserved::no) {
      data.unobserved[op.key.op->name] += op.calls;
    }
    OpBucket bucket{op.key.op->name, op.key.module, op.key.phase, op.dtype, op.shapes,
                    op.costed,       op.calls,      op.work,      {}};
    if (const auto found = timed_ops.find(op.key); found != timed_ops.end()) bucket.time_ns = found->second->time_ns;
    places.add(op, data.ops.size());
    data.ops.push_back(std::move(bucket));
  }
  if (!compiled_regions_in(counting).empty()) {
    list_uncounted_regions(counting, data);
  } else if (chosen != nullptr) {
    if (compiled_regions_in(*chosen).empty()) time_other_ops(counting, *chosen, data, places);
    time_by_region(*chosen, data);
  }

  note_differentiated(counting, data);
  for (const auto& [op, reason] : counting.failures) {
    const bool names_itself = reason.starts_with(op + ": ");
    data.notes.push_back("no cost for " + (names_itself ? "" : op + ": ") + reason);
  }
  if (counting.ops_elsewhere) {
    data.notes.emplace_back(
        "ops ran on other threads, outside of the model's modules: they are not counted, whosever they are");
  }
  if (counting.unknown_backward_nodes > 0) {
    data.notes.push_back(std::to_string(counting.unknown_backward_nodes) +
                         " backward nodes have no known forward (it ran before the profile began, or more than " +
                         std::to_string(SequenceRing::kSize) +
                         " nodes earlier on its thread): their work stands in (outside)");
  }
  return places;
}

}  // namespace roofprof::observe
