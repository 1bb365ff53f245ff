#include "observe/script_scopes.h"

#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "observe/operators/op_info.h"
#include "observe/script/script_places.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// torch passes debug infos on to the threads that it starts work on. This kind is the one of torch's own tests.
const auto kForksInfo = c10::DebugInfoKind::TEST_INFO_2;

struct ForksInfo : c10::DebugInfoBase {
  std::weak_ptr<Session> session;
  std::atomic<ModuleId> place{kModel};  // of the method that was entered last, for forks that tell no module
};

// How many methods a thread of torch's pool may have begun that end on another one.
constexpr std::size_t kMaxFrames = 64;

bool is_current(const ScriptFrame& frame, const Session& session) {
  return frame.session == &session && frame.pass == session.pass();
}

void add_frame(ThreadState& state, ScriptFrame frame, const Session& session) {
  std::erase_if(state.script_frames, [&](const auto& old) { return !is_current(old, session); });
  if (state.script_frames.size() >= kMaxFrames) state.script_frames.erase(state.script_frames.begin());
  state.script_frames.push_back(std::move(frame));
  state.script_place = {};  // equal lines may mean another module now
}

ForksInfo* forks_info() { return dynamic_cast<ForksInfo*>(c10::ThreadLocalDebugInfo::get(kForksInfo)); }

std::shared_ptr<Session> session_of(const ThreadState& state) {
  if (!state.scopes.empty()) return state.session;
  const auto* info = forks_info();
  return info == nullptr ? nullptr : info->session.lock();
}

// The method that the interpreter was entered with for the op that runs now: it may continue one that waited on another
// thread.
ScriptFrame& frame_of(ThreadState& state, const Session& session, const std::string& line) {
  for (auto frame = state.script_frames.rbegin(); frame != state.script_frames.rend(); ++frame) {
    if (frame->line == line && is_current(*frame, session)) return *frame;
  }
  ScriptFrame frame;
  frame.session = &session;
  frame.pass = session.pass();
  frame.line = line;
  frame.module = session.scripts()->root_of(line);
  frame.method = line.substr(line.rfind("::") + 2);
  if (frame.module && is_forward(frame.method)) {
    frame.place = *frame.module;
  } else if (const auto* info = forks_info()) {
    frame.place = info->place.load(std::memory_order_relaxed);
  }
  add_frame(state, std::move(frame), session);
  return state.script_frames.back();
}

ModuleId place_of_op(ThreadState& state, const Session& session) {
  auto lines = torch::jit::currentModuleHierarchy();
  if (lines.empty()) return state.scopes.empty() ? kModel : state.scopes.back().module;
  auto& known = state.script_place;
  auto& frame = frame_of(state, session, lines.front());
  if (state.script_place_frame != frame.record) known = {};
  state.script_place_frame = frame.record;
  if (known.certain == lines.size() && known.lines == lines) return known.steps.back().place;
  return session.scripts()->find(frame, std::move(lines), known);
}

// The part of a method that the executor differentiates as a whole runs in an interpreter of its own.
void note_differentiated_whole(ThreadState& state, const at::RecordFunction& fn, ModuleId module) {
  if (state.scopes.empty() || std::strcmp(fn.name(), "<forward op>") != 0) return;
  const std::lock_guard guard(state.table->lock);
  state.table->differentiated_whole.insert(module);
}

}  // namespace

void start_script_frame(ThreadState& state, const at::RecordFunction& fn) {
  const auto session = session_of(state);
  if (!session || !session->active() || session->scripts() == nullptr || state.instrumented_copies > 0) return;
  if (!state.scopes.empty() && (state.pass != session->pass() || state.in_owned_work())) return;
  auto lines = torch::jit::currentModuleHierarchy();
  if (lines.size() != 1) return;  // called by the interpreter itself, which names it

  ScriptFrame frame;
  frame.record = &fn;
  frame.session = session.get();
  frame.pass = session->pass();
  frame.line = std::move(lines.front());
  frame.method = fn.name();
  const auto inputs = fn.inputs();
  const void* object = !inputs.empty() && inputs[0].isObject() ? inputs[0].toObject().get() : nullptr;
  frame.module = object == nullptr ? std::nullopt : session->scripts()->place_of(object, state.scopes);
  auto* info = forks_info();
  frame.place = !state.scopes.empty() ? state.scopes.back().module : info != nullptr ? info->place.load() : kModel;
  if (object == nullptr && !state.script_frames.empty() && is_current(state.script_frames.back(), *session)) {
    // A part of a method that the executor differentiates as a whole.
    frame.module = state.script_frames.back().module;
    frame.method = state.script_frames.back().method;
    frame.place = state.script_frames.back().place;
    note_differentiated_whole(state, fn, frame.place);
  }
  const bool is_call = frame.module && object != nullptr && is_forward(frame.method);
  const bool is_counted = !state.scopes.empty() && state.scopes.back().kind == ScopeKind::module && is_call &&
                          state.scopes.back().module == *frame.module;
  if (is_call) frame.place = *frame.module;
  const auto place = frame.place;
  add_frame(state, std::move(frame), *session);
  if (state.scopes.empty()) return;  // a fork: its ops open their scopes
  if (info != nullptr) info->place.store(place, std::memory_order_relaxed);
  const auto phase = state.now().phase;
  if (!state.open(*session, place, phase, ScopeKind::script, &fn)) return;
  if (is_call && !is_counted) {
    const std::lock_guard guard(state.table->lock);
    ++state.table->clock(place, phase).calls;
  }
}

void finish_script_frame(ThreadState& state, const at::RecordFunction& fn) {
  if (std::erase_if(state.script_frames, [&](const auto& frame) { return frame.record == &fn; }) > 0) {
    state.script_place = {};
  }
  if (!state.scopes.empty()) state.close(&fn);
}

void enter_script_op(ThreadState& state) {
  if (!torch::jit::in_torchscript_runtime()) return;
  state.move_scope(place_of_op(state, *state.session));
}

bool open_forked_op(ThreadState& state, const at::RecordFunction& fn) {
  if (!torch::jit::in_torchscript_runtime()) return false;
  const auto session = session_of(state);
  if (!session || !session->active() || session->scripts() == nullptr || op_info(fn) == nullptr) return false;
  return state.open(*session, place_of_op(state, *session), Phase::forward, ScopeKind::script, &fn);
}

ScriptForks::ScriptForks(const std::shared_ptr<Session>& session) : thread_(at::RecordFunction::currentThreadId()) {
  auto info = std::make_shared<ForksInfo>();
  info->session = session;
  c10::ThreadLocalDebugInfo::_push(kForksInfo, std::move(info));
}

ScriptForks::~ScriptForks() {
  if (at::RecordFunction::currentThreadId() != thread_) return;
  try {
    c10::ThreadLocalDebugInfo::_pop(kForksInfo);
  } catch (const c10::Error&) {
    // The block left a newer debug info open (that of torch's profiler): ours is below it and has no effect any more.
    return;
  }
}

}  // namespace roofprof::observe
