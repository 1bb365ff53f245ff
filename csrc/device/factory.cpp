#include "device/interface/collector.h"

#include <cstdlib>
#include <utility>

#include "core/device_kind.h"
#include "device/replay/replay.h"

#ifndef ROOFPROF_WITHOUT_CUPTI
#include "device/cupti/collector.h"
#endif

namespace roofprof {

namespace {

std::unique_ptr<DeviceCollector> nvidia_collector() {
#ifndef ROOFPROF_WITHOUT_CUPTI
  return cupti::make_collector();
#else
  throw CollectorError("this roofprof was built without kernel times and counters of GPUs: " ROOFPROF_WITHOUT_CUPTI,
                       ROOFPROF_WITHOUT_CUPTI_ADVICE);
#endif
}

const char* file_in(const char* variable) {
  const char* path = std::getenv(variable);
  return path != nullptr && *path != '\0' ? path : nullptr;
}

}  // namespace

std::unique_ptr<DeviceCollector> hardware_collector(const std::string& device) {
  switch (device_kind(device)) {
    case DeviceKind::nvidia:
      return nvidia_collector();
    case DeviceKind::cpu:
    case DeviceKind::meta:
    case DeviceKind::other:
      break;
  }
  return nullptr;
}

// Developers can set ROOFPROF_RECORD_DEVICE=FILE, which keeps what a GPU did, and ROOFPROF_REPLAY_DEVICE=FILE, which
// plays it back on a machine without one.
std::unique_ptr<DeviceCollector> make_collector(const std::string& device) {
  if (!has_collector(device_kind(device))) return nullptr;
  if (const char* path = file_in("ROOFPROF_REPLAY_DEVICE")) return replaying_collector(path);
  std::unique_ptr<DeviceCollector> collector = hardware_collector(device);
  if (const char* path = file_in("ROOFPROF_RECORD_DEVICE")) return recording_collector(std::move(collector), path);
  return collector;
}

}  // namespace roofprof
