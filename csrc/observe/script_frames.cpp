#include "observe/script_frames.h"

#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "observe/active_passes.h"
#include "observe/handed_over.h"
#include "observe/operators/op_info.h"
#include "observe/own_calls.h"
#include "observe/script/script_calls.h"
#include "observe/script/script_places.h"
#include "observe/session.h"
#include "observe/thread_state.h"
#include "observe/unobserved_work.h"

namespace roofprof::observe {
namespace {

// This kind is the one of torch's own tests.
const auto kForksInfo = c10::DebugInfoKind::TEST_INFO_2;

struct ForksInfo : c10::DebugInfoBase {
  std::weak_ptr<Session> session;
  std::atomic<ModuleId> place{kModel};  // of the method that was entered last, for forks that tell no module
};

// The most methods remembered of a thread. A thread of torch's pool may begin a method that ends on another thread.
constexpr std::size_t kMaxFrames = 64;

bool is_current(const ScriptFrame& frame, const Session& session) {
  return frame.session == &session && frame.pass == session.pass();
}

void add_frame(ThreadState& state, ScriptFrame frame, const Session& session) {
  std::erase_if(state.script.frames, [&](const auto& old) { return !is_current(old, session); });
  if (state.script.frames.size() >= kMaxFrames) state.script.frames.erase(state.script.frames.begin());
  state.script.frames.push_back(std::move(frame));
  state.script.place = {};  // equal lines may mean another module now
}

ForksInfo* forks_info() { return dynamic_cast<ForksInfo*>(handed_over(kForksInfo)); }

std::shared_ptr<Session> session_of(const ThreadState& state) {
  return state.frames.empty() ? session_of_fork() : state.session;
}

// A TorchScript model that a run is calling may be called by others meanwhile.
void note_call_of_others(const at::RecordFunction& fn) {
  const auto inputs = fn.inputs();
  if (inputs.empty() || !inputs[0].isObject() || !is_forward(fn.name())) return;
  const void* object = inputs[0].toObject().get();
  for (const auto& session : active_sessions()) {
    if (session->setup.model == object && session->setup.leaves_out_others) {
      is_counted(*session, kModel, [] { return InModel::yes; });
    }
  }
}

// Returns the method that the interpreter was entered with for the op that runs now: it may continue one that waited on
// another thread.
ScriptFrame& frame_of(ThreadState& state, const Session& session, const std::string& line) {
  for (auto frame = state.script.frames.rbegin(); frame != state.script.frames.rend(); ++frame) {
    if (frame->line == line && is_current(*frame, session)) return *frame;
  }
  ScriptFrame frame;
  frame.session = &session;
  frame.pass = session.pass();
  frame.line = line;
  frame.module = session.setup.scripts->root_of(line);
  frame.method = line.substr(line.rfind("::") + 2);
  if (frame.module && is_forward(frame.method)) {
    frame.place = *frame.module;
  } else if (const auto* info = forks_info()) {
    frame.place = info->place.load(std::memory_order_relaxed);
  }
  add_frame(state, std::move(frame), session);
  return state.script.frames.back();
}

// Returns the method that this thread entered last, if it has not ended.
const ScriptFrame* innermost_frame(const ThreadState& state, const Session& session) {
  if (state.script.frames.empty() || !is_current(state.script.frames.back(), session)) return nullptr;
  return &state.script.frames.back();
}

// Frozen code names functions of modules that it was made of, which may be gone: there the interpreter cannot be asked
// where it is, and needs not be.
bool is_frozen_at(const Session& session, std::optional<ModuleId> module) {
  return module && session.setup.scripts->is_frozen(*module);
}

ModuleId place_of_op(ThreadState& state, const Session& session) {
  if (const auto* frame = innermost_frame(state, session)) {
    if (is_frozen_at(session, frame->module)) return frame->place;
  } else if (const auto* info = forks_info(); info != nullptr && session.setup.scripts->are_frozen()) {
    return info->place.load(std::memory_order_relaxed);
  }
  auto lines = torch::jit::currentModuleHierarchy();
  if (lines.empty()) return state.frames.empty() ? kModel : state.frames.back().module;
  auto& known = state.script.place;
  auto& frame = frame_of(state, session, lines.front());
  if (state.script.place_frame != frame.record) known = {};
  state.script.place_frame = frame.record;
  if (known.certain == lines.size() && known.lines == lines) return known.steps.back().place;
  return (frame.around ? *frame.around : *session.setup.scripts).find(frame, std::move(lines), known);
}

// A method that ran, and what was read in its code. What it is made of may be gone meanwhile.
struct KnownMethod {
  c10::weak_intrusive_ptr<c10::ivalue::Object> object{c10::intrusive_ptr<c10::ivalue::Object>()};
  std::weak_ptr<torch::jit::Graph> graph;
  bool frozen = false;  // its module is
  std::vector<UnseenNodes> unseen;
};

// The methods that ran on one thread lately. They are kept because reading a method's code can take longer than a call.
class KnownMethods {
 public:
  // Returns null where the record is not of a module's method, or the method has no code.
  const KnownMethod* of(const at::RecordFunction& fn) {
    const auto inputs = fn.inputs();
    if (inputs.empty() || !inputs[0].isModule()) return nullptr;
    const auto module = inputs[0].toModule();
    const auto method = module.find_method(fn.name());
    const auto* code = method ? torch::jit::tryToGraphFunction(method->function()) : nullptr;
    if (code == nullptr) return nullptr;
    const auto object = module._ivalue();
    const auto graph = code->graph();
    if (methods_.size() >= kMost) methods_.clear();
    auto& known = methods_[{object.get(), graph.get()}];
    if (known.object.lock() != object || known.graph.lock() != graph) {
      known = {c10::weak_intrusive_ptr<c10::ivalue::Object>(object), graph, was_frozen(module),
               unseen_nodes(module, *code)};
    }
    return &known;
  }

 private:
  static constexpr std::size_t kMost = 1024;

  std::map<std::pair<const void*, const void*>, KnownMethod> methods_;
};

// Returns the interpreter's name for the method that it is entered with, "" where it cannot be asked; empty where it
// calls the method itself, and names it with the ops in there. `method`: null for code that is not a method.
std::optional<std::string> line_of_entry(const ThreadState& state, const Session& session, const KnownMethod* method) {
  const auto* around = session.setup.scripts == nullptr ? nullptr : innermost_frame(state, session);
  if (around != nullptr && is_frozen_at(session, around->module)) {
    return method != nullptr ? std::nullopt : std::optional<std::string>("");
  }
  if (around == nullptr && method != nullptr && method->frozen) return "";
  if (session.setup.scripts == nullptr && method == nullptr) return std::nullopt;
  auto lines = torch::jit::currentModuleHierarchy();
  return lines.size() == 1 ? std::optional(std::move(lines.front())) : std::nullopt;
}

// Notes the module if the executor differentiates a part of its method as a whole: that part runs in another
// interpreter.
void note_differentiated_whole(ThreadState& state, const at::RecordFunction& fn, ModuleId module) {
  if (state.frames.empty() || std::strcmp(fn.name(), "<forward op>") != 0) return;
  const std::lock_guard guard(state.lent.table->lock);
  state.lent.table->differentiated_whole.insert(module);
}

// Lists what the method does without the dispatcher. The counting run's copy counts it; here it cannot be observed.
void note_unseen_nodes(ThreadState& state, const KnownMethod& method) {
  if (!state.is_observed()) return;
  const auto* scripts = state.session->setup.scripts.get();
  for (const auto& nodes : method.unseen) {
    const auto place =
        scripts == nullptr || nodes.module == nullptr ? std::nullopt : scripts->place_of(nodes.module, state.frames);
    note_unobserved(state, nodes.op, Unobserved::script, place.value_or(state.now().module), nodes.count);
  }
}

}  // namespace

std::shared_ptr<Session> session_of_fork() {
  const auto* info = forks_info();
  const auto session = info == nullptr ? nullptr : info->session.lock();
  return session && !session->is_of_parent() ? session : nullptr;
}

void start_script_frame(ThreadState& state, const at::RecordFunction& fn) {
  const auto session = session_of(state);
  if (!session) note_call_of_others(fn);
  if (!session || !session->active() || state.script.instrumented_copies > 0) return;
  if (!state.frames.empty() && (state.pass != session->pass() || state.in_owned_work())) return;
  if (!torch::jit::in_torchscript_runtime()) return;  // it is about to be entered
  thread_local KnownMethods known;
  const auto* method = known.of(fn);
  auto line = line_of_entry(state, *session, method);
  if (!line) return;
  if (method != nullptr) note_unseen_nodes(state, *method);
  if (session->setup.scripts == nullptr) return;

  ScriptFrame frame;
  frame.record = &fn;
  frame.session = session.get();
  frame.pass = session->pass();
  frame.line = std::move(*line);
  frame.method = fn.name();
  const auto inputs = fn.inputs();
  const void* object = !inputs.empty() && inputs[0].isObject() ? inputs[0].toObject().get() : nullptr;
  frame.module = object == nullptr ? std::nullopt : session->setup.scripts->place_of(object, state.frames);
  if (object != nullptr && !frame.module && inputs[0].isModule()) {
    frame.around = session->setup.scripts->around(inputs[0].toModule());
    if (frame.around) frame.module = frame.around->root();
  }
  auto* info = forks_info();
  frame.place = !state.frames.empty() ? state.frames.back().module : info != nullptr ? info->place.load() : kModel;
  if (object == nullptr && !state.script.frames.empty() && is_current(state.script.frames.back(), *session)) {
    // A part of a method that the executor differentiates as a whole.
    frame.module = state.script.frames.back().module;
    frame.around = state.script.frames.back().around;
    frame.method = state.script.frames.back().method;
    frame.place = state.script.frames.back().place;
    note_differentiated_whole(state, fn, frame.place);
  }
  const bool is_call = frame.module && !frame.around && object != nullptr && is_forward(frame.method);
  const bool is_counted = !state.frames.empty() && state.frames.back().kind == FrameKind::module && is_call &&
                          state.frames.back().module == *frame.module;
  if (is_call) frame.place = *frame.module;
  const auto place = frame.place;
  add_frame(state, std::move(frame), *session);
  if (state.frames.empty()) return;  // a fork: its ops open their frames
  if (info != nullptr) info->place.store(place, std::memory_order_relaxed);
  const auto phase = state.now().phase;
  if (!state.open(*session, place, phase, FrameKind::script, &fn)) return;
  if (is_call && !is_counted) {
    const std::lock_guard guard(state.lent.table->lock);
    state.lent.table->count_call({place, phase, state.region});
  }
}

void finish_script_frame(ThreadState& state, const at::RecordFunction& fn) {
  if (std::erase_if(state.script.frames, [&](const auto& frame) { return frame.record == &fn; }) > 0) {
    state.script.place = {};
  }
  if (!state.frames.empty()) state.close(&fn);
}

void enter_script_op(ThreadState& state) {
  if (!torch::jit::in_torchscript_runtime()) return;
  state.move_scope(place_of_op(state, *state.session));
}

bool open_forked_op(ThreadState& state, const at::RecordFunction& fn) {
  if (!torch::jit::in_torchscript_runtime()) return false;
  const auto session = session_of(state);
  if (!session || !session->active() || session->setup.scripts == nullptr || op_info(fn) == nullptr) return false;
  return state.open(*session, place_of_op(state, *session), Phase::forward, FrameKind::script, &fn);
}

ScriptForks::ScriptForks(const std::shared_ptr<Session>& session) {
  auto info = std::make_shared<ForksInfo>();
  info->session = session;
  info_ = info;
  hand_over(kForksInfo, std::move(info));
}

ScriptForks::~ScriptForks() { end_handover(kForksInfo, info_.get()); }

}  // namespace roofprof::observe
