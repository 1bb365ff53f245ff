#pragma once
// What this thread hands over to the threads that torch starts work on from it: c10's debug infos.

#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

namespace roofprof::observe {

// Debug infos are a stack, and torch's profiler takes its own from the top alone, or throws. So ours are put below it,
// and taken from there: a program may start and stop it at any time.
void hand_over(c10::DebugInfoKind kind, std::shared_ptr<c10::DebugInfoBase> info);

// Returns what this thread hands over; null: nothing of that kind.
c10::DebugInfoBase* handed_over(c10::DebugInfoKind kind);

// Ends that. False where it is out of reach and stays: others have one above it, or this is not its thread.
bool end_handover(c10::DebugInfoKind kind, const c10::DebugInfoBase* info);

// Ends all that this thread still hands over, at its end: torch looks for debug infos afterwards too, where a static
// tensor is freed, and would find what is no longer there.
void end_handovers();

}  // namespace roofprof::observe
