#include "join/host_profile.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/attribution.h"
#include "join/compiled_regions.h"

namespace roofprof {

namespace {

struct Difference {
  std::string op;
  std::int64_t calls = 0;  // of the first call, less those of the later one
  bool works = false;
};

// Operators that one call ran more often than the other one.
class Surplus {
 public:
  void add(const Difference& difference) {
    ops_.push_back(difference);
    ops_.back().calls = std::abs(difference.calls);
    calls_ += ops_.back().calls;
  }
  bool empty() const { return ops_.empty(); }
  // "3 more operators", and which: first those that did something.
  std::string count(const std::string& comparison) const { return counted(calls_, comparison + " operator"); }
  std::string names() {
    std::ranges::stable_sort(
        ops_, [](const auto& a, const auto& b) { return std::tie(a.works, a.calls) > std::tie(b.works, b.calls); });
    std::vector<std::string> names;
    for (const auto& op : ops_) names.push_back(op.op + " (" + counted(op.calls, "call") + ")");
    return listed(names, kNamed);
  }

 private:
  std::vector<Difference> ops_;
  std::int64_t calls_ = 0;
};

}  // namespace

std::optional<Note> note_on_first_call(const Pass& first, const Pass& later, const std::vector<Module>& modules) {
  std::map<OpKey, std::int64_t> by_key;  // calls of the first, less those of the later one
  std::map<std::string, Difference> by_name;
  const auto add = [&](const Pass& pass, std::int64_t sign) {
    for (const auto& op : pass.ops) {
      if (op.is_unobserved() || op.kind == Pass::Op::Kind::tracing) continue;
      by_key[op.key()] += sign * op.calls;
      auto& difference = by_name[op.op];
      difference.op = op.op;
      difference.calls += sign * op.calls;
      difference.works = difference.works || op.has_work();
    }
  };
  add(first, 1);
  add(later, -1);
  if (std::ranges::all_of(by_key, [](const auto& op) { return op.second == 0; })) return std::nullopt;

  Surplus more;
  Surplus fewer;
  for (const auto& [op, difference] : by_name) {
    if (difference.calls > 0) more.add(difference);
    if (difference.calls < 0) fewer.add(difference);
  }
  std::string text = "the first call ran ";
  if (more.empty() && fewer.empty()) {
    text += "the same operators as those after it with other shapes or in other modules";
  } else if (more.empty()) {
    text += fewer.count("fewer") + " than those after it: " + fewer.names();
  } else {
    text += more.count("more") + " than those after it: " + more.names();
    if (!fewer.empty()) text += "; and " + fewer.count("fewer") + ": " + fewer.names();
  }

  std::set<ModuleId> where;
  for (const auto& [key, calls] : by_key) {
    if (calls != 0) where.insert(key.owner.module);
  }
  return make_note("first-call", text + "; counts and times are those of the later calls", paths_of(where, modules));
}

OtherOps other_ops(const Pass& counting, const Pass& timed, const std::vector<Module>& modules) {
  std::set<OpKey> counted;
  for (const auto& op : counting.ops) counted.insert(op.key());
  std::set<std::string> where;
  std::set<std::string> names;
  OtherOps others;
  for (const auto& op : timed.ops) {
    if (op.is_unobserved() || op.kind == Pass::Op::Kind::tracing || counted.contains(op.key())) continue;
    auto& other = others.ops.emplace_back(op);
    other.calls = 0;
    other.work = {};
    other.reuse.clear();
    other.crossings.clear();
    other.costed = true;
    if (!op.has_work()) continue;
    where.insert(modules[index_of(op.owner.module)].path);
    names.insert(op.op);
  }
  if (!names.empty()) {
    others.note = make_note("script-other-ops",
                            "TorchScript's executor ran other operators than the code of its modules has (" +
                                first_paths(names) + " in " + first_paths(where) +
                                "): their work is in the rows of the modules whose code has it, their time in the rows "
                                "of those that ran them",
                            {where.begin(), where.end()});
  }
  return others;
}

std::optional<Note> note_on_differentiated(const Pass& counting, const std::vector<Module>& modules) {
  std::set<std::string> where;
  for (const auto module : counting.differentiated_whole) where.insert(modules[index_of(module)].path);
  if (where.empty()) return std::nullopt;
  return make_note("script-differentiated",
                   "TorchScript differentiated parts of " + first_paths(where) +
                       " as a whole: their backward, and all work whose module is unknown there, is in those rows",
                   {where.begin(), where.end()});
}

namespace {

std::vector<ModuleTime> module_times(const Pass& counting, const std::vector<Pass>& timed) {
  std::map<Owner, ModuleTime> times;
  const auto entry = [&](const Pass::Clock& clock) -> ModuleTime& {
    auto& time = times[clock.owner];
    time.owner = clock.owner;
    time.self_ns.resize(timed.size());
    return time;
  };
  for (const auto& clock : counting.clocks) entry(clock).calls = clock.calls;
  for (std::size_t run = 0; run < timed.size(); ++run) {
    for (const auto& clock : timed[run].clocks) entry(clock).self_ns[run] = clock.self_ns;
  }
  std::vector<ModuleTime> result;
  for (auto& [key, time] : times) result.push_back(std::move(time));
  return result;
}

// Returns for each row whether ops were counted in rows below it.
std::vector<bool> modules_with_work_below(const Pass& pass, const std::vector<Module>& modules) {
  std::vector<bool> below(modules.size());
  for (const auto& op : pass.ops) {
    if (op.is_unobserved() || !op.has_work()) continue;
    auto parent = modules[index_of(op.owner.module)].parent;
    for (; parent >= 0; parent = modules[index_of(parent)].parent) below[index_of(parent)] = true;
  }
  return below;
}

void add_counted(const Pass& counting, const Pass* chosen, HostProfile& host) {
  std::map<OpKey, std::optional<std::int64_t>> times;
  if (chosen != nullptr) {
    for (const auto& op : chosen->ops) times.emplace(op.key(), op.time_ns);
  }
  const auto with_work = modules_with_work_below(counting, host.modules);
  for (const auto& op : counting.ops) {
    if (op.kind == Pass::Op::Kind::tracing) continue;
    // Other threads may have done what the module waited for.
    if (op.kind == Pass::Op::Kind::unobserved_module && with_work[index_of(op.owner.module)]) continue;
    if (op.is_unobserved()) host.unobserved[op.op] += op.calls;
    auto& bucket = host.ops.emplace_back(op);
    const auto time = times.find(op.key());
    bucket.time_ns = time == times.end() ? std::nullopt : time->second;
  }
}

// The call has data, and computed with it: making random numbers is none of that.
bool computes_on_data(const RunRecord& observed) {
  return observed.holds_data && std::ranges::any_of(observed.counting.ops, [](const Pass::Op& op) {
           const bool computes = op.work.operations != Work{}.operations && op.work.input_elements > 0;
           return !op.without_data && (!op.costed || computes);
         });
}

bool was_only_traced(const Pass& counting, const std::string& name) {
  bool traced = false;
  for (const auto& op : counting.ops) {
    if (op.op != name || op.costed) continue;
    if (op.kind != Pass::Op::Kind::tracing) return false;
    traced = true;
  }
  return traced;
}

std::vector<Note> notes_on_counting(const Pass& counting) {
  std::vector<Note> notes;
  for (const auto& [op, reason] : counting.failures) {
    if (was_only_traced(counting, op)) continue;
    const std::string named = op + ": ";
    std::string text = "no cost for ";
    if (!reason.starts_with(named)) text += named;
    add_note(notes, "cost-failed", text + reason, {op});
  }
  if (counting.ops_elsewhere) {
    add_note(notes, "ops-on-other-threads",
             "ops ran on other threads, outside of the model's modules: they are not counted, because they may belong "
             "to other code");
  }
  if (const auto threads = counting.threads_inside; threads > 0) {
    add_note(notes, "calls-under-way",
             (threads == 1 ? std::string("1 other thread was") : std::to_string(threads) + " other threads were") +
                 " inside of modules when it ended: these calls are counted, with the work that was done by then");
  }
  if (counting.unknown_backward_nodes > 0) {
    add_note(notes, "forward-not-known",
             std::to_string(counting.unknown_backward_nodes) +
                 " backward nodes have no known forward (it ran before the profile began, or more than " +
                 std::to_string(kNodesRemembered) +
                 " nodes earlier on its thread): their work is in the row (outside)");
  }
  return notes;
}

}  // namespace

std::optional<Note> set_tracing_aside(RunRecord& observed) {
  if (!computes_on_data(observed)) return std::nullopt;
  const auto set_aside = [](Pass& pass) {
    std::int64_t calls = 0;
    for (auto& op : pass.ops) {
      if (!op.without_data || op.is_unobserved()) continue;
      op.kind = Pass::Op::Kind::tracing;
      calls += op.calls;
    }
    return calls;
  };
  for (auto& pass : observed.timed) set_aside(pass);
  if (observed.first_call) set_aside(*observed.first_call);
  const auto calls = set_aside(observed.counting);
  if (calls == 0) return std::nullopt;
  return make_note("traced-meanwhile",
                   counted(calls, "operator call") +
                       " on tensors without data (fake, or on the meta device) computed shapes or traced code: they "
                       "are left out, as the call itself has data");
}

std::int64_t median_pass(const std::vector<Pass>& timed) {
  if (timed.empty()) return -1;
  std::vector<std::size_t> order(timed.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return timed[a].wall_ns < timed[b].wall_ns; });
  return static_cast<std::int64_t>(order[(order.size() - 1) / 2]);
}

HostProfile host_profile(std::vector<Module> modules, const Pass& counting, const std::vector<Pass>& timed,
                         bool in_block, const std::vector<PackageCalls>& packages, bool by_kernel) {
  HostProfile host;
  host.modules = std::move(modules);
  host.times = module_times(counting, timed);
  host.chosen = median_pass(timed);
  const Pass* chosen = timed.empty() ? nullptr : &timed[static_cast<std::size_t>(host.chosen)];
  add_counted(counting, chosen, host);
  if (ran_compiled_code(counting)) {
    host = with_uncounted_regions(std::move(host), counting, in_block);
  } else if (chosen != nullptr && ran_compiled_code(*chosen)) {
    host = with_times_of_regions(std::move(host), *chosen, packages, by_kernel);
  } else if (chosen != nullptr) {
    auto others = other_ops(counting, *chosen, host.modules);
    std::ranges::move(others.ops, std::back_inserter(host.ops));
    if (others.note) add_note(host.notes, std::move(*others.note));
  }
  if (auto note = note_on_differentiated(counting, host.modules)) add_note(host.notes, std::move(*note));
  host = with_uncounted_packages(std::move(host), counting, packages);
  add_notes(host.notes, notes_on_counting(counting));
  return host;
}

}  // namespace roofprof
