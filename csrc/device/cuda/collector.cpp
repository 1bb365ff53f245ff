#include "device/collector.h"

#ifdef ROOFPROF_HAS_CUPTI
#include "device/cupti/collector.h"
#endif

namespace roofprof {

std::unique_ptr<DeviceCollector> make_collector(const std::string& device) {
  if (!device.starts_with("cuda")) return nullptr;
#ifdef ROOFPROF_HAS_CUPTI
  return cupti::make_collector();
#else
  throw CollectorError("this roofprof was built without CUPTI's headers, so it has no kernel times and counters",
                       "build it beside a CUDA form of torch, or set ROOFPROF_CUPTI_INCLUDE_DIR");
#endif
}

}  // namespace roofprof
