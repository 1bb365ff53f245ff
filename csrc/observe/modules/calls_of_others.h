#pragma once
// Counts the calls of a run's model that other code made while the run's own were observed. They are left out, so
// nothing else is known of them.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/run_record.h"

namespace roofprof::observe {

class CallsOfOthers {
 public:
  // Notes that a call of the module at `place` on this thread was left out. `inferred`: its caller is not certain.
  void note(ModuleId place, bool inferred);
  // Notes that a whole call was left out, of a run with that number among all calls of runs.
  void note_run(std::uint64_t number);
  // Notes a call of a module that was left out because it may be this run's or another's.
  void note_unclear();
  // Notes that a module was counted on a thread that nobody is known to have started.
  void note_helper();

  // Ends a pass. `own_calls` returns how often the run itself called a module in it.
  void end_pass(const std::function<std::int64_t(ModuleId)>& own_calls);
  OtherCalls all() const;

 private:
  mutable std::mutex mutex_;
  OtherCalls all_;                                                    // of the passes that ended
  std::map<std::pair<std::uint64_t, ModuleId>, std::int64_t> calls_;  // of this pass, by thread
  std::set<std::uint64_t> runs_;
  bool helped_ = false;
};

}  // namespace roofprof::observe
