#pragma once
// What the fake libraries share, inside libroofprof_fakes.so: entered at the start of every fake function.

#include <functional>
#include <string>

#include "fake_control.h"

namespace fake {

// Counts a call of a function; what it is told to fail with, else 0.
int enter(const char* function);
// The driver was started and showed a device: calls of CUPTI are allowed from now on.
void open_gate();
// One more (or fewer) of something is held.
void live(const std::string& what, int change);

// A launch as it ran, to those who collect.
struct Ran {
  FakeLaunch launch{};
  unsigned correlation = 0;
  long long start_ns = 0;
  long long end_ns = 0;
};
// Called for each launch from now on, on the launching thread, without a lock held.
void on_launch(std::function<void(const Ran&)> listener);

// Called for each node of a graph from now on, likewise; and at each reset.
void on_graph_node(std::function<void(unsigned long long node, unsigned long long original)> listener);
// Called on the thread of a call of the API, likewise, with the call's correlation id; 0: of one of the driver that
// launches nothing and is recorded, which driver_call() makes.
void on_call(std::function<void(unsigned correlation)> listener);
void driver_call();
void on_reset(std::function<void()> listener);

// Whether somebody holds the primary context of a device, or has launched on it.
bool is_active(unsigned device);
void retain(unsigned device, int change);
// Moves the clock to where all that was launched on the device has ended.
void wait_for(unsigned device);
// The number of launches so far.
unsigned last_correlation();

}  // namespace fake

// The first line of a fake function: FAKE(CUptiResult, cuptiSubscribe)
#define FAKE(Result, name) \
  if (const int fake_code = ::fake::enter(#name)) return static_cast<Result>(fake_code)
