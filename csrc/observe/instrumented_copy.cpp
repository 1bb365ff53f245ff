#include "observe/instrumented_copy.h"

#include <ATen/record_function.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>

#include "core/phrases.h"
#include "observe/operators/tensor_format.h"
#include "observe/script/script_calls.h"
#include "observe/script/script_places.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

// ---- the marks, as operators of the interpreter's own

// NOLINTBEGIN(bugprone-throwing-static-initialization): torch makes its own symbols like that
const auto kEnter = c10::Symbol::fromQualString("roofprof::enter_module");
const auto kLeave = c10::Symbol::fromQualString("roofprof::leave_module");
const auto kStart = c10::Symbol::fromQualString("roofprof::start_operator");
const auto kEnd = c10::Symbol::fromQualString("roofprof::end_operator");
// NOLINTEND(bugprone-throwing-static-initialization)

// The state of the copy that runs on this thread.
struct Run {
  std::shared_ptr<Session> session;
  const OnScriptCallEvent* on_call = nullptr;
  std::vector<ScriptCallEvent> open;
  std::vector<std::unique_ptr<at::RecordFunction>> operators;  // that run
};
thread_local Run* running = nullptr;

std::vector<c10::IValue> take_arguments(Stack& stack) {
  const auto count = static_cast<std::size_t>(torch::jit::pop(stack).toInt());
  auto arguments = torch::jit::pop(stack, count);
  return arguments;
}

// (module, inputs...)
void enter_module(Stack& stack) {
  const auto arguments = take_arguments(stack);
  if (running == nullptr) return;
  const void* object = arguments[0].toObject().get();
  auto& call = running->open.emplace_back();
  for (std::size_t i = 1; i < arguments.size(); ++i) call.shapes.inputs.add(arguments[i]);
  const auto place = running->session->setup.scripts->place_of(object, thread_state().frames);
  if (place) running->session->frames.enter(*place, object);
}

// (module, output)
void leave_module(Stack& stack) {
  const auto arguments = take_arguments(stack);
  if (running == nullptr || running->open.empty()) return;
  auto call = std::move(running->open.back());
  running->open.pop_back();
  const auto module = running->session->frames.leave(arguments[0].toObject().get());
  if (!module) return;
  call.module = *module;
  if (arguments.size() > 1) call.shapes.outputs.add(arguments[1]);
  if (*running->on_call) (*running->on_call)(call);
}

// (inputs...)
torch::jit::Operation start_operator(const Node* mark) {
  const auto op = torch::jit::findOperatorFor({mark->s(c10::attr::name), mark->s(c10::attr::overload_name)});
  return [op, count = mark->inputs().size()](Stack& stack) {  // the interpreter gives the number to others alone
    const auto inputs = torch::jit::pop(stack, count);
    if (running == nullptr) return;
    running->operators.push_back(std::make_unique<at::RecordFunction>(at::RecordScope::FUNCTION));
    running->operators.back()->before(std::cref(op->schema()), &inputs);
  };
}

// (outputs...)
void end_operator(Stack& stack) {
  auto outputs = take_arguments(stack);
  if (running == nullptr || running->operators.empty()) return;
  running->operators.back()->setOutputs(std::move(outputs));
  running->operators.pop_back();
}

void register_marks() {
  static const torch::jit::RegisterOperators marks({
      torch::jit::Operator("roofprof::enter_module(...) -> ()", enter_module, c10::AliasAnalysisKind::CONSERVATIVE),
      torch::jit::Operator("roofprof::leave_module(...) -> ()", leave_module, c10::AliasAnalysisKind::CONSERVATIVE),
      torch::jit::Operator("roofprof::start_operator(...) -> ()", start_operator, c10::AliasAnalysisKind::CONSERVATIVE),
      torch::jit::Operator("roofprof::end_operator(...) -> ()", end_operator, c10::AliasAnalysisKind::CONSERVATIVE),
  });
}

Node* insert_mark(c10::Symbol kind, Node* before, at::ArrayRef<Value*> inputs) {
  return before->owningGraph()->create(kind, inputs, 0)->insertBefore(before);
}

// ---- the code

// A call through an interface is bound to the module that is there.
void bind_interface(Node& node, const Graph& graph, const torch::jit::Module* self) {
  if (node.kind() != c10::prim::CallMethod || node.input(0)->type()->kind() != c10::TypeKind::InterfaceType) return;
  const auto module = module_behind(node.input(0), graph, self);
  const torch::jit::WithInsertPoint before(&node);
  node.replaceInput(0, node.owningGraph()->insertUncheckedCast(node.input(0), module->type()));
}

void inline_call(Node& node, torch::jit::GraphFunction& callee, bool marked) {
  if (node.kind() == c10::prim::CallFunction) node.removeInput(0);  // the function itself
  auto* next = node.next();
  auto* module = marked ? node.input(0) : nullptr;
  if (marked) insert_mark(kEnter, &node, node.inputs());
  const auto outputs = torch::jit::inlineCallTo(&node, &callee, callee.graph().get());
  if (!marked) return;
  std::vector<Value*> left = {module};
  left.insert(left.end(), outputs.begin(), outputs.end());
  insert_mark(kLeave, next, left);
}

// Marks an operator that works without a record, so that the marks make one.
void mark_operator(Node& node, const torch::jit::Operator& op) {
  auto* next = node.next();
  auto* start = insert_mark(kStart, &node, node.inputs());
  start->s_(c10::attr::name, op.schema().name());
  start->s_(c10::attr::overload_name, op.schema().overload_name());
  insert_mark(kEnd, next, node.outputs());
}

// `self`: whose method the graph is; null where its first input may be anything.
void inline_calls(Block& block, const Graph& graph, const torch::jit::Module* self) {
  for (auto* node = block.nodes().front(); node != block.return_node();) {
    auto* callee = function_called(*node, graph, self);
    if (callee != nullptr) bind_interface(*node, graph, self);
    const bool of_module = node->kind() == c10::prim::CallMethod && node->input(0)->type()->is_module();
    if (callee != nullptr) {
      auto* before = node->prev();
      inline_call(*node, *callee, of_module && is_forward(callee->name()));
      node = before->next();  // what was inlined may call in turn
      continue;
    }
    if (const auto* op = unseen_operator(*node)) {
      auto* next = node->next();
      mark_operator(*node, *op);
      node = next;
      continue;
    }
    for (auto* inner : node->blocks()) inline_calls(*inner, graph, self);
    if (node->hasAttribute(c10::attr::Subgraph)) {  // what is forked
      const auto forked = node->g(c10::attr::Subgraph)->copy();
      inline_calls(*forked->block(), *forked, nullptr);
      node->g_(c10::attr::Subgraph, forked);
    }
    node = node->next();
  }
}

torch::jit::Code marked_code(const torch::jit::Module& module, const std::string& method) {
  register_marks();
  const auto graph = module.get_method(method).graph()->copy();
  inline_calls(*graph->block(), *graph, &module);
  torch::jit::runRequiredPasses(graph);
  return torch::jit::Code(graph, method);
}

// Marks this thread as running a copy, until this is destroyed.
class Running {
 public:
  explicit Running(Run& run) : outer_(running) {
    running = &run;
    ++thread_state().script.instrumented_copies;
  }
  ~Running() {
    running = outer_;
    --thread_state().script.instrumented_copies;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Run* outer_;
};

}  // namespace

InstrumentedCopy::InstrumentedCopy(const torch::jit::Module& module, const std::string& method)
    : module_(module), schema_(module.get_method(method).function().getSchema()), code_(marked_code(module, method)) {}

c10::IValue InstrumentedCopy::run(const std::shared_ptr<Session>& session, std::vector<c10::IValue> arguments,
                                  const OnScriptCallEvent& on_call) const {
  Run run{session, &on_call, {}, {}};
  const Running now(run);
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  Stack stack = std::move(arguments);
  stack.insert(stack.begin(), module_._ivalue());
  schema_.checkAndNormalizeInputs(stack);
  torch::jit::InterpreterState interpreter(code_, [](const std::function<void()>& forked) { forked(); });
  interpreter.run(stack);
  return stack.back();
}

Note note_without_copy(const std::string& path, const std::string& reason) {
  const auto first_line = reason.substr(0, reason.find('\n'));
  return make_note("script-not-copied",
                   "TorchScript (" + display_path(path) +
                       "): its modules' calls are not known and its work is that of the optimised graph, because its "
                       "code could not be copied: " +
                       first_line,
                   {path});
}

}  // namespace roofprof::observe
