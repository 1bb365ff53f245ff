#pragma once
// Sums what a device did for a module, or for a group of ops.

#include <vector>

#include "analysis/measured.h"
#include "analysis/roofline.h"

namespace roofprof {

// Additive.
struct DeviceSums {
  std::int64_t kernels = 0;
  std::int64_t launches = 0;     // with copies and fills
  std::int64_t op_time_ns = 0;   // of launches inside ops
  std::int64_t idle_ns = 0;      // between launches
  std::int64_t launched_ns = 0;  // of all launches
  // Copies and fills, where counters are those of kernels; the bytes of the ops that launched nothing else.
  std::int64_t uncounted = 0;
  std::int64_t uncounted_ns = 0;
  std::int64_t uncounted_read_bytes = 0;
  std::int64_t uncounted_write_bytes = 0;
  Measured measured;

  DeviceSums& operator+=(const DeviceSums& other);
  // Adds the bytes of an op whose launches no counter covers.
  void add_uncounted(const Work& work);
  // Treats all launches as covered by the counters.
  void count_all();
};

// Returns the sums of one kernel (copy, fill) with its counters.
DeviceSums sums_of(const KernelBucket& kernel, const CounterReader& reader);

// Returns, for each of Counts::ops, whether the op launched copies or fills, and no kernel.
std::vector<bool> ops_that_only_copy(const Profile& data);

// Returns the sums of each module's own launches, by id. They are meaningful only where a device was traced.
std::vector<DeviceSums> device_sums(const Profile& data);

// Returns the time of the device for each module, by id; 0 where it neither worked nor waited.
std::vector<DeviceTime> device_times(const Profile& data);

// Sets the figures that come from counters, and the number of kernels. The analytic figures must be set already.
// `off_device`: the work that was not done on the device.
void add_device_figures(const DeviceSums& sums, const Work& off_device, Figures& figures);

}  // namespace roofprof
