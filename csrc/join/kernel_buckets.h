#pragma once
// Sums launches into one bucket for each kernel (copy, fill) and owner, with statistics over the launches.

#include <cstddef>
#include <string>
#include <vector>

#include "core/profile_data.h"
#include "join/device_launches.h"

namespace roofprof {

struct KernelBuckets {
  std::vector<KernelBucket> buckets;   // in order of their first launch
  std::vector<std::size_t> of_launch;  // the bucket of each launch
};

// Sum, least, most, median and sample standard deviation are exact: they come from all durations.
KernelBuckets kernel_buckets(const Launches& launches);

// Returns the launch's name. The names of copies and fills are in brackets, as in nsys: "[memcpy pinned to device]".
std::string name_of_launch(const KernelRecord& record, const std::vector<std::string>& names);

// Copied between host and device, in either direction.
bool crosses_host_link(const KernelBucket& kernel);

}  // namespace roofprof
