#include "observe/autograd_ranges.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "observe/active_passes.h"
#include "observe/memory/allocations.h"
#include "observe/rule/counting_rule.h"
#include "observe/sequence_ring.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

bool is_accumulation(std::int64_t sequence_number) { return sequence_number < 0; }

// Returns the session that knows the node's forward op, and its module.
std::pair<std::shared_ptr<Session>, ModuleId> origin_of(ThreadState& state, const at::RecordFunction& fn) {
  const auto sequence = fn.seqNr();
  // AccumulateGrad has no forward op; the engine runs it right after the node that made the gradient.
  if (is_accumulation(sequence)) {
    if (!state.session && !state.between_nodes()) return {nullptr, kOutside};
    return {state.session ? state.session : state.backward.last_session.lock(), state.backward.last_module};
  }
  const auto number = static_cast<std::uint64_t>(sequence);
  if (state.session) {
    const auto module = fn.forwardThreadId() == at::RecordFunction::currentThreadId()
                            ? state.lent.ring->find(number)
                            : state.session->lender.module_of_node(fn.forwardThreadId(), number);
    if (!module) {
      const std::lock_guard guard(state.lent.table->lock);  // the pass may be collected meanwhile
      ++state.lent.table->unknown_backward_nodes;
    }
    return {state.session, module.value_or(kOutside)};
  }
  for (const auto& session : active_sessions()) {
    if (const auto module = session->lender.module_of_node(fn.forwardThreadId(), number)) return {session, *module};
  }
  return {nullptr, kOutside};
}

// Notes which memory is the gradient of the leaf that the node accumulates into: that which is there, else what the
// node is given, because it becomes the gradient. A hook may take it away before the node ends.
void note_gradient(Allocations& memory, const at::RecordFunction& fn) {
  const auto node = torch::autograd::get_current_node();
  const auto* accumulation = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
  if (accumulation == nullptr || !accumulation->variable.defined()) return;
  const auto note = [&](const at::Tensor& gradient) {
    if (gradient.defined() && gradient.has_storage()) memory.is_gradient(gradient.storage());
  };
  if (accumulation->variable.grad().defined()) return note(accumulation->variable.grad());
  for (const auto& given : fn.inputs()) {
    if (given.isTensor()) note(given.toTensor());
  }
}

}  // namespace

bool start_node(ThreadState& state, const at::RecordFunction& fn) {
  state.claim_sequence_numbers();
  const auto [session, module] = origin_of(state, fn);
  state.backward.last_task = -1;
  if (!session || !session->active()) return false;
  if (!state.open(*session, module, Phase::backward, FrameKind::node, &fn)) return false;
  if (state.lent.memory && is_accumulation(fn.seqNr())) note_gradient(*state.lent.memory, fn);
  state.backward.last_module = module;
  state.backward.last_task = torch::autograd::get_current_graph_task_id();
  return true;
}

void finish_node(ThreadState& state, const at::RecordFunction& fn) {
  // The backward of a Python autograd.Function; nodes of torch's own end in a digit.
  const bool of_python = std::string_view(fn.name()).ends_with("Backward");
  if (of_python && state.frames.back().token == &fn && function_bypasses(state.bypass.evidence)) {
    note_unobserved(state, fn.name(), Unobserved::function);
  }
  state.close(&fn);
}

void start_function(ThreadState& state, const at::RecordFunction& fn) {
  // Besides the ranges of autograd's engine, only they come with the sequence number of a future node.
  if (fn.seqNr() < 0 || std::string_view(fn.name()).starts_with("autograd::")) return;
  state.bypass.functions.push_back({&fn, state.bypass.evidence, state.bypass.numpy_exchange.size()});
  state.bypass.evidence = 0;
}

void finish_function(ThreadState& state, const at::RecordFunction& fn) {
  if (state.bypass.functions.back().record != &fn) return;
  const bool raised = std::uncaught_exceptions() > 0;
  if (!raised && function_bypasses(state.bypass.evidence)) {
    note_unobserved(state, fn.name(), Unobserved::function);
    state.bypass.numpy_exchange.forget(state.bypass.functions.back().exchanges_before);
  }
  state.bypass.evidence |= state.bypass.functions.back().evidence_before;
  state.bypass.functions.pop_back();
}

}  // namespace roofprof::observe
