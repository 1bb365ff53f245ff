#pragma once
// What a device's collector recorded, as text: written once on a machine with a GPU, read again anywhere.
//
// A file is lines of words with one space between them, in UTF-8 as it came:
//
//   roofprof-device-data 1        the format's version; another one is refused
//   # free text                   anywhere: skipped
//   trace                         a DeviceTrace begins
//   time START END                ns by the records' clock; 0: not known
//   lost DROPPED INCOMPLETE FOREIGN
//   note TEXT                     any number; in a text \\ is a backslash, \n and \r are ends of lines
//   name TEXT                     of kernels; numbered from 0
//   record KIND NAME DEVICE TO_DEVICE STREAM CORRELATION GRAPH_NODE LAUNCH START END GX GY GZ BX BY BZ FROM TO BYTES
//   end RECORDS                   how many there were
//   counters                      a CounterTrace begins
//   chip TEXT
//   ranges kernels|modules
//   lost DROPPED
//   passes PASSES
//   note TEXT
//   source COUNTER                then what it was made of:
//   metric TEXT                   any number
//   formula TEXT
//   missing TEXT
//   range RANGE COUNTER=VALUE ... one CounterRecord; what is not known is left out
//   end RECORDS
//   complete PARTS                the last line: how many traces and counters there were
//
// KIND, FROM, TO and COUNTER are the words of kKernelKindNames, kMemoryNames and kCounterNames; numbers are decimal.
// Lines that are left out are as in a value that was just made (0, empty, kernels).

#include <cstdint>
#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"

namespace roofprof {

inline constexpr std::string_view kRecordedDataHeading = "roofprof-device-data";
inline constexpr int kRecordedDataVersion = 1;

struct RecordedData {
  std::vector<DeviceTrace> traces;
  std::vector<CounterTrace> counters;

  bool operator==(const RecordedData&) const = default;
};

// One sentence with the number of the line (from 1; 0: the file as a whole).
class RecordedDataError : public std::runtime_error {
 public:
  RecordedDataError(std::int64_t line, const std::string& what);
  std::int64_t line() const { return line_; }

 private:
  std::int64_t line_;
};

// A counter that is not finite is left out as unknown. Throws std::invalid_argument for what the reader would refuse.
void write_recorded(const RecordedData& data, std::ostream& to);

// Throws RecordedDataError, also where the file was cut off. What is returned is consistent: names and counters exist,
// nothing ends before it starts, no count is negative.
RecordedData read_recorded(std::istream& from);

// The same with files. Throws RecordedDataError where the file cannot be opened or written.
void write_recorded_file(const RecordedData& data, const std::string& path);
RecordedData read_recorded_file(const std::string& path);

}  // namespace roofprof
