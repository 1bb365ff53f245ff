#pragma once
// Who calls: a run makes its calls on one thread, and what these start on other threads works for it. Every other call
// of the same model is somebody else's.

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "values/forks.h"
#include "values/profile_data.h"

namespace roofprof::observe {

class Session;

// What a run calls now.
struct OwnCallData {
  std::shared_ptr<Session> session;
  const void* model = nullptr;  // null: no call of a model, but of code around it
  std::uint64_t number = 0;     // of all calls of all runs
};

// A run's thread, from before its first call to after its last: also what the profiler does between them is not
// others'.
class OwnThread {
 public:
  explicit OwnThread(const Session& session);
  ~OwnThread();
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

 private:
  const Session* outer_;
};

// A call that a run makes, observed or not, on this thread; as long as this.
class OwnCall {
 public:
  // Of the model itself; else of code around it.
  OwnCall(Session& session, bool of_model);
  ~OwnCall();
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

 private:
  std::shared_ptr<const OwnCallData> call_;
  const OwnCallData* outer_;
};

enum class Caller : std::uint8_t {
  own,      // makes the call that this session's run makes now, or was started by it
  another,  // that of another session's run
  earlier,  // was started by an earlier call of the same model: a pool that the model made
  unknown
};

// Who the calling thread is to that session.
Caller caller_for(const Session& session);

// An op ran on this thread, in no scope: told to the session whose run's call it is, else to all that are active.
void note_op_elsewhere();

// Whether a thread runs a call of the model itself.
enum class InModel : std::uint8_t { no, perhaps, yes };

// Whether the first call of a module on this thread is counted, of the module at `place`. A run counts its own call and
// what modules other threads call for it; code around a model counts all threads but those of other runs. `in_model()`
// is asked of threads that nobody is known to have started.
bool is_counted(Session& session, ModuleId place, const std::function<InModel()>& in_model);

// Notes in `session` the calls of its model that other runs make now.
void note_other_runs(Session& session);
// Whether another run calls the same model now.
bool is_called_by_other_runs(const Session& session);

// Around pthread_create: a thread that a run's call starts works for that call.
class ThreadStart {
 public:
  ThreadStart();
  void started(pthread_t thread);

 private:
  std::shared_ptr<const OwnCallData> call_;
  std::unique_lock<ForkMutex> lock_;  // the new thread waits for it before it asks who it is
};

// ---- calls that tell of themselves, on this thread, whether a profile runs or not

// Where in the source a call is marked; without a file: by libroofprof_nn, wherever that is.
struct CallMark {
  const char* file = nullptr;
  int line = 0;
};

void told_begins(const void* module, CallMark mark = {}) noexcept;
void told_ends() noexcept;
bool is_told_around(const void* module) noexcept;
// Whether that very mark has told of a call of the module that is still under way: it calls itself.
bool is_told_around(const void* module, CallMark mark) noexcept;

}  // namespace roofprof::observe
