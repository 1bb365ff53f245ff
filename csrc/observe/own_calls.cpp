#include "observe/own_calls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/active_passes.h"
#include "observe/script_frames.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// A thread that a run's call started, and where that has ended, of which model it was.
struct StartedBy {
  std::weak_ptr<const OwnCallData> call;
  const void* model = nullptr;
};

struct OwnCalls {
  ForkMutex mutex;
  std::vector<std::shared_ptr<const OwnCallData>> running;
  std::unordered_map<pthread_t, StartedBy> threads;
};

OwnCalls& own_calls();

// Threads of others read these without a lock, to learn if there is anything to look up.
constinit std::atomic<int> calls_running{0};
constinit std::atomic<bool> threads_started{false};
constinit std::atomic<std::uint64_t> calls_made{0};

// Starts of passes so far, and the latest of them that an op of nobody's ran after.
constinit std::atomic<std::uint64_t> starts{0};
constinit std::atomic<std::uint64_t> op_of_nobody_after{0};

constinit thread_local const Session* run_here = nullptr;
constinit thread_local const OwnCallData* made_here = nullptr;

// Forgets all calls and threads in a child: the parent's calls are not under way there, and its threads are not there.
void leave_calls() {
  own_calls().running.clear();
  own_calls().threads.clear();
  calls_running = 0;
  threads_started = false;
  run_here = nullptr;
  made_here = nullptr;
}

OwnCalls& own_calls() {
  static auto* instance = [] {
    handle_forks({.in_child = &leave_calls});
    return new OwnCalls;  // outlives every thread
  }();
  return *instance;
}

struct StartedWork {
  std::shared_ptr<const OwnCallData> call;  // null: it has ended, or there is none
  const void* model = nullptr;              // of one that has ended
};

// Returns the work that this thread was started for. It is asked of threads that make no call themselves.
StartedWork work_of_started_thread() {
  if (!threads_started.load(std::memory_order_acquire)) return {};
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  const auto found = calls.threads.find(pthread_self());
  if (found == calls.threads.end()) return {};
  return {found->second.call.lock(), found->second.model};
}

bool same_model(const OwnCallData& call, const Session& session) {
  return call.session.get() != &session && call.model != nullptr && call.model == session.setup.model;
}

void begin_call(const std::shared_ptr<const OwnCallData>& call) {
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  calls.running.push_back(call);
  ++calls_running;
}

void end_call(const std::shared_ptr<const OwnCallData>& call) {
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  if (std::erase(calls.running, call) > 0) --calls_running;  // not in a child that was forked in the call
}

// Deeper calls than these are not kept.
struct AnnouncedCalls {
  struct Announced {
    const void* module;
    CallMark mark;
  };
  std::array<Announced, 48> calls;
  std::size_t depth;

  auto kept() const { return std::span(calls).first(std::min(depth, calls.size())); }
};
constinit thread_local AnnouncedCalls announced{};

}  // namespace

OwnThread::OwnThread(const Session& session) : outer_(std::exchange(run_here, &session)) {}
OwnThread::~OwnThread() { run_here = outer_; }

OwnCall::OwnCall(Session& session, bool of_model)
    : call_(std::make_shared<OwnCallData>(
          OwnCallData{session.shared_from_this(), of_model ? session.setup.model : nullptr, ++calls_made})),
      outer_(made_here) {
  made_here = call_.get();
  begin_call(call_);
  for (const auto& other : active_sessions()) {
    if (same_model(*call_, *other)) other->others.note_run(call_->number);
  }
}

OwnCall::~OwnCall() {
  made_here = outer_;
  end_call(call_);
}

OwnBlock::OwnBlock(const std::shared_ptr<Session>& session)
    : call_(std::make_shared<OwnCallData>(OwnCallData{session, nullptr, ++calls_made})) {
  begin_call(call_);
}
OwnBlock::~OwnBlock() { end_call(call_); }

std::shared_ptr<const OwnCallData> call_of_this_thread() {
  if (calls_running.load(std::memory_order_relaxed) > 0) {
    const auto& state = thread_state();
    const auto* observing = state.is_observed() ? state.session.get() : nullptr;
    auto& calls = own_calls();
    const std::lock_guard lock(calls.mutex);
    const auto here = std::ranges::find_if(calls.running, [&](const auto& call) {
      return made_here != nullptr ? call.get() == made_here : call->session.get() == observing;
    });
    if (here != calls.running.end()) return *here;
  }
  return work_of_started_thread().call;
}

WorksFor::WorksFor(const std::shared_ptr<const OwnCallData>& call) {
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  calls.threads[pthread_self()] = {call, call->session->setup.model};
  threads_started.store(true, std::memory_order_release);
}

WorksFor::~WorksFor() {
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  calls.threads.erase(pthread_self());
}

Caller caller_for(const Session& session) {
  if (run_here != nullptr) return run_here == &session ? Caller::own : Caller::another;
  if (const auto forked = session_of_fork()) return forked.get() == &session ? Caller::own : Caller::another;
  const auto work = work_of_started_thread();
  if (work.call) return work.call->session.get() == &session ? Caller::own : Caller::another;
  return work.model != nullptr && work.model == session.setup.model ? Caller::earlier : Caller::unknown;
}

void note_op_elsewhere() {
  if (made_here != nullptr) return made_here->session->seen.ops_elsewhere.note();
  if (run_here != nullptr) return;
  if (const auto forked = session_of_fork()) return forked->seen.ops_elsewhere.note();
  const auto work = work_of_started_thread();
  work.call ? work.call->session->seen.ops_elsewhere.note() : OpsElsewhere::note_of_nobody();
}

void OpsElsewhere::start_pass() {
  own_.clear();
  start_ = starts.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool OpsElsewhere::any() const { return own_.is_set() || op_of_nobody_after.load(std::memory_order_relaxed) >= start_; }

void OpsElsewhere::note_of_nobody() {
  const auto now = starts.load(std::memory_order_relaxed);
  // Read first: other people's threads come by here with each op.
  if (op_of_nobody_after.load(std::memory_order_relaxed) < now) {
    op_of_nobody_after.store(now, std::memory_order_relaxed);
  }
}

bool is_counted(Session& session, ModuleId place, const std::function<InModel()>& in_model) {
  const auto caller = caller_for(session);
  if (caller == Caller::own) return true;
  if (caller == Caller::another) return false;
  if (!session.setup.leaves_out_others) return true;
  const auto inside = place == kModel ? InModel::yes : caller == Caller::unknown ? in_model() : InModel::no;
  if (inside != InModel::no) {
    session.others.note(place, inside == InModel::perhaps);
    return false;
  }
  if (is_called_by_other_runs(session)) {
    session.others.note_unclear();
    return false;
  }
  session.others.note_helper();
  return true;
}

void note_other_runs(Session& session) {
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  for (const auto& call : calls.running) {
    if (same_model(*call, session)) session.others.note_run(call->number);
  }
}

bool is_called_by_other_runs(const Session& session) {
  auto& calls = own_calls();
  const std::lock_guard lock(calls.mutex);
  return std::ranges::any_of(calls.running, [&](const auto& call) { return same_model(*call, session); });
}

ThreadStart::ThreadStart() {
  const bool in_call = calls_running.load(std::memory_order_relaxed) > 0;
  if (!in_call && !threads_started.load(std::memory_order_relaxed)) return;
  call_ = call_of_this_thread();
  lock_ = std::unique_lock(own_calls().mutex);
}

void ThreadStart::started(pthread_t thread) {
  if (!lock_) return;
  auto& threads = own_calls().threads;
  if (call_ == nullptr) {
    threads.erase(thread);  // its number was another thread's before
    return;
  }
  threads[thread] = {call_, call_->session->setup.model};
  threads_started.store(true, std::memory_order_release);
}

void announce_call(const void* module, CallMark mark) noexcept {
  if (announced.depth < announced.calls.size()) announced.calls[announced.depth] = {module, mark};
  ++announced.depth;
}

void announced_call_ends() noexcept {
  if (announced.depth > 0) --announced.depth;
}

bool is_announced_around(const void* module) noexcept {
  return std::ranges::any_of(announced.kept(), [&](const auto& call) { return call.module == module; });
}

bool is_announced_around(const void* module, CallMark mark) noexcept {
  // One place has one name in a program, but for functions that several sources have a copy of.
  const auto same_place = [&](CallMark other) {
    return other.file != nullptr && other.line == mark.line && std::strcmp(other.file, mark.file) == 0;
  };
  return mark.file != nullptr && std::ranges::any_of(announced.kept(), [&](const auto& call) {
           return call.module == module && same_place(call.mark);
         });
}

}  // namespace roofprof::observe
