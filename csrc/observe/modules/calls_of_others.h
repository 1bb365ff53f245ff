#pragma once
// Calls of a run's model that somebody else made while the run's own were observed: how many there were. They are not
// counted, so nothing else is known of them.

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
  // A call of the module at `place` on this thread was left out. `inferred`: whose it was is not certain.
  void note(ModuleId place, bool inferred);
  // So was a whole call, of a run with that number among all calls of runs.
  void note_run(std::uint64_t number);
  // A call of a module may be this run's or another's, and was left out.
  void note_unclear();
  // A module was counted on a thread that nobody is known to have started.
  void note_helper();

  // `own_calls`: how often the run itself called a module in this pass.
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
