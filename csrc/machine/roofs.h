#pragma once
// The roofs of this machine, measured when first needed and kept in a file for the next process, of C++ or of Python.

#include <chrono>
#include <functional>
#include <string>

#include "machine/common/measurement.h"
#include "machine/gpu/environment.h"

namespace roofprof {

// Measuring the roofs of this machine.

// Measures the roofs of a device ("cpu", "cuda:0") with as many threads as torch uses now; takes at most twenty
// seconds. Calls `progress` with what is being measured, a line at a time. Neither the random number generators nor any
// mode of torch change, and no observer of torch's ops sees what runs. Throws std::invalid_argument for a device that
// cannot be measured.
MeasuredCeilings measure_ceilings(const std::string& device, const Progress& progress = {});

// Returns the device with its index: without one for the CPU, with the current one's for "cuda".
std::string named_device(const std::string& device);

// The functions and clock that the cache uses. Tests replace them.
struct RoofSource {
  std::function<MeasuredCeilings(const std::string& device, const Progress&)> measure = measure_ceilings;
  std::function<Environment(const std::string& device)> gpu_environment = roofprof::gpu_environment;
  std::chrono::steady_clock::time_point (*now)() = std::chrono::steady_clock::now;
  // Called again and again while another process has its turn; what it throws ends the wait.
  std::function<void()> while_waiting = [] {};
  // The longest time that one process may have its turn. A measurement takes 30 seconds at most: a process that takes
  // longer was stopped, or hangs.
  std::chrono::milliseconds longest_turn = std::chrono::minutes(1);
};

struct CachedCeilings {
  MeasuredCeilings roofs;  // with a note on what the cache could not do
  bool is_new = false;     // measured just now
};

// The folder that the environment variable ROOFPROF_CACHE_DIR names, else roofprof in the user's cache folder.
std::string ceilings_cache_folder();

// The roofs of a device ("cpu", "cuda:0"): those kept for this host, device, number of threads and torch version, and
// of a GPU for its driver, power limit and highest clocks; else measured, and kept. Those of a busy machine are
// kept for ten minutes in this process alone. Processes of a host measure one after the other, and the next reads what
// the one before it kept; nobody waits for one that makes no progress. `again` measures and keeps them anyway. Without
// `progress` a measurement reports to stderr once it takes more than two seconds. Throws std::invalid_argument for a
// device that cannot be measured.
CachedCeilings cached_ceilings(const std::string& device, const Progress& progress = {}, bool again = false,
                               const RoofSource& source = {});

}  // namespace roofprof
