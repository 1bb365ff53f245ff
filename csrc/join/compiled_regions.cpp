#include "join/compiled_regions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/note_codes.h"
#include "join/attribution.h"

namespace roofprof {
namespace {

using ModulePhase = std::pair<ModuleId, Phase>;

// The calls of compiled code, by what ran it.
std::map<Owner, std::int64_t> region_calls(const Pass& pass) {
  std::map<Owner, std::int64_t> calls;
  for (const auto& op : pass.ops) {
    if (op.kind == Pass::Op::Kind::compiled_region) {
      calls[op.owner] += op.calls;
    }
  }
  return calls;
}

std::set<ModuleId> modules_of(const std::map<Owner, std::int64_t>& regions) {
  std::set<ModuleId> modules;
  for (const auto& [key, calls] : regions) modules.insert(key.module);
  return modules;
}

// The nearest module above that ran compiled code; -1 where there is none.
ModuleId holder_above(ModuleId module, const std::set<ModuleId>& holders, const std::vector<Module>& modules) {
  auto above = modules[index_of(module)].parent;
  while (above >= 0 && !holders.contains(above)) above = modules[index_of(above)].parent;
  return above;
}

// The same for a module that did not run by itself: compiled code that is not above it may have called it as well.
ModuleId holder_of(ModuleId module, const std::set<ModuleId>& holders, const std::vector<Module>& modules) {
  if (module == kOutside || holders.contains(module)) return -1;
  // The user's own code, compiled: a training step, with the optimizer's in it or without.
  if (module == kModel || module == kOptimizer) return holders.contains(kOutside) ? kOutside : -1;
  const auto above = holder_above(module, holders, modules);
  return above >= 0 ? above : *holders.begin();
}

std::map<Owner, const Pass::Clock*> clocks_of(const Pass& pass) {
  std::map<Owner, const Pass::Clock*> clocks;
  for (const auto& clock : pass.clocks) clocks[clock.owner] = &clock;
  return clocks;
}

// Returns the calls in all regions together. A module that was not called has 0 where it ran, and no entry where it did
// not.
template <class Clocks>
std::map<ModulePhase, std::int64_t> calls_of(const Clocks& clocks) {
  std::map<ModulePhase, std::int64_t> calls;
  for (const auto& clock : clocks) calls[{clock.owner.module, clock.owner.phase}] += clock.calls;
  return calls;
}

// Sets Module::compiled_region where a module did not run, or not as often, or without its backward, in the compiled
// run.
std::vector<Module> modules_with_holders(std::vector<Module> modules, const std::vector<ModuleTime>& times,
                                         const Pass& timed, const std::set<ModuleId>& holders) {
  const auto calls_timed = calls_of(timed.clocks);
  for (const auto& [key, calls] : calls_of(times)) {
    const auto ran = calls_timed.find(key);
    if (ran != calls_timed.end() && ran->second == calls) continue;
    modules[index_of(key.first)].compiled_region = holder_of(key.first, holders, modules);
  }
  // Containers have no time of their own: with a child inside, neither has their subtree.
  for (std::size_t id = modules.size(); id-- > 0;) {
    const auto& module = modules[id];
    if (module.compiled_region < 0 || module.parent < 0 || module.parent == module.compiled_region) continue;
    auto& parent = modules[index_of(module.parent)];
    if (!parent.has_forward) parent.compiled_region = module.compiled_region;
  }
  return modules;
}

// Moves what was seen of the time of modules inside to the region's row, so that the rows still add up.
std::vector<ModuleTime> times_by_holder(std::vector<ModuleTime> times, const std::vector<Module>& modules) {
  std::map<Owner, ModuleTime*> by_row;
  for (auto& time : times) by_row[time.owner] = &time;
  for (auto& time : times) {
    const auto holder = modules[index_of(time.owner.module)].compiled_region;
    if (holder < 0) continue;
    // Its row was timed forward at least, where the region was called.
    auto target = by_row.find({holder, time.owner.phase, time.owner.region});
    if (target == by_row.end()) target = by_row.find({holder, Phase::forward, time.owner.region});
    if (target == by_row.end()) target = by_row.find({holder, Phase::forward, kNoRegion});
    for (std::size_t run = 0; target != by_row.end() && run < time.self_ns.size(); ++run) {
      target->second->self_ns[run] = saturating_add(target->second->self_ns[run], time.self_ns[run]);
    }
    time.self_ns.clear();
  }
  return times;
}

// One op for all that the compiled code of each row did.
std::vector<Pass::Op> region_ops(const Pass& timed, const std::map<Owner, std::int64_t>& calls,
                                 const std::set<ModuleId>& holders) {
  std::map<Owner, std::int64_t> op_times;
  for (const auto& op : timed.ops) {
    if (holders.contains(op.owner.module)) op_times[op.owner] += op.time_ns.value_or(0);
  }
  const auto clocks = clocks_of(timed);
  std::vector<Pass::Op> ops;
  for (const auto& [key, op_time_ns] : op_times) {
    const auto clock = clocks.find(key);
    const auto called = calls.find(key);
    Pass::Op bucket;
    bucket.op = kCompiledRegion;
    bucket.owner = key;
    bucket.calls = called == calls.end() ? 0 : called->second;
    // Modules that ran in between, outside the compiled code, have their time in their rows.
    bucket.time_ns = clock == clocks.end() ? op_time_ns : std::min(op_time_ns, clock->second->self_ns);
    ops.push_back(std::move(bucket));
  }
  return ops;
}

// So that the row of a module that may have run inside is a lower limit.
Pass::Op unknown_work(ModuleId module, RegionId region) {
  Pass::Op unknown;
  unknown.op = kCompiledRegion;
  unknown.owner = {module, Phase::forward, region};
  unknown.costed = false;
  return unknown;
}

}  // namespace

std::map<Owner, std::int64_t> times_of_regions(const Pass& pass) {
  const auto calls = region_calls(pass);
  std::map<Owner, std::int64_t> times;
  for (const auto& op : region_ops(pass, calls, modules_of(calls))) times[op.owner] = op.time_ns.value_or(0);
  return times;
}

HostProfile with_times_of_regions(HostProfile host, const Pass& timed, bool by_kernel) {
  const auto calls = region_calls(timed);
  const auto holders = modules_of(calls);
  host.modules = modules_with_holders(std::move(host.modules), host.times, timed, holders);
  host.times = times_by_holder(std::move(host.times), host.modules);
  // The ops of compiled code look like others of the module that runs it, so the region's op has the time of all of
  // them.
  for (auto& bucket : host.ops) {
    const bool inside = host.modules[index_of(bucket.owner.module)].compiled_region >= 0;
    if (inside || holders.contains(bucket.owner.module)) bucket.time_ns.reset();
  }
  std::ranges::move(region_ops(timed, calls, holders), std::back_inserter(host.ops));
  add_note(host.notes, "compiled",
           "compiled (" + first_paths(paths_of(holders, host.modules)) +
               "): counts from the eager model, time from the compiled run" +
               (by_kernel ? "" : ", on the row of each compiled region alone") +
               "; fused code moves fewer bytes than counted, so %roof may pass 100%",
           paths_of(holders, host.modules));
  return host;
}

HostProfile with_uncounted_regions(HostProfile host, const Pass& counting, bool in_block) {
  const auto regions = region_calls(counting);
  const auto holders = modules_of(regions);
  const auto called = calls_of(counting.clocks);
  for (std::size_t id = 0; id < host.modules.size(); ++id) {
    const auto module = static_cast<ModuleId>(id);
    if (module == kOutside || module == kOptimizer) continue;
    auto holder = holder_above(module, holders, host.modules);
    if (holder < 0 && holders.contains(kOutside)) holder = kOutside;  // a compiled function may call any module
    const bool ran = called.contains({module, Phase::forward}) || called.contains({module, Phase::recompute});
    if (holder < 0 || ran) continue;
    host.modules[id].compiled_region = holder;
    host.modules[id].calls_visible = false;
    std::set<RegionId> in;  // the regions in which it may have run
    for (const auto& [key, calls] : regions) {
      if (key.module == holder) in.insert(key.region);
    }
    for (const auto region : in) host.ops.push_back(unknown_work(module, region));
  }
  host.times = times_by_holder(std::move(host.times), host.modules);
  std::map<ModuleId, std::int64_t> calls_by_holder;
  for (const auto& [key, calls] : regions) calls_by_holder[key.module] += calls;
  std::map<std::int64_t, std::set<ModuleId>> by_calls;
  for (const auto& [holder, calls] : calls_by_holder) by_calls[calls].insert(holder);
  for (const auto& [calls, alike] : by_calls) {
    add_note(host.notes, "compiled-not-counted",
             "compiled region of " + first_paths(paths_of(alike, host.modules)) + ": " + std::to_string(calls) +
                 (calls == 1 ? " call" : " calls") + (alike.size() > 1 ? " each" : "") +
                 ", work inside not counted but for what it dispatches" +
                 (in_block ? "; run() counts it from the eager model" : ""),
             paths_of(alike, host.modules));
  }
  return host;
}

std::optional<Note> note_on_packages(const Pass& counting, const std::vector<Module>& modules) {
  std::set<ModuleId> callers;
  for (const auto& op : counting.ops) {
    if (op.op == kCompiledPackage) callers.insert(op.owner.module);
  }
  if (callers.empty()) return std::nullopt;
  const auto paths = paths_of(callers, modules);
  return make_note("compiled-not-counted",
                   "AOTInductor package in " + first_paths(paths) +
                       ": work inside not counted but for what it dispatches; count the model that it was exported "
                       "from",
                   paths);
}

}  // namespace roofprof
