#pragma once
// Runs a profile's passes on a device: traced and counted where a collector can, waited for where it cannot. C++'s
// profiler and Python's both go through this.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "device/interface/collector.h"
#include "observe/session.h"
#include "roofprof/counters.h"

namespace roofprof {

// Returns why calls on that device cannot be timed; empty where they can.
std::string untimed_on(const std::string& device);

// Returns the facts about the machine that a reader needs to compare a profile's figures; about the GPU too where it
// ran there.
Environment environment_of(const std::string& device);

// Serves one run() or one block. A failure of the collector is not an error: it becomes a note, and the profile has
// what is left (times without counters, wall times alone).
class DevicePasses {
 public:
  // Traces a device that has a collector; with any other device, all of this does what the session does and nothing
  // else.
  DevicePasses(std::string device, Counters counters);
  ~DevicePasses();
  DevicePasses(const DevicePasses&) = delete;
  DevicePasses& operator=(const DevicePasses&) = delete;

  // Starts a pass once the device stands still, traced where that is possible. Throws what Session::start throws.
  void start(observe::Session& session, std::optional<ModuleId> base);
  // Ends the pass when the device has done its part, so that the pass's wall time has both; where the model raised, at
  // once.
  Pass stop(observe::Session& session, bool raised = false);
  // Returns whether calls are traced.
  bool traces() const { return collector_ != nullptr && lost_.empty(); }
  // The same for a call that nobody observes, whose launches alone are recorded: the pass has its wall time and, where
  // that was possible, its trace without owners.
  void start_alone();
  // Returns whether what ran since start_alone() can be left out of the pass.
  bool can_restart_alone() const { return collector_ != nullptr && collector_->can_forget(); }
  // Leaves out what ran since start_alone(): the pass begins when `prepare` returns.
  void restart_alone(const std::function<void()>& prepare);
  Pass stop_alone(bool raised = false);
  // Waits for the device; called around what a clock times.
  void synchronize();
  // Returns why the device, and with it further runs, cannot be used any more; empty: they can.
  const std::string& lost() const { return lost_; }

  // Reads counters in separate runs after the timed ones: `call` makes the same call once more, as often as they need
  // passes. Throws what it throws.
  void count(observe::Session& session, std::optional<ModuleId> base, const std::vector<Pass>& timed,
             const std::function<void()>& call);
  // Notes why no counters are read, where they would be.
  void leave_out_counters(const std::string& why);

  // Returns the facts after all passes have ended; empty where the device is not traced. Bare calls (`has_bare`)
  // show what observing costs; without them that is measured now, on the device: tens of ms, once in a process.
  std::optional<DeviceFacts> facts(const std::vector<Pass>& timed, bool has_bare) const;

 private:
  class DeviceLock;

  bool may_count() const;
  LaunchMarker* start_tracing(Recorded recorded);
  std::shared_ptr<const DeviceTrace> stop_tracing();
  void end_trace(observe::Ticks pass_started, Pass& pass);
  void note(NoteCode code, const std::string& what, const std::string& why);

  std::string device_;  // empty: none that is traced
  Counters counters_;
  DeviceCollector* collector_ = nullptr;  // null: there is none, or it failed
  std::unique_ptr<DeviceLock> lock_;      // while tracing
  observe::Ticks trace_started_ = 0;      // by the host's clock
  observe::Ticks alone_started_ = 0;
  std::string lost_;
  std::optional<CounterTrace> counted_;
  std::vector<Note> notes_;
};

}  // namespace roofprof
