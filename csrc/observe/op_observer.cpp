#include "observe/op_observer.h"

#include <ATen/SavedTensorHooks.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>

#include "observe/autograd_ranges.h"
#include "observe/memory/allocations.h"
#include "observe/module_calls.h"
#include "observe/op_owner.h"
#include "observe/operators/op_signature.h"
#include "observe/operators/operands.h"
#include "observe/operators/tensor_format.h"
#include "observe/own_calls.h"
#include "observe/regions.h"
#include "observe/rule/counting_rule.h"
#include "observe/script_frames.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// Starts an op for compiled code, which torch reports without a record of an op. Inside itself the same code starts no
// further op, except with another owner: the code of a compiled step calls the backward, which is compiled, too.
void start_compiled(ThreadState& state, const at::RecordFunction& fn, OpInfo* code) {
  if (state.in_owned_work()) return;
  if (!state.ops.empty() && state.ops.back().op == code && state.ops.back().key.owner == state.now()) return;
  RunningOp running;
  running.record = &fn;
  running.exceptions = std::uncaught_exceptions();
  running.op = code;
  running.key = {.op = running.op, .owner = state.now()};
  running.described = false;
  running.logged = state.logs_traffic();
  running.event = state.next_event();
  running.operands_before = state.operands.size();
  state.mark(running);
  state.ops.push_back(std::move(running));
  state.ops.back().start = now_ticks();
}

// Hashes the inputs, and keeps what the cost will read of them where it is not known yet: they are gone when the op
// ends.
void read_inputs(ThreadState& state, c10::ArrayRef<const c10::IValue> inputs, RunningOp& running) {
  try {
    const auto signature = signature_of(*running.op, inputs, state.reads_by(running.key));
    running.key.signature = signature.hash;
    running.dispatch_path = signature.dispatch_path;
    if (state.lent.table->knows_inputs(running.key)) return;
    running.inputs = std::make_unique<ops::OpCall>(describe_inputs(*running.op, inputs));
  } catch (const std::exception& error) {
    // A tensor that does not tell its sizes: the call must still appear, as uncosted.
    running.described = false;
    const std::lock_guard guard(state.lent.table->lock);
    state.lent.table->failures.try_emplace(running.op->name, error.what());
  }
}

// Returns whether what is dispatched now is part of the work of the op that runs.
bool is_part_of_running_op(const ThreadState& state) {
  if (state.ops.empty()) return false;
  const auto outer = state.ops.back().nested_work;
  if (outer == NestedWork::transparent || outer == NestedWork::owned) return outer == NestedWork::owned;
  return is_part_of(outer, c10::GradMode::is_enabled(),
                    c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradFunctionality));
}

bool hooks_on_saved_tensors() {
  return c10::GradMode::is_enabled() && !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

// The dispatch path of the innermost wrapped op that runs; null: there is none.
const DispatchPath* innermost_wrapper(const ThreadState& state) {
  for (auto outer = state.ops.rbegin(); outer != state.ops.rend(); ++outer) {
    if (outer->dispatch_path.wrapped) return &outer->dispatch_path;
  }
  return nullptr;
}

// Applies the rule to an op that starts, whose dispatch path is known.
void decide(const ThreadState& state, RunningOp& running) {
  const auto& path = running.dispatch_path;
  running.only_shapes = path.fake && asks_for_shapes(path, innermost_wrapper(state));
  running.nested_work = nested_work(*running.op, path, running.only_shapes);
  if (owns_nested(running.nested_work) && hooks_on_saved_tensors()) {
    running.nested_work = with_saved_tensor_hooks(running.nested_work);
  }
  // Thread-local observers (torch.profiler) would lose what is muted.
  running.muted = is_worth_muting(running.nested_work, running.op->nested.load(std::memory_order_relaxed)) &&
                  !running.op->communicates && state.session->may_mute() && !at::hasThreadLocalCallbacks() &&
                  !running.watched;
}

void start_op(ThreadState& state, const at::RecordFunction& fn) {
  if (is_part_of_running_op(state)) {
    auto& outer = state.ops.back();
    ++outer.nested;
    // The operator that a functional collective calls inside names the group.
    if (outer.op->collective && outer.collective.group < 0) {
      begin_collective(*state.lent.collectives, fn, outer.collective, outer.start);
    }
    return;
  }
  if (state.lent.collectives->wants_poll()) state.lent.collectives->poll(now_ticks());
  OpInfo* op = op_info(fn);
  if (op == nullptr) {
    start_function(state, fn);
    return;
  }

  if (state.frames.back().kind == FrameKind::script) enter_script_op(state);
  RunningOp running;
  running.record = &fn;
  running.exceptions = std::uncaught_exceptions();
  running.op = op;
  running.key = {.op = op, .owner = state.now()};
  const auto inputs = inputs_of(fn, *op);
  if (const auto owner = owner_of_op(state, *op, inputs)) {
    running.owned = true;
    running.key.owner.module = *owner;
  }
  // The graph of compiled autograd has the backward of all modules.
  if (op->kind == OpKind::compiled && state.between_nodes()) running.key.owner.module = kOutside;
  if (op->ends_norm && state.frames.back().kind == FrameKind::norm) {
    state.frames.back().kind = FrameKind::module;
    state.frames.back().token = &fn;
    if (state.norm) state.norm->ends_with = &fn;
  }
  if (op->kind == OpKind::counted) {
    read_inputs(state, inputs, running);
  } else {
    running.dispatch_path = dispatch_path_of(*op, inputs, state.reads_by(running.key));
  }
  if (op->kind == OpKind::compiled) running.described = false;
  if (state.lent.memory) {
    running.watched =
        tell_inputs(*state.lent.memory, fn, *op, state.origin_of_memory(running.key.owner, running.owned));
  }
  running.key.without_data = running.dispatch_path.fake;
  decide(state, running);
  running.event = state.next_event();
  running.operands_before = state.operands.size();
  running.logged = state.logs_traffic();
  if (running.logged && op->kind == OpKind::counted) {
    add_inputs(*op, fn, state.operands);
    state.place_operands(running.operands_before);
  }
  if (op->collective) begin_collective(*state.lent.collectives, fn, running.collective, now_ticks());
  if (state.marks.wanted() && may_launch(*op, running.dispatch_path, running.only_shapes)) state.mark(running);
  state.ops.push_back(std::move(running));
  if (state.ops.back().muted) at::enableRecordFunction(false);
  state.ops.back().start = now_ticks();
}

// Memory for more than a constant.
bool makes_buffer(const at::RecordFunction& fn, const OpInfo& op) {
  if ((op.evidence & kBufferMade) == 0) return false;
  const auto* buffer = first_result(fn, op);
  if (buffer == nullptr) return false;
  return buffer->unsafeGetTensorImpl()->has_symbolic_sizes_strides() || buffer->numel() > 1;
}

// Tensor.numpy() and torch.from_numpy(), by what each dispatches.
void hand_over(ThreadState& state, const at::RecordFunction& fn, const OpInfo& op) {
  const auto* tensor = first_result(fn, op);
  if (tensor == nullptr) return;
  if (op.evidence == kReadOut) {
    state.bypass.numpy_exchange.exported(*tensor, state.ops.size());
    if (state.lent.boundaries && tensor->has_storage())
      state.lent.boundaries->read_by_others(tensor->storage().unsafeGetStorageImpl());
  } else {
    state.bypass.numpy_exchange.imported(*tensor, state.ops.size());
  }
}

// Returns the verdict on an op that ended, when it is known what the op dispatched inside.
Verdict verdict_on(const RunningOp& running) {
  const OpEnd end{.raised = std::uncaught_exceptions() > running.exceptions,
                  .declared = running.declared != BucketTable::kNone,
                  .only_shapes = running.only_shapes};
  return verdict(*running.op, running.dispatch_path, end, running.inside);
}

// The bucket of an op that ends; `work` gets that of this call where it had to be described.
BucketTable::Index bucket_of(ThreadState& state, const at::RecordFunction& record, RunningOp& running,
                             std::optional<Work>& work) {
  auto& table = *state.lent.table;
  std::string failure;
  if (running.described) {
    auto key = running.key;
    const auto results = results_of(record, *running.op);
    try {
      if (running.op->kind == OpKind::counted) key.signature = with_results(key.signature, results);
      key.without_data = key.without_data || hold_no_data(results);
      const auto found = table.find(key);
      if (found != BucketTable::kNone) return found;
      // Inputs of the same signature read alike, so those of an earlier call will do.
      const ops::OpCall* known = table.inputs_of(running.key);
      ops::OpCall call = running.inputs ? *running.inputs : known != nullptr ? *known : ops::OpCall{};
      describe_results(*running.op, results, call);
      const Costed costed = cost_of(*running.op, call);
      work = costed.work;
      const std::lock_guard guard(table.lock);
      if (running.inputs) table.keep_inputs(running.key, std::move(running.inputs));
      return table.add(key, running.key.signature, costed);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  const std::lock_guard guard(table.lock);
  if (!failure.empty()) table.failures.try_emplace(running.op->name, failure);
  return table.add_uncosted(running.key);
}

void finish_op(ThreadState& state, const at::RecordFunction& fn, Ticks now) {
  RunningOp running = std::move(state.ops.back());
  state.ops.pop_back();
  if (state.lent.memory && !state.in_owned_work()) {
    tell_results(*state.lent.memory, &state, &fn, *running.op,
                 state.origin_of_memory(running.key.owner, running.owned));
  }
  if (running.muted) at::enableRecordFunction(true);
  state.marks.end(running.mark);
  if (running.nested > running.op->nested.load(std::memory_order_relaxed)) {
    running.op->nested.store(running.nested, std::memory_order_relaxed);
  }
  state.claim_sequence_numbers(running.owned ? std::optional(running.key.owner.module) : std::nullopt);

  const auto found = verdict_on(running);
  if (found == Verdict::count || found == Verdict::list_uncosted) {
    static const Work kNone;
    std::optional<Work> described;
    const auto index = bucket_of(state, fn, running, described);
    const auto& work = described ? *described : kNone;
    const Ticks ticks = now - running.start;
    const bool left_out = state.lent.sample && !running.logged;
    // What was counted inside has its own buckets.
    state.count(index, ticks - running.inner_ticks, work, 1, left_out);
    running.inner_ticks = ticks;
    state.keep_op(running, index, now);
    if (running.logged) state.note_traffic(fn, running, index, work);
    if (running.collective.group >= 0) {
      state.lent.collectives->count(running.collective.call, running.collective.group, {state.lent.table, index});
    } else if (!running.op->communicates && state.lent.collectives->any_since(running.start)) {
      state.lent.collectives->computed(running.start, now);
    }
    const auto& bucket = (*state.lent.table)[index];
    if (bucket.per_call) {
      running.inside.add(work);
      running.inside.uncosted |= !bucket.cost.costed;
    } else {
      running.inside.add(bucket.inside);
    }
    if (!bucket.cost.costed) {  // listed as a whole
      state.bypass.numpy_exchange.forget_inside(state.ops.size());
      running.inside.evidence = 0;
    }
    if (running.inside.any()) state.bypass.evidence |= kWorkSeen;
    if (running.inside.operations) state.session->note_computed(running.dispatch_path.fake);
  } else if (found == Verdict::look_through) {
    state.keep_transparent(running, now);
  }
  state.operands.resize(running.operands_before);
  state.bypass.evidence |= running.op->evidence;
  if ((running.op->evidence & (kReadOut | kBroughtIn)) != 0) hand_over(state, fn, *running.op);
  if (state.ops.empty()) return;
  auto& outer = state.ops.back();
  outer.inside.add(running.inside);
  if (const auto seen = running.op->evidence; seen == kReadOut || makes_buffer(fn, *running.op)) {
    outer.inside.evidence |= seen;
  }
  outer.inner_ticks += running.inner_ticks;
}

// Ops that are part of another's work were not put on the stack, nor were nodes but those of compiled code.
void finish_ops(ThreadState& state, const at::RecordFunction& fn) {
  if (!state.ops.empty() && state.ops.back().collective.record == &fn) {
    follow_collective(state.lent.collectives, fn, state.ops.back().collective);
  }
  if (!state.ops.empty() && state.ops.back().watched && state.ops.back().record != &fn) {
    tell_inside(*state.lent.memory, &state, fn);
  }
  for (std::size_t i = state.ops.size(); i-- > 0;) {
    if (state.ops[i].record != &fn) continue;
    const Ticks now = now_ticks();
    while (state.ops.size() > i) finish_op(state, fn, now);
    break;
  }
}

// A pass that ended on another thread takes what is open here with it: the next one is not to count it.
void abandon_ended_pass(ThreadState& state) {
  if (!state.session->active() || state.session->pass() != state.pass) state.abandon();
}

void finish(const at::RecordFunction& fn, at::ObserverContext* /*context*/) {
  auto& state = thread_state();
  if (state.graph.is_open()) state.graph.end_range(fn);
  if (!state.frames.empty()) abandon_ended_pass(state);
  if (fn.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION) finish_script_frame(state, fn);
  if (state.frames.empty()) return;
  finish_ops(state, fn);
  if (fn.scope() == at::RecordScope::USER_SCOPE) {
    state.close(&fn);
    return;
  }
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    finish_node(state, fn);
    return;
  }
  if (!state.bypass.functions.empty()) finish_function(state, fn);
  if (state.frames.empty() || state.frames.back().token != &fn) return;
  leave_norm(state, fn);
  state.close(&fn);
}

// Autograd's own threads have no frame between nodes; what the engine does there belongs to the last node.
bool open_between_nodes(ThreadState& state, const at::RecordFunction& fn) {
  // The engine's own ranges around each node do not stand for ops, and they begin before the node is known.
  if (!state.between_nodes() || op_info(fn) == nullptr) return false;
  const auto session = state.backward.last_session.lock();
  return session && session->active() &&
         state.open(*session, state.backward.last_module, Phase::backward, FrameKind::node, &fn);
}

// Notes an op on a thread without a frame. It may still belong to the model, which can use a thread pool or a fork of
// TorchScript's.
void note_elsewhere(const at::RecordFunction& fn) {
  const OpInfo* op = op_info(fn);
  if (op != nullptr && op->kind == OpKind::counted &&
      (op->cost == nullptr || op->collective || ops::computes(*op->cost))) {
    note_op_elsewhere();
  }
}

// Starts a range that user code or torch itself put around a part of the program.
void start_range(ThreadState& state, const at::RecordFunction& fn) {
  if (!runs_package(fn.name())) return open_region(fn);
  if (!state.frames.empty()) start_compiled(state, fn, compiled_package());
}

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& fn) {
  auto& state = thread_state();
  if (!state.frames.empty()) abandon_ended_pass(state);
  if (state.is_paused()) return nullptr;
  if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    if (start_node(state, fn) && is_compiled_backward(fn.name())) start_compiled(state, fn, compiled_region());
  } else if (fn.scope() == at::RecordScope::USER_SCOPE) {
    start_range(state, fn);
  } else if (fn.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION) {
    start_script_frame(state, fn);
  } else if (!state.frames.empty() || open_between_nodes(state, fn) || open_forked_op(state, fn)) {
    start_op(state, fn);
  } else {
    note_elsewhere(fn);
  }
  if (state.graph.is_open()) state.graph.begin_range(fn);
  return nullptr;
}

}  // namespace

at::RecordFunctionCallback op_observer_callback() {
  return at::RecordFunctionCallback(start, finish)
      .needsInputs(true)
      .needsOutputs(true)
      .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE,
               at::RecordScope::TORCHSCRIPT_FUNCTION});
}

}  // namespace roofprof::observe
