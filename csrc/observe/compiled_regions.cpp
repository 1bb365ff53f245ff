#include "observe/compiled_regions.h"

#include <algorithm>
#include <set>
#include <string>

namespace roofprof::observe {
namespace {

using ModulePhase = std::pair<ModuleId, Phase>;

std::set<ModuleId> modules_of(const CompiledRegions& regions) {
  std::set<ModuleId> modules;
  for (const auto& [place, region] : regions) modules.insert(place.first);
  return modules;
}

// The nearest module above that ran compiled code; -1 where there is none.
ModuleId holder_above(ModuleId module, const std::set<ModuleId>& holders, const ProfileData& data) {
  auto above = data.modules[index_of(module)].parent;
  while (above >= 0 && !holders.contains(above)) above = data.modules[index_of(above)].parent;
  return above;
}

// The same for a module that did not run by itself: compiled code that is not above it may have called it as well.
ModuleId holder_of(ModuleId module, const std::set<ModuleId>& holders, const ProfileData& data) {
  if (module <= kOptimizer || holders.contains(module)) return -1;
  const auto above = holder_above(module, holders, data);
  return above >= 0 ? above : *holders.begin();
}

std::map<ModulePhase, const Pass::Clock*> clocks_of(const Pass& pass) {
  std::map<ModulePhase, const Pass::Clock*> clocks;
  for (const auto& clock : pass.clocks) clocks[{clock.module, clock.phase}] = &clock;
  return clocks;
}

std::string names_of(const std::set<ModuleId>& modules, const ProfileData& data) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  std::size_t named = 0;
  for (const auto module : modules) {
    if (named == kNamed) return text + ", ...";
    const auto& path = data.modules[index_of(module)].path;
    text += (named++ > 0 ? ", " : "") + (path.empty() ? "the model" : path);
  }
  return text;
}

// Sets Module::compiled_region where a module did not run, or not as often, or without its backward, in the compiled
// run.
void find_modules_inside(const Pass& timed, const std::set<ModuleId>& holders, ProfileData& data) {
  const auto clocks = clocks_of(timed);
  for (const auto& time : data.times) {
    const auto clock = clocks.find({time.module, time.phase});
    if (clock != clocks.end() && clock->second->calls == time.calls) continue;
    data.modules[index_of(time.module)].compiled_region = holder_of(time.module, holders, data);
  }
  // Containers have no time of their own: with a child inside, neither has their subtree.
  for (std::size_t id = data.modules.size(); id-- > 0;) {
    const auto& module = data.modules[id];
    if (module.compiled_region < 0 || module.parent < 0 || module.parent == module.compiled_region) continue;
    auto& parent = data.modules[index_of(module.parent)];
    if (!parent.has_forward) parent.compiled_region = module.compiled_region;
  }
}

// What little of its time was seen goes to the region's row, so that the rows still add up.
void move_times(ProfileData& data) {
  std::map<ModulePhase, ModuleTime*> times;
  for (auto& time : data.times) times[{time.module, time.phase}] = &time;
  for (auto& time : data.times) {
    const auto holder = data.modules[index_of(time.module)].compiled_region;
    if (holder < 0) continue;
    // Its row was timed forward at least, where the region was called.
    auto target = times.find({holder, time.phase});
    if (target == times.end()) target = times.find({holder, Phase::forward});
    for (std::size_t run = 0; target != times.end() && run < time.self_ns.size(); ++run) {
      target->second->self_ns[run] = saturating_add(target->second->self_ns[run], time.self_ns[run]);
    }
    time.self_ns.clear();
  }
}

}  // namespace

CompiledRegions compiled_regions_in(const Pass& pass) {
  CompiledRegions regions;
  for (const auto& op : pass.ops) {
    if (op.key.op->kind != OpKind::compiled) continue;
    auto& region = regions[{op.key.module, op.key.phase}];
    region.calls += op.calls;
    region.time_ns += op.time_ns;
  }
  return regions;
}

void time_by_region(const Pass& timed, ProfileData& data) {
  auto regions = compiled_regions_in(timed);
  if (regions.empty()) return;
  const auto holders = modules_of(regions);
  find_modules_inside(timed, holders, data);
  move_times(data);

  // Ops of compiled code cannot be told from others of the module that runs it: their times stand together.
  for (auto& bucket : data.ops) {
    if (holders.contains(bucket.module) || data.modules[index_of(bucket.module)].compiled_region >= 0)
      bucket.time_ns.reset();
  }
  std::map<ModulePhase, std::int64_t> op_times;
  for (const auto& op : timed.ops) {
    if (holders.contains(op.key.module)) op_times[{op.key.module, op.key.phase}] += op.time_ns;
  }
  const auto clocks = clocks_of(timed);
  for (const auto& [place, op_time_ns] : op_times) {
    const auto clock = clocks.find(place);
    OpBucket bucket;
    bucket.op = kCompiledRegion;
    bucket.module = place.first;
    bucket.phase = place.second;
    bucket.calls = regions[place].calls;
    // Modules that ran in between, beside the compiled code, have rows of their own.
    bucket.time_ns = clock == clocks.end() ? op_time_ns : std::min(op_time_ns, clock->second->self_ns);
    data.ops.push_back(std::move(bucket));
  }
  data.notes.push_back("compiled (" + names_of(holders, data) +
                       "): counts from the eager twin, time from the compiled run, on the row of each compiled region "
                       "alone; fused code moves fewer bytes than counted, so %roof may pass 100%");
}

void list_uncounted_regions(const Pass& pass, ProfileData& data) {
  const auto regions = compiled_regions_in(pass);
  const auto holders = modules_of(regions);
  const auto clocks = clocks_of(pass);
  for (std::size_t id = 0; id < data.modules.size(); ++id) {
    const auto module = static_cast<ModuleId>(id);
    if (module == kOutside || module == kOptimizer) continue;
    auto holder = holder_above(module, holders, data);
    if (holder < 0 && holders.contains(kOutside)) holder = kOutside;  // a compiled function may call any module
    if (holder < 0 || clocks.contains({module, Phase::forward}) || clocks.contains({module, Phase::recompute}))
      continue;
    data.modules[id].compiled_region = holder;
    data.modules[id].calls_visible = false;
    OpBucket unknown;  // so that its row is a lower limit
    unknown.op = kCompiledRegion;
    unknown.module = module;
    unknown.costed = false;
    data.ops.push_back(std::move(unknown));
  }
  move_times(data);
  for (const auto holder : holders) {
    std::int64_t calls = 0;
    for (const auto& [place, region] : regions) calls += place.first == holder ? region.calls : 0;
    data.notes.push_back("compiled region of " + names_of({holder}, data) + ": " + std::to_string(calls) +
                         (calls == 1 ? " call" : " calls") + ", work inside not counted but for what it dispatches" +
                         (data.scope == "block" ? "; run() counts it from the eager twin" : ""));
  }
}

}  // namespace roofprof::observe
