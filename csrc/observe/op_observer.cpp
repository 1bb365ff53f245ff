#include "observe/op_observer.h"

#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "observe/autograd_ranges.h"
#include "observe/memory/allocations.h"
#include "observe/memory/boundary_log.h"
#include "observe/module_calls.h"
#include "observe/op_owner.h"
#include "observe/operators/leave_results.h"
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
  running.exceptions = state.exceptions.count();
  running.op = code;
  running.key = {.op = running.op, .owner = state.now()};
  running.described = false;
  running.logged = state.lent.logs_traffic();
  running.event = state.lent.next_event();
  running.operands_before = state.traffic.operands.size();
  if (state.marks.wanted()) running.mark = state.marks.push(running.key, LaunchLevel::op, running.event);
  state.ops.push_back(std::move(running));
  state.ops.back().start = now_ticks();
}

// The facts that were read of the inputs of an op that starts.
struct InputsRead {
  std::uint64_t signature = 0;
  DispatchPath dispatch_path;
  std::unique_ptr<ops::OpCall> inputs;  // where these are seen for the first time
  bool described = true;
  bool tells_results = false;
  BucketTable::Index bucket = BucketTable::kNone;
};

// Hashes the inputs, and finds the bucket if these are all that it takes. Else it keeps what the cost will read of
// them, where it is not known yet: they are gone when the op ends.
InputsRead read_inputs(ThreadState& state, c10::ArrayRef<const c10::IValue> inputs, const BucketKey& key) {
  InputsRead read;
  try {
    const auto signature = signature_of(*key.op, inputs, state.lent.reads_by(key));
    read.signature = signature.hash;
    read.dispatch_path = signature.dispatch_path;
    read.tells_results = signature.tells_results;
    if (read.tells_results) {
      read.bucket =
          state.lent.table->find({key.op, key.owner, /*without_data=*/false, without_results(read.signature)});
      if (read.bucket != BucketTable::kNone) [[likely]]
        return read;
    }
    if (state.lent.table->knows_inputs(*key.op, read.signature)) [[likely]]
      return read;
    read.inputs = std::make_unique<ops::OpCall>(describe_inputs(*key.op, inputs));
  } catch (const std::exception& error) {
    // A tensor that does not tell its sizes: the call must still appear, as uncosted.
    read.described = false;
    const std::lock_guard guard(state.lent.table->lock);
    state.lent.table->failures.try_emplace(key.op->name, error.what());
  }
  return read;
}

// Reads the inputs of an op that needs no signature.
InputsRead read_path(ThreadState& state, c10::ArrayRef<const c10::IValue> inputs, const BucketKey& key) {
  InputsRead read;
  read.dispatch_path = dispatch_path_of(*key.op, inputs, state.lent.reads_by(key));
  read.described = key.op->kind != OpKind::compiled;
  read.tells_results = key.op->kind == OpKind::view && !read.dispatch_path.wrapped && !read.dispatch_path.fake;
  if (read.tells_results) read.bucket = state.lent.table->find(key);
  return read;
}

// Returns whether something reads the results of an op that starts.
bool needs_results(const ThreadState& state, const RunningOp& running) {
  const OpInfo& op = *running.op;
  if (running.logged || state.lent.memory || op.communicates || (op.evidence & ~kViewMade) != 0) return true;
  if (op.ends_norm && state.norm) return true;
  return op.kind != OpKind::transparent && running.bucket == BucketTable::kNone;
}

// Returns whether what is dispatched now is part of the work of the op that runs.
bool is_part_of_running_op(const ThreadState& state) {
  if (state.ops.empty()) return false;
  const auto outer = state.ops.back().nested_work;
  if (outer == NestedWork::transparent || outer == NestedWork::owned) return outer == NestedWork::owned;
  return is_part_of(outer, c10::GradMode::is_enabled(),
                    c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradFunctionality));
}

bool hooks_on_saved_tensors(const ThreadState& state) {
  return !state.saved_tensor_hooks->stack.empty() && c10::GradMode::is_enabled();
}

// Returns the dispatch path of the innermost wrapped op that runs; null: there is none.
const DispatchPath* innermost_wrapper(const ThreadState& state) {
  for (auto outer = state.ops.rbegin(); outer != state.ops.rend(); ++outer) {
    if (outer->dispatch_path.wrapped) return &outer->dispatch_path;
  }
  return nullptr;
}

// The rule's decision on an op that starts.
struct Decision {
  NestedWork nested_work = NestedWork::transparent;
  bool only_shapes = false;
  bool muted = false;
};

// `watched`: the op reads storages that are watched.
Decision decide(const ThreadState& state, const OpInfo& op, const DispatchPath& path, bool watched) {
  Decision decision;
  decision.only_shapes = path.fake && asks_for_shapes(path, innermost_wrapper(state));
  decision.nested_work = nested_work(op, path, decision.only_shapes);
  if (owns_nested(decision.nested_work) && hooks_on_saved_tensors(state)) {
    decision.nested_work = with_saved_tensor_hooks(decision.nested_work);
  }
  // Thread-local observers (torch.profiler) would lose what is muted.
  decision.muted = is_worth_muting(decision.nested_work, op.nested.load(std::memory_order_relaxed)) &&
                   !op.communicates && state.session->may_mute() && !at::hasThreadLocalCallbacks() && !watched;
  return decision;
}

void start_op(ThreadState& state, const at::RecordFunction& fn) {
  if (is_part_of_running_op(state)) {
    auto& outer = state.ops.back();
    ++outer.nested;
    // The operator that a functional collective calls inside names the group.
    if (outer.op->collective && outer.collective.group < 0) {
      begin_collective(*state.lent.collectives, fn, outer.collective, outer.start);
    }
    if (!outer.watched && !outer.op->collective) leave_results(fn);
    return;
  }
  if (state.lent.collectives->wants_poll()) state.lent.collectives->poll(now_ticks());
  OpInfo* op = op_info(fn);
  if (op == nullptr) {
    start_function(state, fn);
    return;
  }

  if (state.frames.back().kind == FrameKind::script) enter_script_op(state);
  BucketKey key{.op = op, .owner = state.now()};
  const auto inputs = inputs_of(fn, *op);
  const auto owner = owner_of_op(state, *op, inputs);
  if (owner) key.owner.module = *owner;
  // The graph of compiled autograd has the backward of all modules.
  if (op->kind == OpKind::compiled && state.between_nodes()) key.owner.module = kOutside;
  if (op->ends_norm && state.frames.back().kind == FrameKind::norm) {
    state.frames.back().kind = FrameKind::module;
    state.frames.back().token = &fn;
    if (state.norm) state.norm->ends_with = &fn;
  }
  InputsRead read = op->kind == OpKind::counted ? read_inputs(state, inputs, key) : read_path(state, inputs, key);
  key.signature = read.signature;
  const bool watched = state.lent.memory &&
                       tell_inputs(*state.lent.memory, fn, *op, state.origin_of_memory(key.owner, owner.has_value()));
  key.without_data = read.dispatch_path.fake;
  const auto decision = decide(state, *op, read.dispatch_path, watched);
  const auto operands_before = state.traffic.operands.size();
  const bool logged = state.lent.logs_traffic();
  if (logged && op->kind == OpKind::counted) state.traffic.add_inputs(state.lent, *op, fn);

  auto& running = state.ops.emplace_back();
  running.record = &fn;
  running.op = op;
  running.key = key;
  running.nested_work = decision.nested_work;
  running.muted = decision.muted;
  running.only_shapes = decision.only_shapes;
  running.owned = owner.has_value();
  running.dispatch_path = read.dispatch_path;
  running.exceptions = state.exceptions.count();
  running.inputs = std::move(read.inputs);
  running.described = read.described;
  running.tells_results = read.tells_results;
  running.bucket = read.bucket;
  running.logged = logged;
  running.watched = watched;
  running.event = state.lent.next_event();
  running.operands_before = operands_before;
  if (op->collective) begin_collective(*state.lent.collectives, fn, running.collective, now_ticks());
  if (state.marks.wanted() && may_launch(*op, read.dispatch_path, decision.only_shapes)) {
    running.mark = state.marks.push(running.key, LaunchLevel::op, running.event);
  }
  if (!needs_results(state, running)) leave_results(fn);
  if (decision.muted) at::enableRecordFunction(false);
  running.start = now_ticks();
}

// Returns whether the op makes memory for more than a constant.
bool makes_buffer(const at::RecordFunction& fn, const OpInfo& op) {
  if ((op.evidence & kBufferMade) == 0) return false;
  const auto* buffer = first_result(fn, op);
  if (buffer == nullptr) return false;
  return buffer->unsafeGetTensorImpl()->has_symbolic_sizes_strides() || buffer->numel() > 1;
}

// Tensor.numpy() and torch.from_numpy(), by what each dispatches. `depth`: of the ops around it.
void hand_over(ThreadState& state, const at::RecordFunction& fn, const OpInfo& op, std::size_t depth) {
  const auto* tensor = first_result(fn, op);
  if (tensor == nullptr) return;
  if (op.evidence == kReadOut) {
    state.bypass.numpy_exchange.exported(*tensor, depth);
    if (state.lent.boundaries && tensor->has_storage())
      state.lent.boundaries->read_by_others(tensor->storage().unsafeGetStorageImpl());
  } else {
    state.bypass.numpy_exchange.imported(*tensor, depth);
  }
}

// Returns the verdict on an op that ended, when it is known what the op dispatched inside.
Verdict verdict_on(const ThreadState& state, const RunningOp& running) {
  const OpEnd end{.raised = state.exceptions.count() > running.exceptions,
                  .declared = running.declared != BucketTable::kNone,
                  .only_shapes = running.only_shapes};
  return verdict(*running.op, running.dispatch_path, end, running.inside);
}

// Adds to the key of an op that ends what its results say.
void complete_key(BucketKey& key, const RunningOp& running, c10::ArrayRef<c10::IValue> results) {
  const bool counted = running.op->kind == OpKind::counted;
  if (running.tells_results) {
    if (counted) key.signature = without_results(key.signature);
    return;
  }
  if (counted) key.signature = with_results(key.signature, results);
  key.without_data = key.without_data || hold_no_data(results);
}

// Returns the bucket of an op that ends, if the table knows one by its key.
BucketTable::Index known_bucket(const BucketTable& table, const at::RecordFunction& record, const RunningOp& running) {
  if (running.bucket != BucketTable::kNone || !running.described) return running.bucket;
  auto key = running.key;
  const auto results = results_of(record, *running.op);
  try {
    complete_key(key, running, results);
  } catch (const std::exception&) {
    return BucketTable::kNone;  // new_bucket() tells why
  }
  return table.find(key);
}

// Adds the bucket of an op that ends, which the table does not know. `work` gets that of this call where it is
// described. What reads symbolic sizes or costs may run code that dispatches ops: the op may have another address then.
BucketTable::Index new_bucket(BucketTable& table, const at::RecordFunction& record, RunningOp& running,
                              std::optional<Work>& work) {
  const OpInfo& op = *running.op;
  const BucketKey of_inputs = running.key;
  std::string failure;
  if (running.described) {
    auto key = of_inputs;
    const auto inputs = std::move(running.inputs);
    const auto results = results_of(record, op);
    try {
      complete_key(key, running, results);
      // Inputs of the same signature read alike, so those of an earlier call will do.
      const ops::OpCall* known = table.inputs_of(op, of_inputs.signature);
      ops::OpCall call = inputs ? *inputs : known != nullptr ? *known : ops::OpCall{};
      describe_results(op, results, call);
      const Costed costed = cost_of(op, call);
      work = costed.work;
      const std::lock_guard guard(table.lock);
      if (inputs) table.keep_inputs(op, of_inputs.signature, *inputs);
      return table.add(key, of_inputs.signature, costed);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  const std::lock_guard guard(table.lock);
  if (!failure.empty()) table.failures.try_emplace(op.name, failure);
  return table.add_uncosted(of_inputs);
}

// Counts an op that ended in its bucket, and adds it to what it did inside; `work` where the bucket sums call by call.
void count_op(ThreadState& state, const at::RecordFunction& fn, RunningOp& running, BucketTable::Index index,
              const Work& work, Ticks now) {
  const Ticks ticks = now - running.start;
  const bool left_out = state.lent.sample && !running.logged;
  // The ops inside have their time in their own buckets.
  state.count(index, ticks - running.inner_ticks, work, 1, left_out);
  running.inner_ticks = ticks;
  keep_op(state.lent, running, index, now);
  if (running.logged) state.traffic.note(state.lent, fn, running, index, work);
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
    state.bypass.numpy_exchange.forget_inside(state.ops.size() - 1);
    running.inside.evidence = 0;
  }
  if (running.inside.any()) state.bypass.evidence |= kWorkSeen;
  if (running.inside.operations) {
    auto& seen = state.session->seen;
    (running.dispatch_path.fake ? seen.computed_without_data : seen.computed_with_data).set();
  }
}

// Does the same where the bucket is not known. Returns false where the thread's ops are gone: code that ran meanwhile
// has ended the pass.
[[gnu::noinline]] bool count_new_op(ThreadState& state, const at::RecordFunction& fn, std::size_t depth, Ticks now) {
  std::optional<Work> described;
  const auto index = new_bucket(*state.lent.table, fn, state.ops[depth], described);
  if (state.ops.size() <= depth) return false;
  count_op(state, fn, state.ops[depth], index, described.value_or(Work{}), now);
  return true;
}

constexpr Work kNoWork;

// Ends the innermost op, which stands on that many others, but leaves it on the stack.
void end_op(ThreadState& state, const at::RecordFunction& fn, std::size_t depth, Ticks now) {
  auto& ending = state.ops[depth];
  const OpInfo& op = *ending.op;
  if (state.lent.memory && (depth == 0 || !owns_nested(state.ops[depth - 1].nested_work))) {
    tell_results(*state.lent.memory, &state, &fn, op, state.origin_of_memory(ending.key.owner, ending.owned));
  }
  if (ending.muted) at::enableRecordFunction(true);
  state.marks.end(ending.mark);
  if (ending.nested > op.nested.load(std::memory_order_relaxed)) {
    ending.op->nested.store(ending.nested, std::memory_order_relaxed);
  }
  state.claim_sequence_numbers(ending.owned ? std::optional(ending.key.owner.module) : std::nullopt);

  const auto found = verdict_on(state, ending);
  if (found == Verdict::count || found == Verdict::list_uncosted) {
    const auto index = known_bucket(*state.lent.table, fn, ending);
    if (index != BucketTable::kNone) [[likely]] {
      count_op(state, fn, ending, index, kNoWork, now);
    } else if (!count_new_op(state, fn, depth, now)) {
      return;
    }
  } else if (found == Verdict::look_through) {
    keep_transparent(state.lent, ending, now);
  }
  const auto& running = state.ops[depth];
  if (state.traffic.operands.size() > running.operands_before) state.traffic.operands.resize(running.operands_before);
  state.bypass.evidence |= op.evidence;
  if ((op.evidence & (kReadOut | kBroughtIn)) != 0) hand_over(state, fn, op, depth);
  if (depth == 0) return;
  auto& outer = state.ops[depth - 1];
  outer.inside.add(running.inside);
  if (const auto seen = op.evidence; seen == kReadOut || makes_buffer(fn, op)) outer.inside.evidence |= seen;
  outer.inner_ticks += running.inner_ticks;
}

[[gnu::noinline]] void drop_ops(std::vector<RunningOp>& ops, std::size_t depth) {
  while (ops.size() > depth) ops.pop_back();
}

// Ends the innermost op. It stays on the stack until all is done, then it is gone whatever happened.
void finish_op(ThreadState& state, const at::RecordFunction& fn, Ticks now) {
  auto& ops = state.ops;
  const std::size_t depth = ops.size() - 1;
  try {
    end_op(state, fn, depth, now);
  } catch (...) {
    drop_ops(ops, depth);
    throw;
  }
  if (ops.size() == depth + 1 && !ops.back().inputs) [[likely]] {
    ops.pop_back();
  } else {
    drop_ops(ops, depth);
  }
}

// Ops that are part of another's work were not put on the stack, nor were nodes but those of compiled code.
void finish_ops(ThreadState& state, const at::RecordFunction& fn) {
  if (state.ops.empty()) return;
  const auto& innermost = state.ops.back();
  if (innermost.collective.record == &fn) follow_collective(state.lent.collectives, fn, innermost.collective);
  if (innermost.watched && innermost.record != &fn) tell_inside(*state.lent.memory, &state, fn);
  for (std::size_t i = state.ops.size(); i-- > 0;) {
    if (state.ops[i].record != &fn) continue;
    const Ticks now = now_ticks();
    while (state.ops.size() > i) finish_op(state, fn, now);
    break;
  }
}

// Drops what is open here from a pass that ended on another thread: the next pass is not to count it.
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
    leave_results(fn);
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
