#pragma once
// Reads the records in a buffer of CUPTI's activity API into LaunchRecords and KernelRecords.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/api.h"

namespace roofprof::cupti {

// The kind of external ids that roofprof uses. torch's profiler uses CUSTOM0 and CUSTOM1.
inline constexpr CUpti_ExternalCorrelationKind kOurIds = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

// The launch id under which the call with this correlation id was made. A call may have several records, of which one
// at most has an id.
struct LaunchRecord {
  std::uint32_t correlation = 0;
  LaunchId launch = kNoLaunch;
};

struct ParsedBuffer {
  std::vector<std::string> names;     // as CUPTI has them: mangled
  std::vector<KernelRecord> records;  // `launch` is in `launches`, by correlation; `name` is an index into `names`
  std::vector<LaunchRecord> launches;
  std::int64_t incomplete = 0;  // without a start or an end
  bool readable = true;         // to its end; else this is what came before the first broken record
};

// Reads the buffer's records. It copies everything: neither the buffer nor the names that it points to are needed
// afterwards.
ParsedBuffer parse_records(const Api& api, std::uint8_t* buffer, std::size_t valid_bytes);

}  // namespace roofprof::cupti
