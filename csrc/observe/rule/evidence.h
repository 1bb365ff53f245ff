#pragma once
// The evidence that is seen inside a module's call or an autograd function's: it decides if work bypassed the
// dispatcher.

#include <cstdint>

namespace roofprof::observe {

using Evidence = std::uint8_t;            // of these:
inline constexpr Evidence kWorkSeen = 1;  // counted, or listed as uncosted
inline constexpr Evidence kFreshMemory =
    2;                                   // allocated and not filled by an op, or brought in from outside (from_numpy)
inline constexpr Evidence kReadOut = 4;  // a tensor was handed out (numpy())
inline constexpr Evidence kViewMade = 8;
inline constexpr Evidence kBufferMade = 16;  // memory for something else to fill
inline constexpr Evidence kBroughtIn = 32;   // memory that may be others' (from_numpy)

// Returns whether work in an autograd function bypassed the dispatcher: nothing was counted, and yet there is memory
// that no op has filled, so something else did. Functions that return a view of their input and make a constant are
// left out.
constexpr bool function_bypasses(Evidence seen) {
  return (seen & kWorkSeen) == 0 && (seen & kFreshMemory) != 0 && ((seen & kReadOut) != 0 || (seen & kViewMade) == 0);
}

// Returns whether work in a module's call may have bypassed the dispatcher, so that it must be found out whose memory
// its output is in.
constexpr bool module_may_bypass(Evidence seen) {
  return (seen & kWorkSeen) == 0 && (seen & (kReadOut | kFreshMemory)) != 0;
}

}  // namespace roofprof::observe
