#include "join/compiled_regions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
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

// Returns one op for each row: everything that its compiled code did.
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

void note_times(HostProfile& host, const std::set<ModuleId>& regions, const std::string& what,
                const std::string& counted, bool by_kernel) {
  if (regions.empty()) return;
  const auto paths = paths_of(regions, host.modules);
  add_note(host.notes, "compiled",
           what + " (" + first_paths(paths) + "): counts from " + counted + ", time from the compiled run" +
               (by_kernel ? "" : ", on the row of each compiled region alone") +
               "; fused code moves fewer bytes than counted, so %roof may pass 100%",
           paths);
}

// Returns the row of each module of a package's counts: those below the package's own have the same paths there.
std::vector<ModuleId> rows_of_package(const Profile& counts, ModuleId place, const std::vector<Module>& modules) {
  auto top = modules[index_of(place)].path;
  if (!top.empty()) top += '.';
  std::map<std::string, ModuleId> by_path;
  for (std::size_t id = 0; id < modules.size(); ++id) by_path.emplace(modules[id].path, static_cast<ModuleId>(id));
  std::vector<ModuleId> rows(counts.tree.modules.size(), place);
  for (std::size_t id = index_of(kOptimizer) + 1; id < rows.size(); ++id) {
    const auto& path = counts.tree.modules[id].path;
    const auto found = by_path.find(std::string(top).append(path));
    rows[id] = found != by_path.end() ? found->second : rows[index_of(counts.tree.modules[id].parent)];
  }
  return rows;
}

// Adds the work of that many calls to `pass`.
void add_counts(Pass& pass, const Profile& package, const std::vector<ModuleId>& rows, RegionId region,
                std::int64_t calls) {
  for (const auto& bucket : package.counts.ops) {
    Pass::Op op;
    static_cast<OpBucket&>(op) = bucket;
    op.owner = {rows[index_of(bucket.owner.module)], bucket.owner.phase, region};
    op.calls = saturating_multiply(bucket.calls, calls);
    op.work = bucket.work.times(calls);
    op.link_bytes = saturating_multiply(bucket.link_bytes, calls);
    for (auto& part : op.reuse) {
      for (auto* bytes : {&part.read_bytes, &part.write_bytes, &part.updated_bytes}) {
        *bytes = saturating_multiply(*bytes, calls);
      }
    }
    op.time_ns.reset();
    pass.ops.push_back(std::move(op));
  }
  for (const auto& time : package.times->modules) {
    if (time.owner.module <= kOptimizer) continue;  // the package's own calls were observed
    const Owner owner{rows[index_of(time.owner.module)], time.owner.phase, region};
    auto clock = std::ranges::find(pass.clocks, owner, &Pass::Clock::owner);
    if (clock == pass.clocks.end()) clock = pass.clocks.insert(clock, {owner, 0, 0});
    clock->calls = saturating_add(clock->calls, saturating_multiply(time.calls, calls));
  }
}

// Replaces what the package's calls dispatched by its counts.
void put_counts(Pass& pass, ModuleId place, const std::vector<const PackageCalls*>& packages,
                const std::vector<ModuleId>& rows) {
  std::erase_if(pass.ops, [&](const Pass::Op& op) { return op.owner.module == place; });
  std::map<RegionId, std::int64_t> calls;
  for (const auto& clock : pass.clocks) {
    if (clock.owner.module == place) calls[clock.owner.region] += clock.calls;
  }
  // The first region gets all calls of several kinds, because it is not known which region had which.
  if (packages.size() == 1) {
    for (const auto& [region, count] : calls) add_counts(pass, *packages.front()->counts, rows, region, count);
  } else if (!calls.empty()) {
    for (const auto* package : packages) {
      add_counts(pass, *package->counts, rows, calls.begin()->first, package->calls);
    }
  }
}

// Returns an op without a cost: it makes the row of a module that may have run inside a lower limit.
Pass::Op unknown_work(std::string_view op, ModuleId module, RegionId region) {
  Pass::Op unknown;
  unknown.op = op;
  unknown.owner = {module, Phase::forward, region};
  unknown.costed = false;
  return unknown;
}

}  // namespace

void count_packages(RunRecord& observed) {
  std::map<ModuleId, std::vector<const PackageCalls*>> by_place;
  for (auto& package : observed.packages) {
    if (package.counts == nullptr) continue;
    if (ran_compiled_code(observed.counting)) {
      package.counts.reset();
      package.why_not = "torch.compile's code ran in the same block; profile a call with run() instead";
    } else {
      by_place[package.place].push_back(&package);
    }
  }
  for (const auto& [place, packages] : by_place) {
    const auto rows = rows_of_package(*packages.front()->counts, place, observed.tree.modules);
    put_counts(observed.counting, place, packages, rows);
    if (observed.first_call) put_counts(*observed.first_call, place, packages, rows);
  }
  for (auto& pass : observed.timed) {
    for (auto& op : pass.ops) {
      if (op.op == kCompiledPackage && by_place.contains(op.owner.module)) op.kind = Pass::Op::Kind::compiled_region;
    }
  }
}

std::map<Owner, std::int64_t> times_of_regions(const Pass& pass) {
  const auto calls = region_calls(pass);
  std::map<Owner, std::int64_t> times;
  for (const auto& op : region_ops(pass, calls, modules_of(calls))) times[op.owner] = op.time_ns.value_or(0);
  return times;
}

HostProfile with_times_of_regions(HostProfile host, const Pass& timed, const std::vector<PackageCalls>& packages,
                                  bool by_kernel) {
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
  auto regions = holders;
  std::set<ModuleId> counted;
  for (const auto& package : packages) {
    if (package.counts != nullptr && regions.erase(package.place) > 0) counted.insert(package.place);
  }
  note_times(host, regions, "compiled", "the eager model", by_kernel);
  note_times(host, counted, "AOTInductor package", "the program that it was exported from", false);
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
    for (const auto region : in) host.ops.push_back(unknown_work(kCompiledRegion, module, region));
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

HostProfile with_uncounted_packages(HostProfile host, const Pass& counting, const std::vector<PackageCalls>& packages) {
  std::map<ModuleId, std::string> reasons;
  for (const auto& package : packages) reasons[package.place] = package.why_not;
  std::map<std::string, std::set<ModuleId>> callers;  // by why the work is not known
  for (const auto& op : counting.ops) {
    if (op.op != kCompiledPackage) continue;
    const auto known = reasons.find(op.owner.module);
    std::string why = "it is not known which package this is; profile it with run(), or as an attribute of a module";
    if (known != reasons.end()) why = known->second;
    if (why.empty()) {
      why =
          "the package has no counts; export it with roofprof.package_metadata, or load it with its exported program "
          "(roofprof.load_package)";
    }
    callers[why].insert(op.owner.module);
  }
  for (const auto& [why, places] : callers) {
    const auto paths = paths_of(places, host.modules);
    add_note(host.notes, "compiled-not-counted",
             "AOTInductor package in " + first_paths(paths) +
                 ": work inside not counted but for what it dispatches, because " + why,
             paths);
    for (std::size_t id = 0; id < host.modules.size(); ++id) {
      const auto holder = holder_above(static_cast<ModuleId>(id), places, host.modules);
      if (!reasons.contains(holder)) continue;  // a module that calls a package that has no row
      host.modules[id].compiled_region = holder;
      host.modules[id].calls_visible = false;
      host.ops.push_back(unknown_work(kCompiledPackage, static_cast<ModuleId>(id), kNoRegion));
    }
  }
  return host;
}

}  // namespace roofprof
