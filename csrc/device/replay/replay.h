#pragma once
// Collectors that write what a device did to a file, and read it back on a machine without the device.

#include <memory>
#include <string>

#include "device/interface/collector.h"
#include "device/replay/recorded_data.h"

namespace roofprof {

// Passes every call to `inner` and keeps what it returned in the file, which is rewritten each time. If that fails, a
// note in the result says so.
std::unique_ptr<DeviceCollector> recording_collector(std::unique_ptr<DeviceCollector> inner, std::string path);

// Traces and counters in the order in which they were recorded, from the first again after the last; each with a note
// that names the file. Launch ids are those of the recorded run: they fit code that makes the same launches under the
// same ids. Throws CollectorError if the file cannot be read, or if what is asked for was not recorded.
std::unique_ptr<DeviceCollector> replaying_collector(const std::string& path);

}  // namespace roofprof
