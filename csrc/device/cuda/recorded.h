#pragma once
// What a collector returned goes to a file, and comes from one where there is no device.

#include <memory>
#include <string>

#include "core/device/recorded_data.h"
#include "device/collector.h"

namespace roofprof {

// Hands everything on and keeps what was returned in the file, which is written anew each time. Where that fails, a
// note in what is returned says so.
std::unique_ptr<DeviceCollector> recording_collector(std::unique_ptr<DeviceCollector> inner, std::string path);

// Traces and counters in the order in which they were recorded, from the first again after the last; each with a note
// that names the file. Launch ids are those of the recorded run: they fit code that makes the same launches under the
// same ids. Throws CollectorError where the file cannot be read, and where what is asked for was not recorded.
std::unique_ptr<DeviceCollector> replaying_collector(const std::string& path);

}  // namespace roofprof
