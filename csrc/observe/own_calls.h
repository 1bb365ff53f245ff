#pragma once
// Knows who calls. A run makes its calls on one thread, a block is on one, and what these start on other threads works
// for them. Every other call of the same model is another caller's.

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "core/forks.h"
#include "core/profile.h"

namespace roofprof::observe {

class Session;

// The call or block of a run that is under way.
struct OwnCallData {
  std::shared_ptr<Session> session;
  const void* model = nullptr;  // null: no call of a model, but of code around it
  std::uint64_t number = 0;     // of all calls of all runs
};

// Marks a run's thread, from before its first call to after its last: the profiler's work between them is the run's,
// too.
class OwnThread {
 public:
  explicit OwnThread(const Session& session);
  ~OwnThread();
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

 private:
  const Session* outer_;
};

// Marks a call that a run makes on this thread, observed or not, for as long as this lives.
class OwnCall {
 public:
  // `of_model`: the run calls the model itself; else it calls code around the model.
  OwnCall(Session& session, bool of_model);
  ~OwnCall();
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

 private:
  std::shared_ptr<const OwnCallData> call_;
  const OwnCallData* outer_;
};

// Marks a block, code around a model that is observed as it is, for as long as this lives. The block's thread is known
// by the frames that are open there.
class OwnBlock {
 public:
  explicit OwnBlock(const std::shared_ptr<Session>& session);
  ~OwnBlock();
  OwnBlock(const OwnBlock&) = delete;
  OwnBlock& operator=(const OwnBlock&) = delete;

 private:
  std::shared_ptr<const OwnCallData> call_;
};

// Returns the call or block that the calling thread works for; null: none.
std::shared_ptr<const OwnCallData> call_of_this_thread();

// Marks this thread as started by that call or block: it works for it as long as this lives.
class WorksFor {
 public:
  explicit WorksFor(const std::shared_ptr<const OwnCallData>& call);
  ~WorksFor();
  WorksFor(const WorksFor&) = delete;
  WorksFor& operator=(const WorksFor&) = delete;
};

enum class Caller : std::uint8_t {
  own,      // makes the call that this session's run makes now, or was started by it
  another,  // makes or works for a call of another session's run
  earlier,  // was started by an earlier call of the same model: a pool that the model made
  unknown
};

// Returns who the calling thread is to that session.
Caller caller_for(const Session& session);

// Notes an op that ran on this thread outside of all frames: in the session whose run's call it belongs to, else in all
// active sessions.
void note_op_elsewhere();

// An answer to: does this thread run a call of the model itself?
enum class InModel : std::uint8_t { no, perhaps, yes };

// Returns whether the first call of a module on this thread is counted; the module is at `place`. A run counts its own
// call, and a block counts the calls of its thread. Both count the modules that other threads call for them. Where the
// session does not leave others out, all threads count except those of other runs. `in_model()` is asked of threads
// that nobody is known to have started.
bool is_counted(Session& session, ModuleId place, const std::function<InModel()>& in_model);

// Notes in `session` the calls of its model that other runs make now.
void note_other_runs(Session& session);
// Returns whether another run calls the same model now.
bool is_called_by_other_runs(const Session& session);

// Surrounds pthread_create, so that a thread that a run's call starts works for that call.
class ThreadStart {
 public:
  ThreadStart();
  void started(pthread_t thread);

 private:
  std::shared_ptr<const OwnCallData> call_;
  std::unique_lock<ForkMutex> lock_;  // the new thread waits for it before it asks who it is
};

// ---- calls that announce themselves, on this thread, with or without a profile

// The place in the source that marks a call; without a file, libroofprof_nn marks it.
struct CallMark {
  const char* file = nullptr;
  int line = 0;
};

void announce_call(const void* module, CallMark mark = {}) noexcept;
void announced_call_ends() noexcept;
bool is_announced_around(const void* module) noexcept;
// Returns whether that very mark announced a call of the module that is still under way: the module calls itself.
bool is_announced_around(const void* module, CallMark mark) noexcept;

}  // namespace roofprof::observe
