#include "join/compiled_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/median.h"
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

// The times of a kernel's calls, by run.
using CallTimes = std::vector<std::vector<std::int64_t>>;

bool is_known(const GraphCall& call, const std::vector<CompiledGraph>& graphs) {
  return call.graph >= 0 && call.graph < std::ssize(graphs);
}

std::map<KernelPlace, CallTimes> times_of_calls(const std::vector<Pass>& passes,
                                                const std::vector<CompiledGraph>& graphs) {
  std::map<KernelPlace, CallTimes> times;
  const auto add_call = [&](const GraphCall& call, std::size_t run) {
    const auto& kernels = graphs[static_cast<std::size_t>(call.graph)].kernels;
    // Kernels run in the order of their code, on one thread. Kernels without a range are skipped.
    auto from = kernels.begin();
    for (const auto& range : call.ranges) {
      const auto found =
          std::find_if(from, kernels.end(), [&](const auto& kernel) { return kernel.range == range.name; });
      if (found == kernels.end()) continue;  // memory or a view
      auto& of_kernel = times[{call.graph, static_cast<std::size_t>(found - kernels.begin()), call.owner}];
      of_kernel.resize(passes.size());
      of_kernel[run].push_back(range.ns);
      from = found + 1;
    }
  };
  for (std::size_t run = 0; run < passes.size(); ++run) {
    for (const auto& call : passes[run].graph_calls) {
      if (is_known(call, graphs)) add_call(call, run);
    }
  }
  return times;
}

// Several modules of one class may run the same graph. Its parts are known by those that it was compiled for: these are
// the modules at the same places below the one that called it.
class Places {
 public:
  Places(const std::vector<Module>& modules, const std::vector<CompiledGraph>& graphs, const Pass& pass)
      : modules_(modules), graphs_(graphs) {
    for (std::size_t id = 0; id < modules.size(); ++id) by_path_.try_emplace(modules[id].path, id);
    for (const auto& call : pass.graph_calls) callers_[call.graph].insert(call.owner.module);
  }

  CompiledKernel kernel_at(const KernelPlace& place) const {
    CompiledKernel kernel = graphs_[static_cast<std::size_t>(place.graph)].kernels[place.kernel].kernel;
    kernel.owner = place.caller;
    std::map<ModuleId, double> shares;
    for (const auto& part : kernel.parts) {
      const auto module = below(place.caller.module, part.module, callers_.at(place.graph));
      if (module >= 0) shares[module] += part.share;
    }
    kernel.parts.clear();
    for (const auto& [module, share] : shares) kernel.parts.push_back({module, share});
    std::ranges::stable_sort(kernel.parts, std::ranges::greater{}, &KernelPart::share);
    kernel.attributed = !kernel.parts.empty();
    if (!kernel.attributed) return kernel;
    auto innermost = kernel.parts.front().module;
    for (const auto& part : kernel.parts) innermost = innermost < 0 ? innermost : around(innermost, part.module);
    if (innermost >= 0) kernel.owner.module = innermost;
    return kernel;
  }

 private:
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

  // Returns the innermost module that holds both.
  ModuleId around(ModuleId a, ModuleId b) const {
    while (a >= 0 && !is_within(b, a, modules_)) a = modules_[index_of(a)].parent;
    return a;
  }

  const std::vector<Module>& modules_;
  const std::vector<CompiledGraph>& graphs_;
  std::map<std::string_view, std::size_t> by_path_;
  std::map<std::int64_t, std::set<ModuleId>> callers_;  // of each graph
};

// Gives the kernel the work and times of its calls in one run; `all_ns`: the times of its calls in all runs.
void add_calls(const std::vector<std::int64_t>& ns, const std::vector<std::int64_t>& all_ns, CompiledKernel& kernel) {
  summarize(ns, all_ns, kernel);
  kernel.work = kernel.work.times(kernel.instances);
  kernel.unfused_bytes = saturating_multiply(kernel.unfused_bytes, kernel.instances);
}

// Returns the times of all calls, those of each run multiplied by its factor.
std::vector<std::int64_t> scaled(const CallTimes& calls, const std::vector<double>& factors) {
  std::vector<std::int64_t> all;
  for (std::size_t run = 0; run < calls.size(); ++run) {
    for (const auto ns : calls[run]) all.push_back(std::llround(static_cast<double>(ns) * factors[run]));
  }
  return all;
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

// The ops that have the time of compiled code, one for each owner.
class CompiledOps {
 public:
  explicit CompiledOps(std::vector<Pass::Op>& ops) : ops_(ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].number == 0 && ops[i].op == kCompiledRegion) at_.try_emplace(ops[i].owner, i);
    }
  }

  // Adds time that compiled code took to the row of `owner`; returns the op's index.
  std::size_t add(const Owner& owner, std::int64_t calls, std::int64_t ns) {
    const auto [place, is_new] = at_.try_emplace(owner, ops_.size());
    if (is_new) {
      Pass::Op fresh;
      fresh.op = kCompiledRegion;
      fresh.owner = owner;
      ops_.push_back(std::move(fresh));
    }
    auto& op = ops_[place->second];
    op.calls += calls;
    op.time_ns = op.time_ns.value_or(0) + ns;
    return place->second;
  }

 private:
  std::vector<Pass::Op>& ops_;
  std::map<Owner, std::size_t> at_;
};

// The division of a region's time: the parts of its kernels and the part outside of them add up to 1.
struct Division {
  std::vector<double> kernels;
  std::vector<double> of_ns;  // the part that a nanosecond of each run is
  double known = 0;           // all kernels' part
  double moves = 0;           // the part that stands elsewhere in half of the runs
};

// Returns each kernel's part of the region's time: the median of its parts of single runs, because a busy machine may
// hold up any kernel in any run. `region_ns` has one figure for each run.
Division divided(const std::vector<std::int64_t>& region_ns, const std::vector<const CallTimes*>& kernels) {
  Division division;
  std::vector<std::vector<double>> parts(kernels.size() + 1);  // the last one is outside of kernels
  for (std::size_t run = 0; run < region_ns.size(); ++run) {
    std::vector<std::int64_t> ns;
    for (const auto* calls : kernels) {
      ns.push_back(std::accumulate((*calls)[run].begin(), (*calls)[run].end(), std::int64_t{0}));
    }
    const auto inside_ns = std::accumulate(ns.begin(), ns.end(), std::int64_t{0});
    const auto whole_ns = std::max(inside_ns, region_ns[run]);  // clocks may differ a little
    ns.push_back(whole_ns - inside_ns);
    division.of_ns.push_back(whole_ns > 0 ? 1 / static_cast<double>(whole_ns) : 0);
    for (std::size_t i = 0; whole_ns > 0 && i < ns.size(); ++i) {
      parts[i].push_back(static_cast<double>(ns[i]) / static_cast<double>(whole_ns));
    }
  }
  for (const auto& part : parts) division.kernels.push_back(median(part));
  const auto sum = std::accumulate(division.kernels.begin(), division.kernels.end(), 0.0);
  std::vector<double> moves(parts.back().size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (sum > 0) division.kernels[i] /= sum;
    for (std::size_t run = 0; run < moves.size(); ++run) {
      moves[run] += std::abs(parts[i][run] - division.kernels[i]) / 2;  // what one part lacks, another has
    }
  }
  for (auto& part : division.of_ns) part /= sum > 0 ? sum : 1;
  division.moves = median(moves);
  division.known = sum > 0 ? 1 - division.kernels.back() : 0;
  division.kernels.pop_back();
  return division;
}

// Gives the kernels of a region their parts of its time, and moves that to the rows of their modules. Returns the
// region's time; 0 where it has none.
std::int64_t share_time(const Owner& caller, const Division& division, const std::vector<CompiledKernel*>& kernels,
                        HostProfile& host) {
  const auto region = std::ranges::find_if(
      host.ops, [&](const Pass::Op& op) { return op.op == kCompiledRegion && op.owner == caller; });
  const auto row = std::ranges::find(host.times, caller, &ModuleTime::owner);
  if (region == host.ops.end() || !region->time_ns) return 0;
  const auto timed_ns = *region->time_ns;
  struct Sum {
    std::int64_t calls = 0;
    std::int64_t ns = 0;
  };
  std::map<Owner, Sum> sums;
  auto rest_ns = timed_ns;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    auto& kernel = *kernels[i];
    kernel.total_ns =
        std::min<std::int64_t>(std::llround(division.kernels[i] * static_cast<double>(timed_ns)), rest_ns);
    rest_ns -= kernel.total_ns;
    auto& sum = sums[kernel.owner];
    sum.calls += kernel.instances;
    sum.ns += kernel.total_ns;
  }
  region->op = kOutsideKernels;
  region->time_ns = rest_ns;
  // Adding rows or ops invalidates `row` and `region`. The backward of compiled autograd has no separate row.
  const auto before = row == host.times.end() ? std::vector<std::int64_t>() : row->self_ns;
  const auto chosen_ns = before.empty() ? 0 : before[static_cast<std::size_t>(host.chosen)];
  CompiledOps compiled(host.ops);
  for (const auto& [owner, sum] : sums) {
    compiled.add(owner, sum.calls, sum.ns);
    if (owner == caller || before.empty()) continue;
    const auto of_row = chosen_ns > 0 ? static_cast<double>(sum.ns) / static_cast<double>(chosen_ns) : 0;
    for (std::size_t run = 0; run < before.size(); ++run) {
      auto& left = time_of(caller, before.size(), host.times).self_ns[run];
      const auto moved = std::min<std::int64_t>(std::llround(of_row * static_cast<double>(before[run])), left);
      left -= moved;
      time_of(owner, before.size(), host.times).self_ns[run] += moved;
    }
    take_out_of_region(owner.module, host.modules);
  }
  return timed_ns;
}

constexpr double kSteady = 0.1;  // of the regions' time: that much may move between kernels
constexpr double kAlike = 1.5;   // the regions' time in runs of kernels may be that many times as long, or as short

// Sums over regions, in nanoseconds.
struct RegionSums {
  double here = 0;        // in the run that the rows come from
  double there = 0;       // in the runs of kernels
  double inside = 0;      // of kernels, here
  double attributed = 0;  // of kernels of known modules
  double moves = 0;       // of what stands elsewhere in half of the runs, here
};

// Says what is divided by what.
std::string as_ratio(double ratio) { return short_text(ratio, 3) + " times the time that it takes in the timed runs"; }

std::vector<Note> notes_on_kernels(const RegionSums& sums, std::int64_t kernels, std::int64_t runs,
                                   const EnvironmentFacts& facts) {
  const bool is_alone = facts.torch_threads == 1;
  const std::string again =
      std::string("measure again when the machine is quiet") + (is_alone ? "" : ", or on one thread");
  const auto of = [](double part, double whole) { return percent(whole > 0 ? part / whole : 0); };
  const auto ratio = sums.here > 0 ? sums.there / sums.here : 1;
  std::vector<Note> notes;
  add_note(notes, "compiled-kernels",
           counted(kernels, "kernel") + " of compiled code, timed in " + counted(runs, "run") + " of " +
               (runs == 1 ? "its" : "their") + " own, in which the compiled code took " + as_ratio(ratio) +
               ". A kernel's part of the code's time in its own runs is taken of the time in the rows. Kernels have " +
               of(sums.inside, sums.here) + " of that, and the module is known of " + of(sums.attributed, sums.inside) +
               " of the kernels' time. Regions keep the rest, such as guards, memory, calls of kernels and eager code "
               "between graphs, as "
               "(outside kernels)");
  if (sums.moves > kSteady * sums.here) {
    add_note(notes, "kernels-doubtful",
             "times of kernels are doubtful: in half of the runs that tell them, " + of(sums.moves, sums.here) +
                 " of the compiled regions' time, or more, was at other kernels than told here; " + again);
  } else if (ratio > kAlike || ratio < 1 / kAlike) {
    add_note(notes, "kernels-doubtful",
             "times of kernels are doubtful: in the runs that tell them the compiled code took " + as_ratio(ratio) +
                 "; " + again);
  }
  return notes;
}

}  // namespace

KernelsFound move_to_modules(const RunRecord& observed, HostProfile& host) {
  const auto& passes = observed.kernel_passes;
  if (passes.empty() || observed.graphs.empty() || host.chosen < 0) return {};
  const auto chosen = static_cast<std::size_t>(median_pass(passes));
  const auto times = times_of_calls(passes, observed.graphs);
  std::map<Owner, std::vector<std::int64_t>> region_ns;
  for (std::size_t run = 0; run < passes.size(); ++run) {
    for (const auto& [caller, ns] : times_of_regions(passes[run])) {
      region_ns[caller].resize(passes.size());
      region_ns[caller][run] = ns;
    }
  }
  KernelsFound result;
  const Places places(host.modules, observed.graphs, passes[chosen]);
  struct InRegion {
    std::vector<CompiledKernel*> kernels;
    std::vector<const CallTimes*> calls;  // of each kernel
  };
  std::map<Owner, InRegion> by_region;
  result.kernels.reserve(times.size());  // they are pointed to
  for (const auto& [place, calls] : times) {
    if (calls[chosen].empty()) continue;
    auto& kernel = result.kernels.emplace_back(places.kernel_at(place));
    add_calls(calls[chosen], scaled(calls, std::vector<double>(passes.size(), 1)), kernel);
    by_region[place.caller].kernels.push_back(&kernel);
    by_region[place.caller].calls.push_back(&calls);
  }
  RegionSums all_regions;
  for (const auto& [caller, ns] : region_ns) {
    const auto& [kernels, calls] = by_region[caller];
    auto division = divided(ns, calls);
    for (auto* kernel : kernels) kernel->total_ns = 0;  // where the region has no time
    const auto here = static_cast<double>(share_time(caller, division, kernels, host));
    for (auto& factor : division.of_ns) factor *= here;
    all_regions.here += here;
    all_regions.there += median(ns);
    all_regions.inside += division.known * here;
    all_regions.moves += division.moves * here;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      auto& kernel = *kernels[i];
      add_spread(scaled(*calls[i], division.of_ns), kernel);
      // These were rounded, and so was the total.
      kernel.min_ns = std::min(kernel.min_ns, kernel.total_ns / kernel.instances);
      kernel.max_ns = std::max(kernel.max_ns, (kernel.total_ns + kernel.instances - 1) / kernel.instances);
      if (kernel.attributed) all_regions.attributed += division.kernels[i] * here;
    }
  }
  std::ranges::stable_sort(result.kernels, std::ranges::greater{}, &CompiledKernel::total_ns);
  result.notes =
      notes_on_kernels(all_regions, std::ssize(result.kernels), std::ssize(passes), facts_in(observed.run.environment));
  return result;
}

namespace {

bool is_operator(const CompiledKernel& kernel) { return kernel.name.find("::") != std::string::npos; }

// Operators by which torch sets a CUDA graph's inputs and its random state before it replays it.
bool sets_replays(std::string_view op) {
  return op == "aten::_foreach_copy_" || op == "aten::copy_" || op == "aten::fill_";
}

// Finds which of the kernels of a region's code each of its launches belongs to, both in order.
class LaunchMatch {
 public:
  LaunchMatch(const std::vector<const CompiledGraph::Kernel*>& wanted, const std::vector<Launch>& launches,
              const std::vector<std::string>& names)
      : wanted_(wanted), launches_(launches), names_(names), found_(launches.size(), -1) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!is_operator(wanted[i]->kernel)) generated_[wanted[i]->kernel.name].push_back(i);
    }
  }

  // Returns the index in `wanted` by launch; -1: it is not known.
  std::vector<std::ptrdiff_t> run() && {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const auto& record = *launches_[i].record;
      if (record.kind != KernelKind::kernel) continue;
      const auto of_name = generated_.find(names_[record.name]);
      if (of_name == generated_.end()) continue;
      const auto next = std::ranges::lower_bound(of_name->second, wanted_from_);
      if (next == of_name->second.end()) continue;
      fill(*next, i);
      found_[i] = static_cast<std::ptrdiff_t>(*next);
      wanted_from_ = *next + 1;
      launches_from_ = i + 1;
    }
    fill(wanted_.size(), launches_.size());
    return std::move(found_);
  }

 private:
  // Launches by one call of an operator, or by several with the same inputs.
  struct Stretch {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // Gives the launches between two generated kernels to the operators between them.
  void fill(std::size_t wanted_end, std::size_t launches_end) {
    std::vector<std::size_t> calls;
    for (auto i = wanted_from_; i < wanted_end; ++i) {
      if (is_operator(wanted_[i]->kernel)) calls.push_back(i);
    }
    bool any_replayed = false;
    for (auto i = launches_from_; i < launches_end && !any_replayed; ++i) any_replayed = is_replayed(i);
    auto from = launches_from_;
    for (std::size_t first = 0; first < calls.size();) {
      auto last = first + 1;
      while (last < calls.size() && name_of(calls[last]) == name_of(calls[first])) ++last;
      const bool is_only = last - first == calls.size() && !any_replayed;
      if (!any_replayed || !sets_replays(name_of(calls[first]))) {
        from = give(
            {calls.begin() + static_cast<std::ptrdiff_t>(first), calls.begin() + static_cast<std::ptrdiff_t>(last)},
            from, launches_end, is_only);
      }
      first = last;
    }
    if (any_replayed && from == launches_from_ && calls.size() == wanted_end - wanted_from_)
      give_replayed(calls, launches_end);
  }

  // Gives what CUDA graphs launched there, where no operator ran, to `calls`, which are all that the code has there: to
  // the only one, or a kernel each in order, with the fills before it. Where it may be another's it gives nothing.
  void give_replayed(const std::vector<std::size_t>& calls, std::size_t end) {
    const auto launches = replayed(end);
    if (launches.empty() || calls.empty()) return;
    const auto is_fill = [&](std::size_t launch) { return record(launch).kind == KernelKind::fill; };
    // A call that moves nothing may launch nothing.
    const auto moves = [&](std::size_t call) { return wanted_[call]->kernel.work.bytes() > 0; };
    const auto fills = static_cast<std::size_t>(std::ranges::count_if(launches, is_fill));
    const bool one_each =
        launches.size() - fills == calls.size() && !is_fill(launches.back()) && std::ranges::all_of(calls, moves);
    if (calls.size() > 1 && !one_each) return;
    std::size_t call = 0;
    for (const auto launch : launches) {
      found_[launch] = static_cast<std::ptrdiff_t>(calls[call]);
      if (calls.size() > 1 && !is_fill(launch)) ++call;
    }
  }

  // Returns what was launched there by the replays that launched the generated kernels before and after. Empty: there
  // is nothing, or something else was launched too.
  std::vector<std::size_t> replayed(std::size_t end) const {
    const auto is_beside = [&](std::size_t launch) {
      const auto replay = record(launch).correlation;
      return (launches_from_ > 0 && record(launches_from_ - 1).correlation == replay) ||
             (end < launches_.size() && record(end).correlation == replay);
    };
    std::vector<std::size_t> launches;
    for (auto i = launches_from_; i < end; ++i) {
      if (record(i).graph_node == 0 && sets_replays(launches_[i].owner->op)) continue;
      if (!is_replayed(i) || !is_beside(i) || is_generated(i)) return {};
      launches.push_back(i);
    }
    return launches;
  }

  const KernelRecord& record(std::size_t launch) const { return *launches_[launch].record; }
  bool is_replayed(std::size_t launch) const { return record(launch).graph_node != 0 && !by_an_op(launch); }
  // Generated code that has no place there, or is not this code.
  bool is_generated(std::size_t launch) const {
    const auto name = name_of_launch(record(launch), names_);
    return name.starts_with("triton_") || generated_.contains(name);
  }

  const std::string& name_of(std::size_t wanted) const { return wanted_[wanted]->kernel.name; }
  bool by_an_op(std::size_t launch) const {
    const auto& op = launches_[launch].owner->op;
    return !op.empty() && op != kCompiledRegion;
  }

  // Gives `calls` of one operator their launches from there on; returns where the next ones may begin. `is_only`: no
  // other operator is called in between, so that one of another name is what this one calls.
  std::size_t give(const std::vector<std::size_t>& calls, std::size_t from, std::size_t end, bool is_only) {
    const auto named = [&](std::size_t launch) { return launches_[launch].owner->op == name_of(calls.front()); };
    bool any_named = false;
    for (auto i = from; i < end && !any_named; ++i) any_named = named(i);
    const auto fits = [&](std::size_t launch) { return any_named ? named(launch) : is_only && by_an_op(launch); };
    std::vector<Stretch> stretches;
    auto at = from;
    while (at < end && !fits(at)) ++at;
    while (at < end && fits(at)) {
      auto next = at + 1;
      while (next < end && launches_[next].owner == launches_[at].owner) ++next;
      stretches.push_back({at, next});
      at = next;
    }
    if (stretches.empty()) return from;  // it launched nothing
    if (stretches.size() == 1) stretches = parts_of(stretches.front(), calls.size());
    if (calls.size() == 1) stretches = {{stretches.front().begin, stretches.back().end}};
    if (stretches.size() != calls.size()) return at;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (auto launch = stretches[i].begin; launch < stretches[i].end; ++launch) {
        found_[launch] = static_cast<std::ptrdiff_t>(calls[i]);
      }
    }
    return at;
  }

  // Returns `count` equal parts: calls with equal inputs launch the same kernels each. Empty: the parts are not equal.
  std::vector<Stretch> parts_of(const Stretch& all, std::size_t count) const {
    const auto launches = all.end - all.begin;
    if (launches % count != 0) return {};
    const auto each = launches / count;
    for (auto i = all.begin + each; i < all.end; ++i) {
      if (name_of_launch(*launches_[i].record, names_) != name_of_launch(*launches_[i - each].record, names_))
        return {};
    }
    std::vector<Stretch> parts;
    for (std::size_t i = 0; i < count; ++i) parts.push_back({all.begin + i * each, all.begin + (i + 1) * each});
    return parts;
  }

  const std::vector<const CompiledGraph::Kernel*>& wanted_;
  const std::vector<Launch>& launches_;
  const std::vector<std::string>& names_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> generated_;  // the places of each name, in order
  std::vector<std::ptrdiff_t> found_;
  std::size_t wanted_from_ = 0;
  std::size_t launches_from_ = 0;
};

// The kernels of all calls of graphs from one place, in order.
struct RegionCode {
  std::vector<const CompiledGraph::Kernel*> wanted;
  std::vector<KernelPlace> places;  // of each
};

std::map<Owner, RegionCode> code_by_region(const Pass& pass, const std::vector<CompiledGraph>& graphs) {
  std::map<Owner, RegionCode> regions;
  for (const auto& call : pass.graph_calls) {
    if (!is_known(call, graphs)) continue;
    auto& region = regions[call.owner];
    const auto& kernels = graphs[static_cast<std::size_t>(call.graph)].kernels;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      region.wanted.push_back(&kernels[i]);
      region.places.push_back({call.graph, i, call.owner});
    }
  }
  return regions;
}

// The launches of each kernel in one run.
struct RunLaunches {
  std::map<KernelPlace, std::vector<std::int64_t>> ns;  // of each call
  std::map<KernelPlace, std::vector<std::size_t>> records;
  std::int64_t all_ns = 0;  // of the regions
  std::int64_t unknown = 0;
  std::int64_t unknown_ns = 0;
};

RunLaunches launches_in(const DeviceTrace& trace, const std::vector<LaunchOwner>& owners,
                        const std::map<Owner, RegionCode>& regions) {
  RunLaunches result;
  std::map<Owner, std::vector<Launch>> by_owner;
  for (const auto& launch : launches_of(trace, owners).in_order) by_owner[launch.owner->owner].push_back(launch);
  for (const auto& [owner, code] : regions) {
    const auto& launches = by_owner[owner];
    const auto found = LaunchMatch(code.wanted, launches, trace.names).run();
    std::map<std::ptrdiff_t, std::int64_t> ns;  // by call
    for (std::size_t i = 0; i < launches.size(); ++i) {
      result.all_ns += launches[i].duration_ns();
      if (found[i] < 0) {
        ++result.unknown;
        result.unknown_ns += launches[i].duration_ns();
        continue;
      }
      ns[found[i]] += launches[i].duration_ns();
      result.records[code.places[static_cast<std::size_t>(found[i])]].push_back(
          static_cast<std::size_t>(launches[i].record - trace.records.data()));
    }
    for (const auto& [call, call_ns] : ns) result.ns[code.places[static_cast<std::size_t>(call)]].push_back(call_ns);
  }
  return result;
}

// Returns the trace with these owners of the launches of kernels.
std::shared_ptr<const DeviceTrace> with_owners(const DeviceTrace& trace, const RunLaunches& launches,
                                               const std::map<KernelPlace, LaunchId>& ids) {
  auto changed = std::make_shared<DeviceTrace>(trace);
  for (const auto& [place, records] : launches.records) {
    const auto id = ids.find(place);
    if (id == ids.end()) continue;
    for (const auto record : records) {
      auto& launch = changed->records[record].launch;
      launch = (launch & ~owner_of_launch(launch)) | id->second;
    }
  }
  return changed;
}

Note note_on_launches(const KernelsFound& found, const RunLaunches& chosen) {
  std::int64_t known_ns = 0;
  for (const auto& kernel : found.kernels) known_ns += kernel.attributed ? kernel.total_ns : 0;
  const auto of_all = [&](std::int64_t ns) {
    return percent(chosen.all_ns > 0 ? static_cast<double>(ns) / static_cast<double>(chosen.all_ns) : 0);
  };
  std::string text = counted(std::ssize(found.kernels), "kernel") +
                     " of compiled code, found by the names and the order of launches: they took " +
                     of_all(chosen.all_ns - chosen.unknown_ns) + " of the compiled regions' device time, and " +
                     of_all(known_ns) + " of it is known by module";
  if (chosen.unknown > 0) {
    text += "; " + counted(chosen.unknown, "launch", "launches") + " that no name, operator or order tells (" +
            of_all(chosen.unknown_ns) + ") stand on the regions as (outside kernels)";
  }
  return make_note("compiled-kernels", text);
}

KernelsFound none_found(const std::string& why) {
  return {{}, {make_note("no-kernels", "no kernels of compiled code: " + why)}};
}

}  // namespace

KernelsFound find_launches(RunRecord& observed, HostProfile& host, std::vector<LaunchOwner>& owners) {
  const auto& passes = observed.kernel_passes;
  const auto traced = [](const Pass& pass) { return pass.device != nullptr; };
  if (passes.empty() || observed.graphs.empty() || host.chosen < 0) return {};
  if (owners.empty() || !std::ranges::all_of(observed.timed, traced)) {
    return none_found("the device's launches were not recorded");
  }
  const auto& pass = passes[static_cast<std::size_t>(median_pass(passes))];
  const auto regions = code_by_region(pass, observed.graphs);
  std::vector<RunLaunches> runs;
  for (const auto& timed : observed.timed) runs.push_back(launches_in(*timed.device, owners, regions));
  const auto& chosen = runs[static_cast<std::size_t>(host.chosen)];
  if (chosen.ns.empty()) {
    return none_found("no launch in a compiled region has the name or the operator of one");
  }
  for (auto& op : host.ops) {
    if (op.op == kCompiledRegion && op.number == 0 && regions.contains(op.owner)) op.op = kOutsideKernels;
  }
  KernelsFound result;
  const Places places(host.modules, observed.graphs, pass);
  CompiledOps compiled(host.ops);
  std::map<KernelPlace, LaunchId> ids;
  for (const auto& [place, ns] : chosen.ns) {
    auto& kernel = result.kernels.emplace_back(places.kernel_at(place));
    kernel.id = std::ssize(result.kernels);
    std::vector<std::int64_t> all;
    for (const auto& run : runs) {
      if (const auto those = run.ns.find(place); those != run.ns.end())
        all.insert(all.end(), those->second.begin(), those->second.end());
    }
    add_calls(ns, all, kernel);
    const auto bucket = compiled.add(kernel.owner, kernel.instances, kernel.total_ns);
    LaunchOwner owner{kernel.owner, std::string(kCompiledRegion), static_cast<std::int64_t>(bucket), kernel.id};
    if (is_operator(kernel)) owner.op = kernel.name;
    ids[place] = owners.size();
    owners.push_back(std::move(owner));
    if (kernel.owner != place.caller) take_out_of_region(kernel.owner.module, host.modules);
  }
  for (std::size_t run = 0; run < runs.size(); ++run) {
    observed.timed[run].device = with_owners(*observed.timed[run].device, runs[run], ids);
  }
  result.notes.push_back(note_on_launches(result, chosen));
  std::ranges::stable_sort(result.kernels, std::ranges::greater{}, &CompiledKernel::total_ns);
  return result;
}

}  // namespace roofprof
