#pragma once
// Collectors that write what a device did to a file, and read it back on a machine without the device.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "device/interface/collector.h"
#include "roofprof/error.h"

namespace roofprof {

// Stores what a device's collector returned in a file: written on a machine with a GPU, read again anywhere.
//
//   {"roofprof_device_data": 2,                                          the format's version; another one is refused
//    "traces": [{"start_ns": 1, "names": ["kernel"], "records": {"columns": ["kind", ...], "rows": [[...], ...]}}],
//    "counters": [{"chip": "GH100", "ranges": "kernels", "records": [{"range": 0, "values": {"dram_bytes": 1.0}}]}]}
//
// It is JSON with the members of core/members.h: of DeviceTrace, with a row for each KernelRecord, and of CounterTrace.

inline constexpr int kRecordedDataVersion = 2;

struct RecordedData {
  std::vector<DeviceTrace> traces;
  std::vector<CounterTrace> counters;

  bool operator==(const RecordedData&) const = default;
};

// One sentence.
class RecordedDataError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// A counter that is not finite is left out as unknown. Throws std::invalid_argument for what the reader would refuse.
std::string to_json(const RecordedData& data);

// Throws RecordedDataError, also where the text was cut off. What is returned is consistent: names and counters exist,
// nothing ends before it starts, no count is negative.
RecordedData recorded_from_json(std::string_view text);

// These write and read files, whole or not at all. They throw RecordedDataError, naming the file, also where it cannot
// be read or written.
void write_recorded_file(const RecordedData& data, const std::string& path);
RecordedData read_recorded_file(const std::string& path);

// Passes every call to `inner` and keeps what it returned in the file, which is rewritten each time. If that fails, a
// note in the result says so.
std::unique_ptr<DeviceCollector> recording_collector(std::unique_ptr<DeviceCollector> inner, std::string path);

// Traces and counters in the order in which they were recorded, from the first again after the last; each with a note
// that names the file. Launch ids are those of the recorded run: they fit code that makes the same launches under the
// same ids. Throws CollectorError if the file cannot be read, or if what is asked for was not recorded.
std::unique_ptr<DeviceCollector> replaying_collector(const std::string& path);

}  // namespace roofprof
