#include "observe/thread_state.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "observe/handed_over.h"
#include "observe/memory/boundary_log.h"
#include "observe/operators/known_address.h"
#include "observe/sequence_ring.h"
#include "observe/session.h"

namespace roofprof::observe {
namespace {

constinit thread_local bool has_ended = false;

// Makes a thread's state, and an empty one in its place at the thread's end: destructors that run later, such as that
// of a block with static storage, still ask for it.
class StateKeeper {
 public:
  explicit StateKeeper(std::byte* place) : state_(new(place) ThreadState) {
    c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO);  // torch's variable exists now, and ends after this
  }
  ~StateKeeper() {
    end_handovers();
    std::destroy_at(state_);
    new (state_) ThreadState;
    has_ended = true;
  }
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

 private:
  ThreadState* state_;
};

constinit thread_local ThreadState* state_here = nullptr;

[[gnu::noinline]] ThreadState& make_state() {
  alignas(ThreadState) thread_local std::array<std::byte, sizeof(ThreadState)> place;
  thread_local const StateKeeper keeper(place.data());
  state_here = std::launder(reinterpret_cast<ThreadState*>(place.data()));
  return *state_here;
}

}  // namespace

bool thread_has_ended() noexcept { return has_ended; }

ThreadState& thread_state() {
  auto* state = state_here;
  if (state == nullptr) [[unlikely]]
    state = &make_state();
  return known_address(*state);
}

void ThreadState::charge(Ticks now) {
  if (!frames.empty()) {
    const auto owner = owner_of(frames.back());
    lent.table->clock(owner).self_ticks += now - last_switch;
    if (lent.collectives->any_since(last_switch)) lent.collectives->ran(owner, last_switch, now);
  }
  last_switch = now;
}

bool ThreadState::open(Session& in, ModuleId module, Phase phase, FrameKind kind, const void* token) {
  std::shared_ptr<Session> kept;  // what is abandoned may be the last to hold `in`
  if (!frames.empty() && !is_observed()) {
    kept = session;
    abandon();
  }
  if (frames.empty()) {
    if (!in.active()) return false;
    last_call = last_call_of(in);
    session = in.shared_from_this();
    pass = in.pass();
    lent = in.lender.lend();
    marks.start(lent.marker, in.launches, *lent.table);
    region = region_handed_over(in);
    next_sequence = at::sequence_number::peek();
  } else if (session.get() != &in) {
    return false;
  }
  claim_sequence_numbers();
  {
    const std::lock_guard guard(lent.table->lock);
    charge(now_ticks());
    if (is_call(kind)) lent.table->count_call({module, phase, region});
  }
  Frame frame{.module = module,
              .phase = phase,
              .kind = kind,
              .token = token,
              .evidence_before = bypass.evidence,
              .exchanges_before = bypass.numpy_exchange.size(),
              .opened = last_switch,
              .event = lent.next_event()};
  bypass.evidence = 0;
  if (kind == FrameKind::node) {
    ++backward.nodes;
    if (lent.sample) lent.sample->backward_runs();
    frame.grad_mode = c10::GradMode::is_enabled();
    frame.graph_task = torch::autograd::get_current_graph_task_id();
  }
  // An op that owns its nested work also owns the launches in it, whatever it calls.
  if (marks.wanted() && !in_owned_work()) {
    frame.mark = marks.push({.owner = {module, phase, region}}, LaunchLevel::module);
  }
  if (lent.memory && is_call(kind)) {
    // The outer call of a module keeps what an inner call of the same module keeps, so only the outer one counts it.
    const bool is_inside =
        std::ranges::any_of(frames, [&](const Frame& open) { return is_call(open.kind) && open.module == module; });
    frame.memory = lent.memory->enter(module, phase == Phase::forward && !is_inside);
    if (module == kOptimizer) lent.memory->optimizer_begins();
  }
  frames.push_back(frame);
  if (is_call(kind)) begin_boundary(frames.back());
  return true;
}

bool ThreadState::is_outermost_call() const {
  return std::ranges::count_if(frames, [](const Frame& open) { return is_call(open.kind); }) == 1;
}

bool ThreadState::begins_part() {
  const auto region = std::ranges::find(frames, FrameKind::region, &Frame::kind);
  return region == frames.end() || !std::exchange(region->began_part, true);
}

void ThreadState::begin_boundary(Frame& frame) {
  const bool is_call_of_model = frame.module == kModel && frame.phase == Phase::forward;
  if (lent.sample && is_call_of_model && is_outermost_call() && begins_part()) lent.sample->begin_call();
  if (!lent.boundaries || (lent.sample && !lent.sample->is_logging())) return;
  lent.boundaries->enter(frame.module, frame.phase);
  frame.bounded = true;
}

void ThreadState::open_region(std::optional<ModuleId> row, RegionId id, const void* token) {
  const auto [module, phase, around] = now();
  if (!open(*session, row.value_or(module), phase, FrameKind::region, token)) return;
  auto& frame = frames.back();
  if (id != around) begin_region(frame, id);
  if (!row) return;
  if (lent.boundaries) lent.boundaries->add_row(*row, module);
  begin_boundary(frame);
  const std::lock_guard guard(lent.table->lock);
  lent.table->count_call(owner_of(frame));
}

void ThreadState::begin_region(Frame& frame, RegionId id) {
  frame.region_before = region;
  frame.opens_region = true;
  region = id;
  region_handover.begin(session, pass, id);
  if (frame.mark != 0) marks.move(frame.mark, {.owner = owner_of(frame)});
  const std::lock_guard guard(lent.table->lock);
  ++lent.table->regions()[id].calls;
}

void ThreadState::name_call(RegionId id) {
  auto& call = frames.back();
  {
    const std::lock_guard guard(lent.table->lock);
    --lent.table->clock(owner_of(call)).calls;
  }
  begin_region(call, id);
  const std::lock_guard guard(lent.table->lock);
  lent.table->count_call(owner_of(call));
}

void ThreadState::end_region(const Frame& frame) {
  if (!frame.opens_region) return;
  region_handover.end();
  const std::lock_guard guard(lent.table->lock);
  lent.table->regions()[region].wall_ticks += last_switch - frame.opened;
  region = frame.region_before;
}

void ThreadState::pop() {
  claim_sequence_numbers();
  {
    const std::lock_guard guard(lent.table->lock);
    charge(now_ticks());
  }
  if (lent.event_ids != nullptr) keep_frame(frames.back());
  // A compiler that works inside an op, such as a compiled backward, has the time of its pause alone.
  const bool in_pause = frames.size() > 1 && frames[frames.size() - 2].kind == FrameKind::pause;
  if (frames.back().kind == FrameKind::pause && !in_pause && !ops.empty()) {
    ops.back().inner_ticks += last_switch - frames.back().opened;
  }
  if (frames.back().kind == FrameKind::node) --backward.nodes;
  end_region(frames.back());
  if (frames.back().kind == FrameKind::module) {
    auto& last = frames.size() > 1 ? frames[frames.size() - 2].last : last_call;
    last = {frames.back().module, frames.back().is_certain};
  }
  if (lent.memory && is_call(frames.back().kind)) {
    lent.memory->leave(frames.back().memory);
    if (frames.back().module == kOptimizer) lent.memory->optimizer_ends();
  }
  if (lent.sample && frames.back().module == kOptimizer) lent.sample->optimizer_ran();
  if (frames.back().bounded) lent.boundaries->leave(frames.back().module, frames.back().phase);
  bypass.evidence |= frames.back().evidence_before;
  marks.end(frames.back().mark);
  frames.pop_back();
  if (frames.size() <= 1) bypass.numpy_exchange.forget(0);  // a block's own frame may be open for long
  if (frames.empty()) abandon();
}

LastCall ThreadState::last_call_of(const Session& in) const {
  return pass == in.pass() && backward.last_session.lock().get() == &in ? last_call : LastCall{};
}

void ThreadState::move_scope(ModuleId module) {
  if (frames.back().module == module) return;
  claim_sequence_numbers();
  {
    const std::lock_guard guard(lent.table->lock);
    charge(now_ticks());
    if (frames.back().opens_region) lent.table->regions()[region].wall_ticks += last_switch - frames.back().opened;
  }
  auto& frame = frames.back();
  if (lent.event_ids != nullptr) keep_frame(frame);
  frame.module = module;
  frame.opened = last_switch;
  frame.event = lent.next_event();
  if (frame.mark != 0) marks.move(frame.mark, {.owner = owner_of(frame)});
}

// Up to the last switch.
void ThreadState::keep_frame(const Frame& frame) {
  if (frame.kind == FrameKind::base || frame.kind == FrameKind::pause) return;
  // A region that got neither a path nor a row.
  const bool nameless = frame.kind == FrameKind::region && !frame.opens_region && frames.size() > 1 &&
                        frames[frames.size() - 2].module == frame.module;
  if (nameless) return;
  lent.keep({.id = frame.event,
             .kind = frame.kind == FrameKind::region ? EventKind::region : EventKind::module,
             .owner = owner_of(frame),
             .begin = frame.opened,
             .end = last_switch});
}

void ThreadState::abandon() {
  marks.end_all();
  forget_open();
  if (!session) return;
  session->lender.take_back(lent);
  lent = {};
  backward.last_session = session;
  session.reset();
}

std::shared_ptr<Session> ThreadState::leave_to_parent() {
  marks = {};
  forget_open();
  lent = {};  // the session has these too
  backward.last_session.reset();
  return std::exchange(session, nullptr);
}

void ThreadState::forget_open() {
  forget_ops();
  frames.clear();
  region_handover.end_all();
  region = kNoRegion;
  backward.nodes = 0;
  bypass.functions.clear();
  norm.reset();
  bypass.numpy_exchange.forget(0);
  bypass.evidence = 0;
}

void ThreadState::forget_ops() {
  for (const auto& op : ops) {
    if (op.muted) at::enableRecordFunction(true);
  }
  ops.clear();
  traffic.operands.clear();
}

std::optional<ModuleId> ThreadState::close(const void* token) {
  if (!is_observed()) abandon();
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (frames[i].token != token) continue;
    const auto module = frames[i].module;
    // Scopes above it lost their end to an exception.
    for (auto open = frames.size(); open > i; --open) pop();
    return module;
  }
  return std::nullopt;
}

void ThreadState::close_all() {
  forget_ops();
  for (auto open = frames.size(); open > 0; --open) pop();
}

void ThreadState::claim_sequence_numbers(std::optional<ModuleId> module) {
  const auto next = at::sequence_number::peek();
  if (next != next_sequence && !frames.empty()) {
    lent.ring->assign(next_sequence, next, module.value_or(frames.back().module));
  }
  next_sequence = next;
}

bool ThreadState::between_nodes() const {
  const int running = torch::autograd::get_current_graph_task_id();
  if (running == -1) return false;
  // Without a frame here, any model's backward may run: it is an observed one only if the last observed node was part
  // of it.
  if (frames.empty() && running != backward.last_task) return false;
  if (backward.nodes == 0) return true;
  // A node may start another backward (reentrant checkpointing).
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->kind == FrameKind::node) return frame->graph_task != running;
  }
  return false;
}

Phase ThreadState::phase_of_call() const {
  if (frames.empty()) return Phase::forward;
  if (backward.nodes > 0) return Phase::recompute;
  // An optimizer's closure runs the model.
  return frames.back().phase == Phase::optimizer ? Phase::forward : frames.back().phase;
}

bool ThreadState::is_observed() const { return !frames.empty() && session->active() && pass == session->pass(); }

Owner ThreadState::now() const {
  if (between_nodes()) return {backward.last_module, Phase::backward, region};
  return {frames.back().module, phase_now(), region};
}

MemoryOrigin ThreadState::origin_of_memory(const Owner& owner, bool owned) const {
  const auto is_of_model = [](const Frame& frame) {
    return is_call(frame.kind) && frame.module != kOutside && frame.module != kOptimizer;
  };
  return {owner, owned || std::ranges::any_of(frames, is_of_model), c10::GradMode::is_enabled()};
}

void ThreadState::count(BucketTable::Index index, Ticks ticks, const Work& work, std::int64_t calls, bool left_out) {
  const auto step = session->steps.marked();
  const std::lock_guard guard(lent.table->lock);
  auto& bucket = (*lent.table)[index];
  bucket.count(calls, ticks, work, step);
  if (left_out) bucket.leave_out(work);
}

Phase ThreadState::phase_now() const {
  const auto& top = frames.back();
  if (top.kind != FrameKind::node) return top.phase;
  // Grad mode is off in a backward that is not differentiated itself; checkpointing turns it on to run forward again.
  return c10::GradMode::is_enabled() && !top.grad_mode ? Phase::recompute : Phase::backward;
}

}  // namespace roofprof::observe
