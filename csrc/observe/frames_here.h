#pragma once
// The front ends' interface to a session, for the calling thread: they open and close frames here, and ask and note
// what is known of the call whose frame is the innermost one. Hooks of modules use it, in C++ and in Python; the
// observer opens its frames by ThreadState.

#include <optional>
#include <string_view>
#include <vector>

#include "core/profile.h"
#include "observe/modules/calls.h"
#include "observe/numpy_exchange.h"
#include "observe/operators/op_info.h"
#include "observe/rule/counting_rule.h"

namespace roofprof::observe {

class Session;
struct ThreadState;

class FramesHere {
 public:
  explicit FramesHere(Session& session) : session_(session) {}

  // Opens a frame; ignored while no pass is active. `token` identifies it to what follows.
  bool enter(ModuleId module, const void* token, FrameKind kind = FrameKind::module) const;
  // Opens the frame of an optimizer's step.
  bool enter_optimizer(const void* token) const;
  // Opens the frame of the closure that a step was given: its work counts as outside of the step.
  bool enter_closure(const void* token) const;
  // Closes the frame and returns its module; empty where none with that token was open.
  std::optional<ModuleId> leave(const void* token) const;
  // Stops observing this thread until resume(): what it does is not the model's work, and its time goes to (outside).
  void pause() const;
  void resume() const { leave(this); }
  // Counts a call of that module if this pass has seen none on this thread: what ran under its name was one.
  void count_if_uncalled(ModuleId module) const;

  // Returns the evidence seen inside the frame of that token. kWorkSeen where that frame is not the innermost one here,
  // or an op owns what runs in it.
  Evidence evidence_inside(const void* token) const;
  // Notes that the module of that type whose frame is the innermost here did work that bypassed the dispatcher.
  void note_unobserved_module(std::string_view type, Unobserved kind = Unobserved::module) const;
  // Returns the memory that came in from outside during that frame, after a tensor had been read out there. Empty where
  // that frame is not the innermost one.
  std::vector<MemoryRange> imported(const void* token) const;
  // Forgets that memory: it was not the result of unobserved work.
  void forget_imported(const void* token) const;
  // Notes that what the innermost frame returns is in these blocks, if the frame has that token (allocations.h).
  void note_outputs(const void* token, const std::vector<const void*>& blocks) const;

 private:
  // Return this thread's state if it has frames of the session open, and the innermost is that token's; else null.
  ThreadState* state() const;
  ThreadState* innermost(const void* token) const;
  // Opens one if the pass observes this thread already: other threads' optimizers are none of this profile's business.
  bool enter_observed(ModuleId module, Phase phase, FrameKind kind, const void* token) const;

  Session& session_;
};

}  // namespace roofprof::observe
