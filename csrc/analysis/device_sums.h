#pragma once
// What a device did for a module, or for a group of ops.

#include <vector>

#include "analysis/measured.h"
#include "analysis/roofline.h"

namespace roofprof {

// Additive.
struct DeviceSums {
  std::int64_t kernels = 0;
  std::int64_t launches = 0;    // with copies and fills
  std::int64_t op_time_ns = 0;  // of launches inside ops
  std::int64_t idle_ns = 0;     // between launches
  std::int64_t uncounted = 0;   // copies and fills, where counters are those of kernels
  Measured measured;

  DeviceSums& operator+=(const DeviceSums& other);
};

// One kernel (copy, fill) with its counters.
DeviceSums sums_of(const KernelBucket& kernel, const CounterReader& reader);

// Of each module's own launches, by id. Meaningful only where a device was traced.
std::vector<DeviceSums> device_sums(const ProfileData& data);

// The time of the device for each module, by id; 0 where it neither worked nor waited.
std::vector<DeviceTime> device_times(const ProfileData& data);

// Sets the figures that come from counters, and how many kernels there were. The analytic ones are there.
void add_device_figures(const DeviceSums& sums, Figures& figures);

}  // namespace roofprof
