#include "kineto/places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/phrases.h"
#include "kineto/json_text.h"
#include "kineto/serving_steps.h"

namespace roofprof::kineto {
namespace {

constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
constexpr std::string_view kStep = "ProfilerStep#";
constexpr std::string_view kCompiledGraph = "## Call CompiledFxGraph ";
// The greatest depth of rows, because paths repeat those of their parents. Calls of deeper modules count as their
// parent's.
constexpr int kDeepestModule = 200;
// The number of threads with open regions that are searched for the region of a backward node.
constexpr std::size_t kThreadsLookedAt = 64;

// Returns the class of an instance: TimesformerLayer for "TimesformerLayer_3".
std::string class_of(const std::string& instance) {
  const auto number = instance.rfind('_');
  return number == std::string::npos || number == 0 ? instance : instance.substr(0, number);
}

// Makes rows of the trace's instances.
class ModuleTree {
 public:
  ModuleTree(const Trace& trace, const HostTree& tree, const CalledModel* called) {
    std::vector<std::int32_t> inside(trace.host.size(), kNone);  // by event: the instance that runs there
    std::vector<std::int32_t> parents;                           // by instance
    std::vector<int> depths;
    std::vector<std::int32_t> calls_around(trace.host.size(), kNone);  // by event: index into forward.calls
    std::vector<bool> backward(trace.host.size(), false);              // by event: it is inside a node
    CalledInstances forward;
    for (std::size_t i = 0; i < trace.host.size(); ++i) {
      const auto& event = trace.host[i];
      const auto around = tree.parents[i] == kNone ? kNone : inside[at(tree.parents[i])];
      inside[i] = around;
      if (tree.parents[i] != kNone) {
        calls_around[i] = calls_around[at(tree.parents[i])];
        backward[i] = backward[at(tree.parents[i])];
      }
      if (event.kind == HostKind::op && trace.names[event.name].starts_with(kNode)) backward[i] = true;
      if (called != nullptr && event.kind == HostKind::op && !backward[i] && calls_around[i] != kNone) {
        forward.calls[at(calls_around[i])].ops.push_back(event.call);
      }
      if (event.kind != HostKind::module) continue;
      const auto depth = around == kNone ? 0 : depths[at(around)] + 1;
      if (depth > kDeepestModule) continue;
      const auto [known, fresh] = instances_.try_emplace(event.name, static_cast<std::int32_t>(parents.size()));
      if (fresh) {
        parents.push_back(around);
        depths.push_back(depth);
        names_.push_back(event.name);
      }
      inside[i] = known->second;
      if (backward[i]) continue;
      forward.calls.push_back({known->second, calls_around[i], {}});
      calls_around[i] = static_cast<std::int32_t>(forward.calls.size() - 1);
    }
    Alignment alignment;
    if (called != nullptr && !names_.empty()) {
      for (const auto name : names_) {
        forward.names.push_back(trace.names[name]);
        forward.types.push_back(class_of(trace.names[name]));
      }
      auto found = aligned(forward, trace.calls, *called);
      if (auto* const known = std::get_if<Alignment>(&found)) {
        alignment = std::move(*known);
      } else {
        unaligned = std::get<std::string>(found);
      }
    }
    if (alignment.empty()) {
      make_roots(trace, parents);
    } else {
      modules = called->modules;
      model = modules[kModel].type;
    }
    make_rows(trace, parents, alignment);
  }

  // Returns the call's row; empty if it has none.
  std::optional<ModuleId> row_of(std::uint32_t name) const {
    const auto known = instances_.find(name);
    if (known == instances_.end()) return std::nullopt;
    return rows_[at(known->second)];
  }
  std::vector<Module> modules;
  std::string model;
  std::string unaligned;

 private:
  void make_roots(const Trace& trace, const std::vector<std::int32_t>& parents) {
    const auto roots = std::ranges::count(parents, kNone);
    const auto name_of = [&](std::size_t instance) { return trace.names[names_[instance]]; };
    only_root_ = roots == 1;
    Module row;
    if (roots == 1) {
      model = class_of(name_of(static_cast<std::size_t>(std::ranges::find(parents, kNone) - parents.begin())));
      row.type = model;
    } else if (roots > 1) {
      model = counted(roots, "module");
    }
    row.has_forward = roots == 1;
    row.params_known = false;
    modules.assign(kOptimizer + 1, {});
    modules[kModel] = row;
    modules[kOutside].path = "(outside)";
    modules[kOutside].has_forward = false;
    modules[kOptimizer].path = "(optimizer)";
    modules[kOptimizer].has_forward = false;
    modules[kOutside].params_known = modules[kOptimizer].params_known = false;
  }

  void make_rows(const Trace& trace, const std::vector<std::int32_t>& parents, const Alignment& alignment) {
    const auto name_of = [&](std::size_t instance) { return trace.names[names_[instance]]; };
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (const auto known = alignment.find(static_cast<std::int32_t>(i)); known != alignment.end()) {
        rows_.push_back(known->second);
        continue;
      }
      if (parents[i] == kNone && only_root_) {
        rows_.push_back(kModel);
        continue;
      }
      // If the model was given, the trace's other modules (its wrapper, a loss) are outside of it.
      const auto root = alignment.empty() ? kModel : kOutside;
      const auto parent = parents[i] == kNone ? root : rows_[at(parents[i])];
      const auto& above = modules[index_of(parent)].path;
      Module module;
      module.params_known = false;
      module.path = above.empty() ? name_of(i) : above + "." + name_of(i);
      module.type = class_of(name_of(i));
      module.parent = parent;
      rows_.push_back(static_cast<ModuleId>(modules.size()));
      modules.push_back(std::move(module));
    }
  }

  std::unordered_map<std::uint32_t, std::int32_t> instances_;  // by name
  std::vector<std::uint32_t> names_;                           // by instance
  std::vector<ModuleId> rows_;
  bool only_root_ = false;  // all instances are in one
};

// The state of a thread during the walk through its events in order.
struct Thread {
  std::vector<std::int32_t> regions;  // ranges that opened one, the innermost last; some may have ended
  ModuleId last_node = kOutside;      // of the backward node that ran last
  std::int64_t covered_ns = 0;        // of the events that nothing is around
  std::int64_t scopes_ns = 0;         // of the scopes that no scope is around
  std::int64_t bare_ns = 0;           // of the events that nothing is around, without scopes
  bool is_autograds = false;          // nodes ran outside of all, and nothing that only a program runs
  bool any = false;
};

class Walk {
 public:
  Walk(const Trace& trace, const HostTree& tree, const CalledModel* model)
      : trace_(trace),
        tree_(tree),
        modules_(trace, tree, model),
        regions_(static_cast<ModuleId>(modules_.modules.size())),
        scopes_(trace.host.size(), kNone) {
    places_.of_event.resize(trace.host.size());
    find_autograds_threads();
  }

  Places run(std::int64_t begin_ns, std::int64_t end_ns) && {
    for (std::size_t i = 0; i < trace_.host.size(); ++i) visit(i);
    give_rest_of_threads(end_ns - begin_ns);
    for (auto& [place, clock] : clocks_) places_.clocks.push_back(clock);
    for (auto& [region, clock] : region_clocks_) places_.region_clocks.push_back(clock);
    places_.modules = std::move(modules_.modules);
    places_.model = std::move(modules_.model);
    places_.unaligned = std::move(modules_.unaligned);
    places_.regions = regions_.all();
    places_.region_paths = regions_.all_paths();
    places_.more_regions = regions_.refused();
    return std::move(places_);
  }

 private:
  Pass::Clock& clock(const Owner& place) {
    auto& clock = clocks_[place];
    clock.owner = place;
    return clock;
  }

  Thread& thread_of(const HostEvent& event) {
    if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
    return threads_[event.thread];
  }

  // Gives threads the rest of their time. The thread that did most is the program's main thread, and the whole window
  // is its time. When other threads worked, except autograd's, only their events show.
  void give_rest_of_threads(std::int64_t window_ns) {
    const Thread* main = nullptr;
    for (const auto& thread : threads_) {
      if (!thread.any || thread.is_autograds) continue;
      if (main == nullptr || thread.covered_ns > main->covered_ns) main = &thread;
    }
    for (const auto& thread : threads_) {
      if (!thread.any || thread.is_autograds) continue;
      clock({kOutside}).self_ns += &thread == main ? window_ns - thread.scopes_ns : thread.bare_ns;
    }
  }

  // Forgets the thread's regions that ended before that time.
  void close_regions(Thread& thread, std::int64_t before_ns) const {
    while (!thread.regions.empty() && trace_.host[at(thread.regions.back())].end_ns < before_ns) {
      thread.regions.pop_back();
    }
  }

  // Returns the region that is open at that time on the thread that started autograd's work.
  RegionId region_elsewhere(const HostEvent& event) {
    std::size_t transparent = 0;
    for (auto other = threads_with_regions_.begin(); other != threads_with_regions_.end();) {
      auto& thread = threads_[*other];
      close_regions(thread, event.begin_ns);
      if (thread.regions.empty()) {
        other = threads_with_regions_.erase(other);
        continue;
      }
      for (auto open = thread.regions.rbegin(); open != thread.regions.rend(); ++open) {
        if (trace_.host[at(*open)].end_ns >= event.end_ns) return places_.of_event[at(*open)].region;
      }
      if (++transparent == kThreadsLookedAt) break;
      ++other;
    }
    return kNoRegion;
  }

  bool is_node(const HostEvent& event, const Owner& around) const {
    if (event.kind != HostKind::op) return false;
    if (trace_.names[event.name].starts_with(kNode)) return true;
    return event.of_backward && event.sequence >= 0 && around.phase != Phase::backward &&
           around.phase != Phase::recompute;
  }

  // Autograd's threads run nodes, and what hooks of these queue behind them, such as DDP's copies of gradients: ops
  // that make no nodes themselves. Programs also run modules, ranges and ops that do.
  void find_autograds_threads() {
    std::set<std::uint32_t> of_programs;
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      const auto& event = trace_.host[i];
      if (tree_.parents[i] != kNone) continue;
      if (is_node(event, {kOutside})) {
        thread_of(event).is_autograds = true;
      } else if (event.kind != HostKind::launch && (event.kind != HostKind::op || event.sequence >= 0)) {
        of_programs.insert(event.thread);
      }
    }
    for (const auto thread : of_programs) {
      if (thread < threads_.size()) threads_[thread].is_autograds = false;
    }
  }

  void visit(std::size_t i) {
    const auto& event = trace_.host[i];
    const auto parent = tree_.parents[i];
    auto& thread = thread_of(event);
    Owner place = {kOutside};
    if (parent != kNone) {
      place = places_.of_event[at(parent)];
      scopes_[i] = scopes_[at(parent)];
    }
    const bool node = is_node(event, place);
    thread.any = true;
    bool opens = false;
    if (node) {
      open_node(event, thread, place, parent == kNone);
      opens = true;
    } else if (event.kind == HostKind::module) {
      opens = open_module(event, place);
    } else if (event.kind == HostKind::recompute) {
      opens = place.phase == Phase::backward;
      if (opens) place.phase = Phase::recompute;
    } else if (event.kind == HostKind::range) {
      const auto around = place.region;
      opens = open_range(i, place);
      if (place.region != around && !thread.is_autograds) {
        close_regions(thread, event.begin_ns);
        thread.regions.push_back(static_cast<std::int32_t>(i));
        threads_with_regions_.insert(event.thread);
      }
    } else if (event.kind == HostKind::op && event.sequence >= 0 && !event.of_backward) {
      forward_[event.sequence] = place;
    }
    places_.of_event[i] = place;
    if (parent == kNone) thread.covered_ns += event.end_ns - event.begin_ns;
    if (parent == kNone && !opens) thread.bare_ns += event.end_ns - event.begin_ns;
    if (opens) keep_time(i, event, thread, place);
  }

  void keep_time(std::size_t i, const HostEvent& event, Thread& thread, const Owner& place) {
    const auto length = event.end_ns - event.begin_ns;
    clock(place).self_ns += length;
    if (scopes_[i] == kNone) {
      thread.scopes_ns += length;
      if (tree_.parents[i] != kNone) thread.bare_ns -= length;
    } else {
      clock(places_.of_event[at(scopes_[i])]).self_ns -= length;
    }
    scopes_[i] = static_cast<std::int32_t>(i);
  }

  void open_node(const HostEvent& event, Thread& thread, Owner& place, bool outermost) {
    const auto region = outermost && thread.is_autograds ? region_elsewhere(event) : place.region;
    if (event.sequence < 0) {  // AccumulateGrad runs right after the node that made the gradient
      place = {thread.last_node, Phase::backward, region};
      return;
    }
    const auto known = forward_.find(event.sequence);
    if (known == forward_.end()) ++places_.unknown_backward_nodes;
    place = {known == forward_.end() ? kOutside : known->second.module, Phase::backward, region};
    thread.last_node = place.module;
  }

  bool open_module(const HostEvent& event, Owner& place) {
    const auto row = modules_.row_of(event.name);
    if (!row) return false;
    place.module = *row;
    if (place.phase == Phase::backward) place.phase = Phase::recompute;
    if (place.phase == Phase::optimizer) place.phase = Phase::forward;  // the step's closure calls it
    ++clock(place).calls;
    return true;
  }

  bool is_in_compiled_code(std::size_t i) const {
    for (auto around = tree_.parents[i]; around != kNone; around = tree_.parents[at(around)]) {
      if (trace_.names[trace_.host[at(around)].name].starts_with(kCompiledRange)) return true;
    }
    return false;
  }

  // Returns the name of the region that a range opens; empty if it opens none. Compiled code has the number of torch's
  // range around it, else the beginning of the graph's key. A step of a serving engine is a prefill, a decode or both.
  std::string region_name(std::size_t i, const Owner& place) const {
    constexpr std::size_t kLetters = 8;  // of a key
    const std::string_view range = trace_.names[trace_.host[i].name];
    std::string name;
    if (range.starts_with(kCompiledRange)) {
      name = std::string(kCompiledRegion) + " " + std::string(range.substr(kCompiledRange.size()));
    } else if (range.starts_with(kCompiledGraph)) {
      if (is_in_compiled_code(i)) return "";
      name = std::string(kCompiledRegion) + " " + std::string(range.substr(kCompiledGraph.size(), kLetters));
    } else if (const auto step = serving_step(range)) {
      name = step->kind;
    } else {
      return std::string(region_of_range(range));
    }
    return regions_.is_open(place.region, name) ? std::string() : std::string(region_of_range(name));
  }

  bool open_range(std::size_t i, Owner& place) {
    const auto& event = trace_.host[i];
    const std::string_view name = trace_.names[event.name];
    if (name.starts_with(kOptimizerStep)) {
      place.module = kOptimizer;
      place.phase = Phase::optimizer;
      ++clock(place).calls;
      return true;
    }
    const auto region = region_name(i, place);
    if (region.empty()) return false;
    const auto row = regions_.find_or_add(place.module, region);
    const auto path = regions_.find_or_add_path(place.region, region);
    if (path != place.region) {
      auto& clock = region_clocks_[path];
      clock.region = path;
      ++clock.calls;
      clock.wall_ns += event.end_ns - event.begin_ns;
      place.region = path;
    }
    if (!row) return false;
    place.module = *row;
    ++clock(place).calls;
    return true;
  }

  const Trace& trace_;
  const HostTree& tree_;
  ModuleTree modules_;
  Regions regions_;
  std::vector<std::int32_t> scopes_;  // by event: the innermost event around it, or itself, that has a clock
  std::vector<Thread> threads_;
  std::set<std::uint32_t> threads_with_regions_;
  std::unordered_map<std::int64_t, Owner> forward_;  // by sequence number
  std::map<Owner, Pass::Clock> clocks_;
  std::map<RegionId, Pass::RegionClock> region_clocks_;
  Places places_;
};

}  // namespace

Places places_of(const Trace& trace, const HostTree& tree, std::int64_t begin_ns, std::int64_t end_ns,
                 const CalledModel* model) {
  return Walk(trace, tree, model).run(begin_ns, end_ns);
}

std::int64_t step_number(std::string_view range) {
  if (!range.starts_with(kStep)) return kNone;
  return integer(range.substr(kStep.size())).value_or(kNone);
}

}  // namespace roofprof::kineto
