#pragma once
// Measures how long work takes on a device, and at what rate it runs.

#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace roofprof {

// Seconds that `calls` calls of a body take on a device, from the beginning of the first to the end of the last.
using Timer = std::function<double(int calls, const std::function<void()>& body)>;

// Returns a timer: by events on the device's current stream where it is an accelerator, by the clock on the CPU.
Timer timer_of(c10::Device device);

// Waits until the device has done all its work.
void synchronize(c10::Device device);

// Something to repeat, and how much it does: operations, or bytes moved.
struct Trial {
  std::string name;
  double work = 0;  // of one call
  std::function<void()> run;
};

struct Rate {
  std::string name;
  double per_second = 0;  // the best repeat
  double spread = 0;      // (max - min) / max over the repeats
  int repeats = 0;
};

// Returns the rate of a trial: it makes a call for warm-up, then up to seven repeats, at least three, each of as many
// calls as fill its part of the budget.
Rate measured_rate(const Trial& trial, const Timer& timer, std::chrono::duration<double> budget);

// Measures all trials, each with an equal part of the budget. Returns their rates, best first.
std::vector<Rate> measured_rates(const std::vector<Trial>& trials, const Timer& timer,
                                 std::chrono::duration<double> budget);

}  // namespace roofprof
