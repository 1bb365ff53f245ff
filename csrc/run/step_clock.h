#pragma once
// The steps of a block: how many, and how long each took.

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/profile_data.h"

namespace roofprof::run {

// A step lasts from the end of the one before it, the first from the start, by the host's clock: nothing waits for a
// device meanwhile.
class StepClock {
 public:
  void start() {
    times_ns_.reserve(kStepsTimed);  // a step's end neither waits for memory nor fails
    last_ = Clock::now();
    began_ = last_;
  }
  // A step has ended.
  void step() {
    const auto now = Clock::now();
    ++count_;
    if (times_ns_.size() < kStepsTimed) {
      times_ns_.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count());
    }
    last_ = now;
  }

  std::int64_t count() const { return count_; }
  // Returns the time of all steps together.
  std::int64_t total_ns() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(last_ - began_).count(); }
  // Returns the times of the first kStepsTimed steps.
  const std::vector<std::int64_t>& times_ns() const { return times_ns_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t count_ = 0;
  std::vector<std::int64_t> times_ns_;
  Clock::time_point began_, last_;
};

}  // namespace roofprof::run
