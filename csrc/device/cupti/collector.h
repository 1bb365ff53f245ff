#pragma once
// The collector of an NVIDIA GPU: kernel times by CUPTI's activity records, counters by its range profiler.

#include <memory>
#include <vector>

#include "device/interface/collector.h"

namespace roofprof::cupti {

// Throws CollectorError where the driver, a device or a usable CUPTI is missing.
std::unique_ptr<DeviceCollector> make_collector();

// Finds out, for the doctor, what CUPTI can measure here.

// Adds what was found of the library, of kernel times and of counters, behind the driver's gate. admins_only: the
// driver says that counters are not for this process, which is then not tried.
void examine(bool admins_only, std::vector<Examined>& findings);

}  // namespace roofprof::cupti
