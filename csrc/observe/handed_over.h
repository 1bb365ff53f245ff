#pragma once
// Hands things over from this thread to the threads that torch starts work on from it: c10's debug infos, and the place
// of work that begins later.

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

#include "core/profile.h"

namespace roofprof::observe {

class Session;

// The place of an observed thread when it asked for work that begins later: the callback of a future.
struct LaterPlace {
  std::weak_ptr<Session> session;
  std::uint64_t pass = 0;
  Owner owner;
};

// Returns the place of this thread; null where no profile observes it.
std::shared_ptr<LaterPlace> place_for_later();

// While it lives, what runs on this thread belongs to that place, on whatever thread the future was completed. It does
// nothing where the pass has ended.
class RunsAtPlace {
 public:
  explicit RunsAtPlace(const std::shared_ptr<LaterPlace>& place);
  ~RunsAtPlace();
  RunsAtPlace(const RunsAtPlace&) = delete;
  RunsAtPlace& operator=(const RunsAtPlace&) = delete;
};

// Debug infos are a stack, and torch's profiler takes its own from the top alone, or throws. So ours are put below it,
// and taken from there: a program may start and stop it at any time.
void hand_over(c10::DebugInfoKind kind, std::shared_ptr<c10::DebugInfoBase> info);

// Returns what this thread hands over; null: nothing of that kind.
c10::DebugInfoBase* handed_over(c10::DebugInfoKind kind);

// Ends the handover of `info`. Returns false where it is out of reach and stays: others have one above it, or this is
// not its thread.
bool end_handover(c10::DebugInfoKind kind, const c10::DebugInfoBase* info);

// Ends all that this thread still hands over, at its end: torch looks for debug infos afterwards too, where a static
// tensor is freed, and would find what is no longer there.
void end_handovers();

}  // namespace roofprof::observe
