#pragma once
// Gives CUPTI its buffers and takes them back.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/activity_records.h"
#include "device/cupti/api.h"
#include "device/cupti/launch_ids.h"

namespace roofprof::cupti {

// The limits of a trace's memory.
struct TraceLimits {
  // CUPTI clears each buffer when it gets one, within a call of the model's, and uses one for each thread: clearing a
  // large buffer would show as idle time.
  std::size_t buffer_bytes = std::size_t{1} << 20;
  std::size_t records = 4'000'000;  // of kernels, copies and fills; four times as many calls
};

// The id that a tracer's own call at the end of a trace is made under.
inline constexpr LaunchId kLastLaunch = ~LaunchId{0};

// The records that came while the inbox was open. `name` of a record is an index into `names`, which are mangled and
// distinct.
struct Received {
  std::vector<std::string> names;
  std::vector<KernelRecord> records;
  std::vector<LaunchRecord> launches;
  std::int64_t dropped = 0;  // by CUPTI, of queues with a context
  std::int64_t no_room = 0;  // records beyond the limit
  std::int64_t launches_no_room = 0;
  std::int64_t incomplete = 0;
  std::int64_t foreign = 0;     // buffers that another client had given out
  std::int64_t unreadable = 0;  // buffers with a record that CUPTI could not read
  std::int64_t unread = 0;      // buffers that could not be read for lack of memory
  bool last_came = false;       // the call under kLastLaunch, which is not among the launches
};

// There is one inbox in a process, because CUPTI's buffer callbacks carry no pointer to one. It is never destroyed,
// since CUPTI may return buffers at any time. The thread that returns a buffer reads its records; no lock is held while
// CUPTI is called.
class ActivityInbox {
 public:
  static ActivityInbox& instance();

  // Called by CUPTI. Callbacks cannot be unregistered: while the inbox is closed, buffers that come are thrown away.
  void register_callbacks(const Api& api);

  // Keeps what comes from now on.
  void open(const Api& api, const TraceLimits& limits);
  // Buffers of others may hold records from before. By CUPTI's clock; until this is called they are all kept.
  void keep_of_others_from(std::int64_t start_ns);
  // Adds a call of CUDA's. CUPTI reports it as it begins.
  void add_launch(LaunchRecord launch) noexcept;
  // Waits until no buffer is being read.
  Received close();

  std::size_t buffers_out() const;  // that CUPTI has
  // Forgets the buffers that CUPTI has: they went to another client. Returns whether there were any.
  bool give_up_buffers();

 private:
  ActivityInbox() = default;
  static void CUPTIAPI on_request(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  static void CUPTIAPI on_complete(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                                   std::size_t valid_bytes);
  std::pair<std::uint8_t*, std::size_t> hand_out();  // null and 0: no memory
  void take_back(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid_bytes);
  void read(const Api& api, CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid_bytes,
            bool foreign);
  // The caller of these holds the lock:
  void add(ParsedBuffer&& parsed, bool foreign);
  std::uint32_t index_of(const std::string& name);
  void recycle(std::uint8_t* buffer, std::size_t bytes);
  void free_all();

  mutable std::mutex mutex_;
  std::condition_variable read_;
  const Api* api_ = nullptr;
  TraceLimits limits_;
  bool open_ = false;
  int reading_ = 0;  // buffers, by threads of CUPTI's
  std::int64_t others_from_ns_ = 0;
  std::unordered_map<std::uint8_t*, std::size_t> out_;  // buffers that CUPTI has, and their bytes
  std::vector<std::uint8_t*> free_;                     // of limits_.buffer_bytes each
  Received received_;
  std::unordered_map<std::string, std::uint32_t> name_indices_;
};

// Makes a DeviceTrace of what CUPTI delivered.

// The knowledge about CUDA graphs: `watched` says whether CUPTI reported captures at all.
struct Captures {
  const GraphNodes& nodes;
  bool watched = false;
};

// Adds names (demangled), records with the ids that they were launched under, counts and notes. Returns how many
// records are of calls that did not come, though nothing was lost. Throws CollectorError where most times lie outside
// of the trace.
std::int64_t add_received(Received&& received, const Captures& captures, DeviceTrace& trace);

}  // namespace roofprof::cupti
