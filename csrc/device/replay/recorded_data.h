#pragma once
// Stores what a device's collector returned in a file: written on a machine with a GPU, read again anywhere.
//
//   {"roofprof_device_data": 2,                                          the format's version; another one is refused
//    "traces": [{"start_ns": 1, "names": ["kernel"], "records": {"columns": ["kind", ...], "rows": [[...], ...]}}],
//    "counters": [{"chip": "GH100", "ranges": "kernels", "records": [{"range": 0, "values": {"dram_bytes": 1.0}}]}]}
//
// It is JSON with the members of core/members.h: of DeviceTrace, with a row for each KernelRecord, and of CounterTrace.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"

namespace roofprof {

inline constexpr int kRecordedDataVersion = 2;

struct RecordedData {
  std::vector<DeviceTrace> traces;
  std::vector<CounterTrace> counters;

  bool operator==(const RecordedData&) const = default;
};

// One sentence.
class RecordedDataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
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

}  // namespace roofprof
