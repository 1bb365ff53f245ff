#pragma once
// The collector of an NVIDIA GPU: kernel times by CUPTI's activity records, counters by its range profiler.

#include <memory>

#include "device/interface/collector.h"

namespace roofprof::cupti {

// Throws CollectorError where there is no driver, device or usable CUPTI.
std::unique_ptr<DeviceCollector> make_collector();

}  // namespace roofprof::cupti
