#pragma once
// The collector of an NVIDIA GPU: kernel times by CUPTI's activity records, counters by its range profiler.

#include <memory>

#include "device/interface/collector.h"

namespace roofprof::cupti {

// Throws CollectorError where the driver, a device or a usable CUPTI is missing.
std::unique_ptr<DeviceCollector> make_collector();

}  // namespace roofprof::cupti
