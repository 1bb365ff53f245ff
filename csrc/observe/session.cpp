#include "observe/session.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "observe/active_passes.h"
#include "observe/collectives/collective_log.h"
#include "observe/memory/allocations.h"
#include "observe/memory/boundary_log.h"
#include "observe/memory/stable_places.h"
#include "observe/module_calls.h"
#include "observe/own_calls.h"
#include "observe/regions.h"
#include "observe/reuse/reuse_log.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// Each op follows its memory through all modules around it. Trees that are deeper would take minutes and gigabytes.
constexpr std::size_t kMostLevels = 256;

// `parents`: of each module of a tree, parents before children; empty: not known.
bool has_known_boundaries(const std::vector<ModuleId>& parents) {
  std::vector<std::size_t> levels;
  levels.reserve(parents.size());
  for (const auto parent : parents) levels.push_back(parent < 0 ? 1 : levels[index_of(parent)] + 1);
  return !levels.empty() && std::ranges::max(levels) <= kMostLevels;
}

// Returns where this thread's allocations go: to the pass that observes it.
Allocations::Place place_of_thread() {
  const auto& state = thread_state();
  if (!state.lent.memory || !state.is_observed() || state.is_paused()) return {};
  const bool inside = state.in_owned_work();
  return {state.lent.memory.get(), inside ? &state : nullptr,
          state.origin_of_memory(inside ? state.ops.back().key.owner : state.now(), inside && state.ops.back().owned)};
}

}  // namespace

struct Session::OpsOfTable {
  BucketTable* table;
  std::vector<std::int64_t> ops;  // the index into Pass::ops of each bucket; -1: it counts nothing
};

void BlockSteps::mark() {
  marked_.fetch_add(1, std::memory_order_relaxed);
  const auto logs = lender_.of_pass();
  if (logs.boundaries) logs.boundaries->step();
  if (logs.sample && thread_state().begins_part()) logs.sample->end_step();
}

void BlockSteps::leave() {
  if (between_.exchange(true, std::memory_order_relaxed)) return;
  left_.store(true, std::memory_order_relaxed);
  open_region(kBetweenSteps, this);
}

void BlockSteps::enter() {
  if (between_.exchange(false, std::memory_order_relaxed)) close_region(this);
}

void Session::refuse_nesting() {
  const auto& state = thread_state();
  if (!state.frames.empty() && state.session->active()) {
    throw LogicError(
        "roofprof: this thread is already inside a profiler's block or run; profilers do not nest, so end that one "
        "first");
  }
}

void Session::start(std::optional<ModuleId> base, LaunchMarker* marker) {
  refuse_nesting();
  auto& state = thread_state();
  if (active()) throw LogicError("roofprof: this profiler is already running; end its block or run first");
  state.abandon();
  pass_.fetch_add(1, std::memory_order_relaxed);
  auto& passes = ActivePasses::instance();
  {
    const std::lock_guard lock(passes.mutex);
    may_mute_ = passes.install();
    for (const auto& other : passes.sessions) other->may_mute_ = false;
    passes.sessions.push_back(shared_from_this());
  }
  seen.ops_elsewhere.start_pass();
  steps.start_pass();
  process_ = forks_so_far();
  lend_for_pass(marker);
  active_.store(true, std::memory_order_release);
  if (setup.modules) ++call_listeners;
  if (setup.scripts || setup.leaves_out_others) forks_ = std::make_unique<ScriptForks>(shared_from_this());
  if (setup.leaves_out_others) note_other_runs(*this);
  started_ = now_ticks();
  started_steady_ns_ = steady_ns();
  if (base) state.open(*this, *base, Phase::forward, FrameKind::base, this);
}

void Session::lend_for_pass(LaunchMarker* marker) {
  event_ids_.start_pass();
  Lent of_pass;
  of_pass.marker = marker;
  of_pass.reads = setup.parameter_reads.get();
  of_pass.event_ids = setup.keeps_events ? &event_ids_ : nullptr;
  of_pass.collectives = std::make_shared<CollectiveLog>();
  if (setup.measures_memory) {
    of_pass.memory = std::make_shared<Allocations>();
    of_pass.memory->begin(&place_of_thread, setup.owned_storages);
  }
  if (setup.tracks_reuse) {
    of_pass.reuse = std::make_shared<ReuseLog>();
    of_pass.places = std::make_shared<StablePlaces>();
    // TorchScript is observed in a copy of its code, which keeps values longer.
    const bool bounded = !setup.scripts && has_known_boundaries(setup.parents);
    if (bounded) of_pass.boundaries = std::make_shared<BoundaryLog>(setup.parents);
    if (setup.samples_traffic) of_pass.sample = std::make_shared<TrafficSample>(of_pass.boundaries);
  }
  lender.start_pass(std::move(of_pass));
}

Pass Session::stop() {
  const Ticks ended = now_ticks();
  auto& state = thread_state();
  const bool began_here = state.session.get() == this;
  if (began_here) state.close_all();
  const auto threads_inside = lender.lent_in_pass() - (began_here ? 0 : 1);
  if (active_.exchange(false, std::memory_order_acq_rel) && setup.modules) --call_listeners;
  const auto of_pass = lender.of_pass();
  if (of_pass.memory) of_pass.memory->end();
  forks_.reset();
  lender.forget_marker();
  auto& passes = ActivePasses::instance();
  {
    const std::lock_guard lock(passes.mutex);
    std::erase_if(passes.sessions, [this](const auto& session) { return session.get() == this; });
    if (passes.sessions.empty()) passes.remove();
  }
  of_pass.collectives->settle(ended);
  const double scale = ns_per_tick();
  Pass pass = collect(of_pass, scale);
  pass.threads_inside = std::max<std::int64_t>(threads_inside, 0);
  pass.ops_elsewhere = seen.ops_elsewhere.any();
  // TorchScript is observed in a copy of its code, which keeps values longer.
  if (of_pass.memory && !setup.scripts) pass.memory = of_pass.memory->result();
  pass.wall_ns = std::llround(static_cast<double>(ended - started_) * scale);
  return pass;
}

Pass Session::collect(const Lent& of_pass, double ns_per_tick) {
  const auto to_ns = [ns_per_tick](Ticks ticks) { return std::llround(static_cast<double>(ticks) * ns_per_tick); };
  Pass pass;
  std::unordered_map<BucketKey, std::size_t, BucketKeyHash> indices;
  std::map<Owner, ModuleClock> clocks;
  std::map<RegionId, RegionClock> region_clocks;
  std::vector<BytesLeftOut> left_out;  // of each of Pass::ops
  std::vector<OpsOfTable> tables;
  for (auto* table : lender.tables()) {
    const std::lock_guard table_lock(table->lock);
    auto& ops_of_buckets = tables.emplace_back(OpsOfTable{table, {}}).ops;
    for (const auto& bucket : table->buckets()) {
      ops_of_buckets.push_back(-1);
      if (bucket.calls == 0) continue;
      const auto [index, fresh] = indices.try_emplace(bucket.key, pass.ops.size());
      ops_of_buckets.back() = static_cast<std::int64_t>(index->second);
      if (fresh) {
        pass.ops.push_back(op_of(bucket));
        left_out.emplace_back();
      }
      const auto more = bucket.bytes_left_out();
      left_out[index->second].read_bytes += more.read_bytes;
      left_out[index->second].write_bytes += more.write_bytes;
      auto& op = pass.ops[index->second];
      op.costed &= bucket.cost.costed;
      op.calls += bucket.calls;
      op.work += bucket.total_work();
      op.time_ns = op.time_ns.value_or(0) + to_ns(bucket.ticks);
      if (steps.were_left() && regions.is_open(bucket.key.owner.region, kBetweenSteps)) {
        pass.outside_steps += bucket.total_work();
      } else if (steps.marked() > 0 && bucket.step == steps.marked()) {
        pass.outside_steps += bucket.work_of_step();
      }
    }
    table->add_clocks(clocks);
    for (const auto& [id, clock] : table->regions()) {
      region_clocks[id].calls += clock.calls;
      region_clocks[id].wall_ticks += clock.wall_ticks;
    }
    pass.unknown_backward_nodes += table->unknown_backward_nodes;
    pass.differentiated_whole.insert(table->differentiated_whole.begin(), table->differentiated_whole.end());
    pass.uncertain_places.insert(table->uncertain_places.begin(), table->uncertain_places.end());
    pass.failures.insert(table->failures.begin(), table->failures.end());
  }
  pass.graph_calls = graph_calls.take();
  if (setup.keeps_events) pass.events = std::make_shared<PassEvents>(take_events(tables, ns_per_tick));
  const auto op_of = [&](const CollectiveLog::Place& place) -> std::int64_t {
    const auto of = std::ranges::find(tables, place.first, &OpsOfTable::table);
    return of != tables.end() && place.second < of->ops.size() ? of->ops[place.second] : -1;
  };
  pass.collectives =
      of_pass.collectives->collect(op_of, [&](Ticks ticks) { return started_steady_ns_ + to_ns(ticks - started_); });
  if (of_pass.reuse) of_pass.reuse->collect(pass.ops, op_of);
  if (of_pass.boundaries) of_pass.boundaries->collect(pass.ops, op_of);
  pass.crossings_known = of_pass.boundaries != nullptr;
  if (of_pass.sample && std::ranges::any_of(left_out, &BytesLeftOut::any)) {
    scale_traffic(pass, left_out);
    pass.sampled = of_pass.sample->parts();
  }
  if (setup.leaves_out_others) {
    others.end_pass([&](ModuleId place) {
      std::int64_t calls = 0;
      auto clock = clocks.lower_bound({place, Phase::forward, kNoRegion});
      for (; clock != clocks.end() && clock->first.module == place && clock->first.phase == Phase::forward; ++clock) {
        calls += clock->second.calls;
      }
      return calls;
    });
  }
  for (const auto& [owner, clock] : clocks) {
    pass.clocks.push_back({owner, clock.calls, to_ns(clock.self_ticks)});
  }
  for (const auto& [id, clock] : region_clocks) pass.regions.push_back({id, clock.calls, to_ns(clock.wall_ticks)});
  return pass;
}

PassEvents Session::take_events(const std::vector<OpsOfTable>& tables, double ns_per_tick) {
  const auto to_ns = [&](Ticks ticks) { return std::llround(static_cast<double>(ticks - started_) * ns_per_tick); };
  PassEvents taken;
  std::unordered_map<const OpInfo*, std::int64_t> names;
  for (const auto& [of, ops] : tables) {
    auto& table = *of;
    const std::lock_guard table_lock(table.lock);
    const auto log = std::exchange(table.events, {});
    taken.left_out += log.left_out;
    table.events.events.reserve(log.events.size());  // the next pass is alike, and growing takes time in it
    for (const auto& timed : log.events) {
      Event event{.id = timed.id,
                  .kind = timed.kind,
                  .thread = static_cast<std::int64_t>(timed.thread),
                  .owner = timed.owner,
                  .begin_ns = to_ns(timed.begin),
                  .end_ns = to_ns(timed.end)};
      if (timed.kind == EventKind::op) {
        if (timed.bucket >= ops.size() || ops[timed.bucket] < 0) continue;  // begun since the pass was collected
        event.owner = table[timed.bucket].key.owner;
        event.bucket = ops[timed.bucket];
      }
      if (timed.op != nullptr) {
        const auto [name, fresh] = names.try_emplace(timed.op, std::ssize(taken.names));
        if (fresh) taken.names.push_back(timed.op->name);
        event.name = name->second;
      }
      taken.host.push_back(event);
    }
  }
  return taken;
}

}  // namespace roofprof::observe
