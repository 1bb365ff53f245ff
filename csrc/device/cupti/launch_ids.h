#pragma once
// Whom launches belong to: a stack of ids for each thread, passed to CUPTI.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/device_data.h"
#include "device/cupti/activity_records.h"
#include "device/cupti/api.h"

namespace roofprof::cupti {

// CUPTI keeps a stack of external ids for each thread and writes the topmost into a record before each API call's.
// A copy of the stack is kept here: CUPTI gives the topmost id only when it is popped, a graph's callbacks need it, and
// ids that a thread left there when a trace ended must be popped before the next one.
class LaunchIds final : public LaunchMarker {
 public:
  static constexpr std::size_t kDeepest = 128;  // what nests deeper belongs to the id at this depth

  // Makes ids pushed before void. Called on the thread that starts a trace.
  void begin(const Api& api);
  // Returns the number of ids that CUPTI did not take.
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Pops what this thread pushed and did not pop.
  void clear_this_thread() noexcept;

  void push(LaunchId id, LaunchLevel level) noexcept override;
  void pop(LaunchLevel level) noexcept override;
  // The topmost id of this thread.
  LaunchId current() const noexcept;

 private:
  struct Stack {
    std::uint64_t trace = 0;  // that the ids are of
    std::size_t depth = 0;
    std::array<LaunchId, kDeepest> ids;
    std::array<bool, kDeepest> pushed;  // false where CUPTI refused
  };
  static Stack& stack() noexcept;
  Stack& stack_of_this_trace() noexcept;
  void drain(Stack& stack) noexcept;

  std::atomic<const Api*> api_ = nullptr;
  std::atomic<std::uint64_t> trace_ = 0;
  std::atomic<std::int64_t> refused_ = 0;
};

}  // namespace roofprof::cupti
