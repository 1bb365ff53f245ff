#include "join/compiled_kernels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/phrases.h"
#include "join/compiled_regions.h"
#include "join/device_launches.h"

namespace roofprof {
namespace {

// A kernel in one place of a graph's code, and who called the graph.
struct KernelPlace {
  std::int64_t graph = 0;
  std::size_t kernel = 0;
  Owner caller;
  auto operator<=>(const KernelPlace&) const = default;
};

using KernelTimes = std::map<KernelPlace, std::vector<std::int64_t>>;

// Kernels run in the order of their code, on one thread. What has no range of its own is passed over.
void add_call(const GraphCall& call, const CompiledGraph& graph, KernelTimes& times) {
  std::size_t next = 0;
  for (const auto& range : call.ranges) {
    const auto is_this = [&](const CompiledGraph::Kernel& kernel) { return kernel.range == range.name; };
    const auto from = graph.kernels.begin() + static_cast<std::ptrdiff_t>(next);
    const auto found = std::find_if(from, graph.kernels.end(), is_this);
    if (found == graph.kernels.end()) continue;  // memory or a view
    const auto at = static_cast<std::size_t>(found - graph.kernels.begin());
    times[{call.graph, at, call.owner}].push_back(range.ns);
    next = at + 1;
  }
}

KernelTimes times_of(const Pass& pass, const std::vector<CompiledGraph>& graphs) {
  KernelTimes times;
  for (const auto& call : pass.graph_calls) {
    if (call.graph >= 0 && call.graph < std::ssize(graphs)) {
      add_call(call, graphs[static_cast<std::size_t>(call.graph)], times);
    }
  }
  return times;
}

// Several modules of one class may run the same graph. Its parts are known by those that it was compiled for: these are
// the modules at the same places below the one that called it.
class Places {
 public:
  explicit Places(const std::vector<Module>& modules) : modules_(modules) {
    for (std::size_t id = 0; id < modules.size(); ++id) by_path_.try_emplace(modules[id].path, id);
  }

  // Returns the module that stands below `caller` as `part` does below that one of `callers` that holds it; -1: there
  // is none.
  ModuleId below(ModuleId caller, ModuleId part, const std::set<ModuleId>& callers) const {
    if (part < 0) return caller;
    if (is_within(part, caller, modules_)) return part;
    auto base = part;
    while (base >= 0 && !callers.contains(base)) base = modules_[index_of(base)].parent;
    if (base < 0 || base == caller) return part;
    const auto& other = modules_[index_of(caller)];
    const auto& first = modules_[index_of(base)];
    if (other.type != first.type) return part;
    const auto found = by_path_.find(other.path + modules_[index_of(part)].path.substr(first.path.size()));
    return found == by_path_.end() ? -1 : static_cast<ModuleId>(found->second);
  }

  // The innermost module that holds both.
  ModuleId around(ModuleId a, ModuleId b) const {
    while (a >= 0 && !is_within(b, a, modules_)) a = modules_[index_of(a)].parent;
    return a;
  }

 private:
  const std::vector<Module>& modules_;
  std::map<std::string_view, std::size_t> by_path_;
};

CompiledKernel kernel_at(const KernelPlace& place, const CompiledGraph& graph, const Places& places,
                         const std::set<ModuleId>& callers) {
  CompiledKernel kernel = graph.kernels[place.kernel].kernel;
  kernel.owner = place.caller;
  std::map<ModuleId, double> shares;
  for (const auto& part : kernel.parts) {
    const auto module = places.below(place.caller.module, part.module, callers);
    if (module >= 0) shares[module] += part.share;
  }
  kernel.parts.clear();
  for (const auto& [module, share] : shares) kernel.parts.push_back({module, share});
  std::ranges::stable_sort(kernel.parts, std::ranges::greater{}, &KernelPart::share);
  kernel.attributed = !kernel.parts.empty();
  if (!kernel.attributed) return kernel;
  auto around = kernel.parts.front().module;
  for (const auto& part : kernel.parts) around = around < 0 ? around : places.around(around, part.module);
  if (around >= 0) kernel.owner.module = around;
  return kernel;
}

// Modules with a time of their own, and those that they are in, are not inside the region any more.
void take_out_of_region(ModuleId module, std::vector<Module>& modules) {
  for (; module >= 0 && modules[index_of(module)].compiled_region >= 0; module = modules[index_of(module)].parent) {
    modules[index_of(module)].compiled_region = -1;
  }
}

ModuleTime& time_of(const Owner& owner, std::size_t runs, std::vector<ModuleTime>& times) {
  auto found = std::ranges::find(times, owner, &ModuleTime::owner);
  if (found == times.end()) {
    times.push_back({.owner = owner, .calls = 0, .self_ns = {}, .host_self_ns = {}});
    found = std::prev(times.end());
  }
  found->self_ns.resize(runs);
  return *found;
}

// Moves those parts of the time of the region of `caller` to other rows.
void move_time(const Owner& caller, const std::map<Owner, double>& parts, HostProfile& host) {
  const auto is_region = [&](const Pass::Op& op) { return op.op == kCompiledRegion && op.owner == caller; };
  const auto found = std::ranges::find_if(host.ops, is_region);
  const auto row = std::ranges::find(host.times, caller, &ModuleTime::owner);
  if (found == host.ops.end() || !found->time_ns || row == host.times.end() || row->self_ns.empty()) return;
  const auto region = static_cast<std::size_t>(found - host.ops.begin());
  const auto before = row->self_ns;  // `row` goes when rows are added
  const auto chosen = static_cast<std::size_t>(host.chosen);
  const auto region_ns = *found->time_ns;
  double sum = 0;  // more than all of it where clocks do not agree
  for (const auto& [owner, part] : parts) sum += part;
  for (const auto& [owner, part] : parts) {
    if (owner == caller) continue;
    const double of_op = part / std::max(sum, 1.0) * static_cast<double>(region_ns);
    const double of_row = before[chosen] > 0 ? of_op / static_cast<double>(before[chosen]) : 0;
    for (std::size_t run = 0; run < before.size(); ++run) {
      const auto moved = std::llround(of_row * static_cast<double>(before[run]));
      time_of(owner, before.size(), host.times).self_ns[run] += moved;
      time_of(caller, before.size(), host.times).self_ns[run] -= moved;
    }
    take_out_of_region(owner.module, host.modules);
    const auto moved = std::llround(of_op);
    Pass::Op op;
    op.op = kCompiledRegion;
    op.owner = owner;
    op.time_ns = moved;
    *host.ops[region].time_ns -= moved;
    const auto same = std::ranges::find_if(host.ops, [&](const Pass::Op& other) {
      return other.number == 0 && other.op == op.op && other.owner == op.owner;
    });
    if (same == host.ops.end()) {
      host.ops.push_back(std::move(op));
    } else {
      same->time_ns = same->time_ns.value_or(0) + moved;
    }
  }
}

}  // namespace

KernelsFound move_to_modules(const RunRecord& observed, HostProfile& host) {
  const auto& passes = observed.kernel_passes;
  if (passes.empty() || observed.graphs.empty() || host.chosen < 0) return {};
  const auto& pass = passes[static_cast<std::size_t>(median_pass(passes))];
  const auto region_ns = times_of_regions(pass);
  const auto chosen = times_of(pass, observed.graphs);
  std::map<KernelPlace, std::vector<std::int64_t>> all;
  for (const auto& of_pass : passes) {
    for (auto& [place, ns] : times_of(of_pass, observed.graphs)) {
      auto& into = all[place];
      into.insert(into.end(), ns.begin(), ns.end());
    }
  }
  KernelsFound result;
  const Places places(host.modules);
  std::map<std::int64_t, std::set<ModuleId>> callers;  // of each graph
  for (const auto& [place, ns] : chosen) callers[place.graph].insert(place.caller.module);
  std::map<Owner, std::map<Owner, double>> parts;  // of the region's time, by its caller
  std::map<Owner, std::int64_t> in_kernels;        // of these regions
  std::int64_t kernels_ns = 0;
  std::int64_t known_ns = 0;
  for (const auto& [place, ns] : chosen) {
    auto kernel =
        kernel_at(place, observed.graphs[static_cast<std::size_t>(place.graph)], places, callers[place.graph]);
    summarize(ns, all[place], kernel);
    kernel.work = kernel.work.times(kernel.instances);
    kernel.unfused_bytes = saturating_multiply(kernel.unfused_bytes, kernel.instances);
    kernels_ns += kernel.total_ns;
    in_kernels[place.caller] += kernel.total_ns;
    known_ns += kernel.attributed ? kernel.total_ns : 0;
    const auto region = region_ns.find(place.caller);
    if (region != region_ns.end() && region->second > 0) {
      parts[place.caller][kernel.owner] += static_cast<double>(kernel.total_ns) / static_cast<double>(region->second);
    }
    result.kernels.push_back(std::move(kernel));
  }
  for (const auto& [caller, of_caller] : parts) move_time(caller, of_caller, host);
  std::ranges::stable_sort(result.kernels, std::ranges::greater{}, &CompiledKernel::total_ns);
  std::int64_t regions_ns = 0;
  std::int64_t inside_ns = 0;
  for (const auto& [caller, ns] : region_ns) {
    regions_ns += ns;
    inside_ns += std::min(ns, in_kernels[caller]);
  }
  const auto of = [](std::int64_t part, std::int64_t whole) {
    return percent(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
  };
  result.note = make_note(
      "compiled-kernels",
      counted(std::ssize(result.kernels), "kernel") + " of compiled code, timed in " +
          counted(std::ssize(passes), "run") + " of " + (passes.size() == 1 ? "its" : "their") + " own: they took " +
          of(inside_ns, regions_ns) + " of the compiled regions' time there, and " + of(known_ns, kernels_ns) +
          " of it is known by module; regions keep the rest, such as guards, memory and calls of kernels");
  return result;
}

}  // namespace roofprof
