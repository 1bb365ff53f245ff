#include "observe/op_observer.h"

#include <torch/csrc/autograd/graph_task.h>

#include <exception>

#include "observe/op_signature.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// Muting costs about as much as two nested records.
constexpr int kWorthMuting = 2;

// ---- autograd nodes

bool is_accumulation(std::int64_t sequence_number) { return sequence_number < 0; }

// The session that knows the node's forward op, and its module.
std::pair<std::shared_ptr<Session>, ModuleId> origin_of(ThreadState& state, const at::RecordFunction& fn) {
  const auto sequence = fn.seqNr();
  // AccumulateGrad has no forward op; the engine runs it right after the node that made the gradient.
  if (is_accumulation(sequence)) {
    if (!state.session && !state.between_nodes()) return {nullptr, kOutside};
    return {state.session ? state.session : state.last_session.lock(), state.last_node_module};
  }
  const auto number = static_cast<std::uint64_t>(sequence);
  if (state.session) {
    const auto module = fn.forwardThreadId() == at::RecordFunction::currentThreadId()
                            ? state.ring->find(number)
                            : state.session->module_of_node(fn.forwardThreadId(), number);
    if (!module) ++state.table->unknown_backward_nodes;
    return {state.session, module.value_or(kOutside)};
  }
  for (auto& session : Session::active_sessions()) {
    if (const auto module = session->module_of_node(fn.forwardThreadId(), number)) return {session, *module};
  }
  return {nullptr, kOutside};
}

// Compiled code without a range of its own.
void start_region(ThreadState& state, const void* record) {
  if (!state.ops.empty() && state.ops.back().closed) return;
  RunningOp running;
  running.record = record;
  running.exceptions = std::uncaught_exceptions();
  running.op = compiled_region();
  running.pending_mark = state.pending.size();
  running.key = {running.op, state.scopes.back().module, state.phase_now(), 0};
  running.described = false;
  state.ops.push_back(std::move(running));
  state.ops.back().start = now_ticks();
}

void start_node(ThreadState& state, const at::RecordFunction& fn) {
  state.claim_sequence_numbers();
  const auto [session, module] = origin_of(state, fn);
  state.last_node_task = -1;
  if (!session || !session->active()) return;
  if (!state.open(session, module, Phase::backward, ScopeKind::node, &fn)) return;
  state.last_node_module = module;
  state.last_node_task = torch::autograd::get_current_graph_task_id();
  if (is_compiled_backward(fn.name())) start_region(state, &fn);
}

// ---- ops

void mark_wrapped(ThreadState& state, const OpInfo* op) {
  for (std::size_t i = state.ops.size(); i-- > 0;) {
    if (state.ops[i].wraps && state.ops[i].op == op) {
      state.ops[i].wrapped = true;
      return;
    }
  }
}

// Hashes the inputs, and keeps what the cost will read of them where it is not known yet: they are gone when the op
// ends.
void read_inputs(ThreadState& state, const at::RecordFunction& fn, RunningOp& running) {
  try {
    const auto signature = signature_of(*running.op, fn.inputs());
    running.key.signature = signature.hash;
    running.wraps = signature.may_wrap;
    {
      const std::lock_guard guard(state.table->lock);
      if (state.table->inputs_of(running.key) != nullptr) return;
    }
    running.inputs = std::make_unique<ops::OpCall>(describe_inputs(*running.op, fn.inputs()));
  } catch (const std::exception& error) {
    // A tensor that does not tell its sizes: the call must still appear, as uncosted.
    running.described = false;
    const std::lock_guard guard(state.table->lock);
    state.table->failures.try_emplace(running.op->name, error.what());
  }
}

void start_op(ThreadState& state, const at::RecordFunction& fn) {
  if (!state.ops.empty() && state.ops.back().closed) {
    ++state.ops.back().nested;
    return;
  }
  OpInfo* op = op_info(fn);
  if (op == nullptr) return;

  RunningOp running;
  running.record = &fn;
  running.exceptions = std::uncaught_exceptions();
  running.op = op;
  running.pending_mark = state.pending.size();
  running.key = {op, state.scopes.back().module, state.phase_now(), 0};
  if (state.between_nodes()) {
    running.key.module = state.last_node_module;
    running.key.phase = Phase::backward;
  }
  if (op->kind == OpKind::counted) read_inputs(state, fn, running);
  if (op->kind == OpKind::region) running.described = false;
  running.closed = op->kind == OpKind::view || (op->kind == OpKind::counted && !running.wraps);
  if (state.wrapping_ops > 0) mark_wrapped(state, op);
  if (running.wraps) ++state.wrapping_ops;
  // Thread-local observers (torch.profiler) would lose what is muted.
  running.muted = running.closed && op->nested.load(std::memory_order_relaxed) >= kWorthMuting &&
                  state.session->may_mute() && !at::hasThreadLocalCallbacks();
  state.ops.push_back(std::move(running));
  if (state.ops.back().muted) at::enableRecordFunction(false);
  state.ops.back().start = now_ticks();
}

void count(ThreadState& state, BucketTable::Index index, Ticks ticks, const Work& work) {
  auto& bucket = (*state.table)[index];
  ++bucket.calls;
  bucket.ticks += ticks;
  if (bucket.per_call) bucket.work_sum += work;
}

// Whether the op itself is counted, now that it is known what it dispatched inside.
bool is_counted(const RunningOp& running) {
  if (std::uncaught_exceptions() > running.exceptions) return false;  // it raised: it did not do its work
  switch (running.op->kind) {
    case OpKind::counted:
      return !running.wrapped;
    case OpKind::view:
    case OpKind::region:
      return true;
    case OpKind::unknown:
      // To be listed as uncosted, unless what was counted inside can be its work: a kernel of its own that allocates
      // and fills its output through the dispatcher is still unknown.
      return !running.operations_inside && !(running.op->composite_explicit && running.bytes_inside);
    case OpKind::transparent:
      break;
  }
  return false;
}

// The bucket of an op that ends; `work` gets what this one call adds where the bucket sums call by call.
BucketTable::Index bucket_of(ThreadState& state, const at::RecordFunction* record, RunningOp& running, Work& work) {
  auto& table = *state.table;
  if (!running.described || record == nullptr) return table.add_uncosted(running.key);
  const auto& fn = *record;
  auto key = running.key;
  try {
    if (running.op->kind == OpKind::counted) key.signature = with_results(key.signature, fn.outputs());
    const auto found = table.find(key);
    if (found != BucketTable::kNone) return found;
    // Inputs of the same signature read alike, so those of an earlier call will do.
    const ops::OpCall* known = table.inputs_of(running.key);
    ops::OpCall call = running.inputs ? *running.inputs : known != nullptr ? *known : ops::OpCall{};
    describe_results(*running.op, fn.outputs(), call);
    if (running.inputs) table.keep_inputs(running.key, std::move(running.inputs));
    return table.describe(key, call, work);
  } catch (const std::exception& error) {
    table.failures.try_emplace(running.op->name, error.what());
    return table.add_uncosted(running.key);
  }
}

void finish_op(ThreadState& state, const at::RecordFunction* fn, Ticks now) {
  RunningOp running = std::move(state.ops.back());
  state.ops.pop_back();
  if (running.muted) at::enableRecordFunction(true);
  if (running.wraps) --state.wrapping_ops;
  if (running.nested > running.op->nested.load(std::memory_order_relaxed)) {
    running.op->nested.store(running.nested, std::memory_order_relaxed);
  }
  state.claim_sequence_numbers();

  const std::lock_guard guard(state.table->lock);
  if (is_counted(running)) {
    Work work;
    const auto index = bucket_of(state, fn, running, work);
    Ticks ticks = now - running.start;
    const bool looked_through = running.op->kind == OpKind::unknown || running.op->kind == OpKind::region;
    if (looked_through) {
      ticks -= running.inner_ticks;  // what stands inside (views, allocations) has its own buckets
    } else {
      state.pending.resize(running.pending_mark);
    }
    running.inner_ticks = looked_through ? running.inner_ticks + ticks : ticks;
    state.pending.push_back({index, ticks, work});
    const auto& bucket = (*state.table)[index];
    running.bytes_inside |= bucket.per_call || bucket.work.bytes() > 0;
    running.operations_inside |= bucket.per_call || bucket.work.operations != Work{}.operations;
  }
  if (!state.ops.empty()) {
    state.ops.back().bytes_inside |= running.bytes_inside;
    state.ops.back().operations_inside |= running.operations_inside;
    state.ops.back().inner_ticks += running.inner_ticks;
  }
  if (state.wrapping_ops > 0) return;
  for (const auto& op : state.pending) count(state, op.bucket, op.ticks, op.work);
  state.pending.clear();
}

// Ops inside a closed one were not put on the stack, nor were nodes but those of compiled code.
void finish_ops(ThreadState& state, const void* record, const at::RecordFunction* fn) {
  const Ticks now = now_ticks();
  for (std::size_t i = state.ops.size(); i-- > 0;) {
    if (state.ops[i].record != record) continue;
    while (state.ops.size() > i) finish_op(state, fn, now);
    break;
  }
}

void finish(const at::RecordFunction& fn, at::ObserverContext* /*context*/) {
  auto& state = thread_state();
  if (state.scopes.empty()) return;
  finish_ops(state, &fn, &fn);
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    state.close(&fn);
  } else if (state.scopes.back().token == &fn) {
    state.close(&fn);
  }
}

// Autograd's own threads have no scope between nodes; what the engine does there belongs to the last node.
bool open_between_nodes(ThreadState& state, const at::RecordFunction& fn) {
  // The engine's own ranges around each node are no ops, and begin before the node is known.
  if (!state.between_nodes() || op_info(fn) == nullptr) return false;
  const auto session = state.last_session.lock();
  return session && session->active() &&
         state.open(session, state.last_node_module, Phase::backward, ScopeKind::node, &fn);
}

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& fn) {
  auto& state = thread_state();
  if (state.is_paused()) return nullptr;
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    start_node(state, fn);
  } else if (state.scopes.empty() ? open_between_nodes(state, fn) : state.session->active()) {
    start_op(state, fn);
  }
  return nullptr;
}

// Only its address counts.
constexpr char kRegionToken = 0;

}  // namespace

void enter_region() {
  auto& state = thread_state();
  if (!state.scopes.empty() && state.session->active() && !state.is_paused()) start_region(state, &kRegionToken);
}

void leave_region() {
  auto& state = thread_state();
  if (!state.scopes.empty()) finish_ops(state, &kRegionToken, nullptr);
}

at::RecordFunctionCallback op_observer_callback() {
  return at::RecordFunctionCallback(start, finish)
      .needsInputs(true)
      .needsOutputs(true)
      .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION});
}

}  // namespace roofprof::observe
