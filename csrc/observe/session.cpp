#include "observe/session.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "observe/module_calls.h"
#include "observe/own_calls.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// Starts of passes so far, and the latest of them that an op ran elsewhere after.
std::atomic<std::uint64_t> starts{0};
std::atomic<std::uint64_t> op_elsewhere_after{0};

// Threads whose backward may still come.
constexpr std::size_t kMaxRings = 256;

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

void Session::refuse_nesting() {
  const auto& state = thread_state();
  if (!state.frames.empty() && state.session->active()) {
    throw std::logic_error(
        "roofprof: this thread is already inside a profiler's block or run; profilers do not nest, so end that one "
        "first");
  }
}

void Session::start(std::optional<ModuleId> base, LaunchMarker* marker) {
  refuse_nesting();
  auto& state = thread_state();
  if (active()) throw std::logic_error("roofprof: this profiler is already running; end its block or run first");
  state.abandon();
  {
    const std::lock_guard lock(mutex_);
    for (auto& table : tables_) {
      const std::lock_guard table_lock(table->lock);
      table->start_pass();
    }
  }
  event_ids_.start_pass();
  pass_.fetch_add(1, std::memory_order_relaxed);
  auto& passes = ActivePasses::instance();
  {
    const std::lock_guard lock(passes.mutex);
    may_mute_ = passes.install();
    for (const auto& other : passes.sessions) other->may_mute_ = false;
    passes.sessions.push_back(shared_from_this());
  }
  marker_.store(marker, std::memory_order_relaxed);
  own_op_elsewhere_.store(false, std::memory_order_relaxed);
  steps_marked_.store(0, std::memory_order_relaxed);
  between_steps_.store(false, std::memory_order_relaxed);
  left_steps_.store(false, std::memory_order_relaxed);
  process_ = forks_so_far();
  start_ = starts.fetch_add(1, std::memory_order_relaxed) + 1;
  lent_before_ = lent_tables();
  auto memory = setup.measures_memory ? std::make_shared<Allocations>() : nullptr;
  if (memory) memory->begin(&place_of_thread, setup.owned_storages);
  {
    const std::lock_guard lock(mutex_);  // a worker of the pass before may be asking for it
    memory_ = std::move(memory);
    collectives_ = std::make_shared<CollectiveLog>();
    reuse_ = setup.tracks_reuse ? std::make_shared<ReuseLog>() : nullptr;
    places_ = setup.tracks_reuse ? std::make_shared<StablePlaces>() : nullptr;
    // TorchScript is observed in a copy of its code, which keeps values longer.
    const bool bounded = setup.tracks_reuse && !setup.scripts && has_known_boundaries(setup.parents);
    boundaries_ = bounded ? std::make_shared<BoundaryLog>(setup.parents) : nullptr;
    const bool samples = setup.tracks_reuse && setup.samples_traffic;
    sample_ = samples ? std::make_shared<TrafficSample>(boundaries_) : nullptr;
  }
  active_.store(true, std::memory_order_release);
  if (setup.modules) ++call_listeners;
  if (setup.scripts || setup.leaves_out_others) forks_ = std::make_unique<ScriptForks>(shared_from_this());
  if (setup.leaves_out_others) note_other_runs(*this);
  started_ = now_ticks();
  started_steady_ns_ = steady_ns();
  if (base) state.open(*this, *base, Phase::forward, FrameKind::base, this);
}

Pass Session::stop() {
  const Ticks ended = now_ticks();
  auto& state = thread_state();
  const bool began_here = state.session.get() == this;
  if (began_here) {
    state.abandon_ops();
    state.close_all();
  }
  const auto threads_inside = lent_tables() - lent_before_ - (began_here ? 0 : 1);
  if (active_.exchange(false, std::memory_order_acq_rel) && setup.modules) --call_listeners;
  const auto memory = this->memory();
  if (memory) memory->end();
  forks_.reset();
  marker_.store(nullptr, std::memory_order_relaxed);
  auto& passes = ActivePasses::instance();
  {
    const std::lock_guard lock(passes.mutex);
    std::erase_if(passes.sessions, [this](const auto& session) { return session.get() == this; });
    if (passes.sessions.empty()) passes.remove();
  }
  collectives()->settle(ended);
  const double scale = ns_per_tick();
  Pass pass = collect(scale);
  pass.threads_inside = std::max<std::int64_t>(threads_inside, 0);
  pass.ops_elsewhere = own_op_elsewhere_ || op_elsewhere_after.load(std::memory_order_relaxed) >= start_;
  // TorchScript is observed in a copy of its code, which keeps values longer.
  if (memory && !setup.scripts) pass.memory = memory->result();
  pass.wall_ns = std::llround(static_cast<double>(ended - started_) * scale);
  return pass;
}

Pass Session::collect(double ns_per_tick) {
  const auto to_ns = [ns_per_tick](Ticks ticks) { return std::llround(static_cast<double>(ticks) * ns_per_tick); };
  Pass pass;
  std::unordered_map<BucketKey, std::size_t, BucketKeyHash> indices;
  std::map<Owner, ModuleClock> clocks;
  std::map<RegionId, RegionClock> regions;
  std::vector<BytesLeftOut> left_out;  // of each of Pass::ops
  const auto steps = steps_marked();
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<std::int64_t>> ops_by_table;  // Pass::ops of each table's buckets
  for (auto& table : tables_) {
    const std::lock_guard table_lock(table->lock);
    auto& ops_of_buckets = ops_by_table.emplace_back();
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
      if (left_steps_ && regions_.is_open(bucket.key.owner.region, kBetweenSteps)) {
        pass.outside_steps += bucket.total_work();
      } else if (steps > 0 && bucket.step == steps) {
        pass.outside_steps += bucket.work_of_step();
      }
    }
    table->add_clocks(clocks);
    for (const auto& [id, clock] : table->regions()) {
      regions[id].calls += clock.calls;
      regions[id].wall_ticks += clock.wall_ticks;
    }
    pass.unknown_backward_nodes += table->unknown_backward_nodes;
    pass.differentiated_whole.insert(table->differentiated_whole.begin(), table->differentiated_whole.end());
    pass.uncertain_places.insert(table->uncertain_places.begin(), table->uncertain_places.end());
    pass.failures.insert(table->failures.begin(), table->failures.end());
  }
  pass.graph_calls = std::exchange(graph_calls_, {});
  if (setup.keeps_events) pass.events = std::make_shared<PassEvents>(take_events(ops_by_table, ns_per_tick));
  const auto op_of = [&](const CollectiveLog::Place& place) -> std::int64_t {
    const auto table = std::ranges::find(tables_, place.first, &std::unique_ptr<BucketTable>::get);
    const auto& ops = ops_by_table[static_cast<std::size_t>(table - tables_.begin())];
    return place.second < ops.size() ? ops[place.second] : -1;
  };
  pass.collectives =
      collectives_->collect(op_of, [&](Ticks ticks) { return started_steady_ns_ + to_ns(ticks - started_); });
  if (reuse_) reuse_->collect(pass.ops, op_of);
  if (boundaries_) boundaries_->collect(pass.ops, op_of);
  pass.crossings_known = boundaries_ != nullptr;
  if (sample_ && std::ranges::any_of(left_out, &BytesLeftOut::any)) {
    scale_traffic(pass, left_out);
    pass.sampled = sample_->parts();
  }
  if (setup.leaves_out_others) {
    others_.end_pass([&](ModuleId place) {
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
  for (const auto& [id, clock] : regions) pass.regions.push_back({id, clock.calls, to_ns(clock.wall_ticks)});
  return pass;
}

PassEvents Session::take_events(const std::vector<std::vector<std::int64_t>>& ops, double ns_per_tick) {
  const auto to_ns = [&](Ticks ticks) { return std::llround(static_cast<double>(ticks - started_) * ns_per_tick); };
  PassEvents taken;
  std::unordered_map<const OpInfo*, std::int64_t> names;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    auto& table = *tables_[i];
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
        if (timed.bucket >= ops[i].size() || ops[i][timed.bucket] < 0) continue;  // begun since the pass was collected
        event.owner = table[timed.bucket].key.owner;
        event.bucket = ops[i][timed.bucket];
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

bool Session::enter(ModuleId module, const void* token, FrameKind kind) {
  if (!active()) return false;
  auto& state = thread_state();
  if (!state.frames.empty() && state.session.get() != this) return false;
  return state.open(*this, module, state.phase_of_call(), kind, token);
}

// Other threads' optimizers are none of this profile's business.
bool Session::observes_this_thread() const {
  const auto& state = thread_state();
  return active() && !state.frames.empty() && state.session.get() == this;
}

bool Session::enter_optimizer(const void* token) {
  return observes_this_thread() && thread_state().open(*this, kOptimizer, Phase::optimizer, FrameKind::module, token);
}

bool Session::enter_closure(const void* token) {
  return observes_this_thread() && thread_state().open(*this, kOutside, Phase::forward, FrameKind::base, token);
}

void Session::pause() {
  if (!observes_this_thread()) return;
  thread_state().open(*this, kOutside, Phase::forward, FrameKind::pause, &active_);
}

void Session::resume() { leave(&active_); }

std::optional<ModuleId> Session::leave(const void* token) {
  auto& state = thread_state();
  return state.session.get() == this ? state.close(token) : std::nullopt;
}

void Session::note_outputs(const void* token, const std::vector<const void*>& blocks) {
  const auto& state = thread_state();
  if (state.session.get() != this || !state.lent.memory || state.frames.back().token != token) return;
  state.lent.memory->returns(state.frames.back().memory, blocks);
}

Evidence Session::evidence_inside(const void* token) const {
  const auto& state = thread_state();
  if (state.session.get() != this || state.frames.back().token != token || state.in_owned_work()) return kWorkSeen;
  return state.bypass.evidence;
}

std::vector<MemoryRange> Session::imported(const void* token) const {
  const auto& state = thread_state();
  if (state.bypass.numpy_exchange.size() == 0 || state.session.get() != this) return {};
  if (state.frames.back().token != token || state.in_owned_work()) return {};
  return state.bypass.numpy_exchange.results(state.frames.back().exchanges_before);
}

void Session::forget_imported(const void* token) {
  auto& state = thread_state();
  if (state.session.get() != this || state.frames.back().token != token) return;
  state.bypass.numpy_exchange.forget_results(state.frames.back().exchanges_before);
}

void Session::note_unobserved_module(std::string_view type, Unobserved kind) {
  auto& state = thread_state();
  if (state.session.get() != this) return;
  state.note_unobserved(type, kind);
  state.bypass.numpy_exchange.forget(state.frames.back().exchanges_before);
}

void Session::mark_step() {
  steps_marked_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (boundaries_) boundaries_->step();
  if (sample_ && thread_state().begins_part()) sample_->end_step();
}

void Session::leave_steps() {
  if (between_steps_.exchange(true, std::memory_order_relaxed)) return;
  left_steps_.store(true, std::memory_order_relaxed);
  open_region(kBetweenSteps, &between_steps_);
}

void Session::enter_steps() {
  if (between_steps_.exchange(false, std::memory_order_relaxed)) close_region(&between_steps_);
}

std::shared_ptr<Allocations> Session::memory() {
  const std::lock_guard lock(mutex_);
  return memory_;
}

std::shared_ptr<CollectiveLog> Session::collectives() {
  const std::lock_guard lock(mutex_);
  return collectives_;
}

Lent Session::lend() {
  const std::lock_guard lock(mutex_);
  if (free_tables_.empty()) free_tables_.push_back(tables_.emplace_back(std::make_unique<BucketTable>()).get());
  auto* table = free_tables_.back();
  free_tables_.pop_back();
  return {.table = table,
          .ring = ring_of_this_thread(),
          .marker = marker_.load(std::memory_order_relaxed),
          .reads = setup.parameter_reads.get(),
          .event_ids = setup.keeps_events ? &event_ids_ : nullptr,
          .memory = memory_,
          .collectives = collectives_,
          .reuse = reuse_,
          .places = places_,
          .boundaries = boundaries_,
          .sample = sample_};
}

std::int64_t Session::lent_tables() {
  const std::lock_guard lock(mutex_);
  return std::ssize(tables_) - std::ssize(free_tables_);
}

void Session::take_back(const Lent& lent) {
  const std::lock_guard lock(mutex_);
  free_tables_.push_back(lent.table);
}

std::shared_ptr<SequenceRing> Session::ring_of_this_thread() {
  auto& ring = rings_[at::RecordFunction::currentThreadId()];
  if (!ring) ring = std::make_shared<SequenceRing>();
  auto result = ring;
  if (rings_.size() > kMaxRings) rings_.erase(rings_.begin());
  return result;
}

std::optional<ModuleId> Session::module_of_node(std::uint64_t forward_thread, std::uint64_t sequence_number) {
  const std::lock_guard lock(mutex_);
  const auto ring = rings_.find(forward_thread);
  return ring == rings_.end() ? std::nullopt : ring->second->find(sequence_number);
}

void Session::note_op_elsewhere() {
  const auto now = starts.load(std::memory_order_relaxed);
  // Read first: other people's threads come by here with each op.
  if (op_elsewhere_after.load(std::memory_order_relaxed) < now) {
    op_elsewhere_after.store(now, std::memory_order_relaxed);
  }
}

}  // namespace roofprof::observe
