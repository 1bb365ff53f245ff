#pragma once
// Data of what runs on a device, as a collector returns it: records of launches, and hardware counters.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/note_codes.h"
#include "roofprof/kinds.h"

namespace roofprof {

// Says where a launch belongs. It is handed to the collector around each op and module call and comes back with the
// records of what was launched inside. The observer keeps a list of what each id stands for.
using LaunchId = std::uint64_t;
inline constexpr LaunchId kNoLaunch = 0;  // launched outside of every scope

// An id also names the call of the op, where events are kept: the event's id stands above the owner's.
inline constexpr int kEventShift = 32;
constexpr LaunchId with_event(LaunchId owner, std::uint32_t event) {
  return owner | (static_cast<LaunchId>(event) << kEventShift);
}
constexpr LaunchId owner_of_launch(LaunchId id) { return id & 0xFFFFFFFFU; }
constexpr std::int64_t event_of_launch(LaunchId id) { return static_cast<std::int64_t>(id >> kEventShift); }

enum class LaunchLevel : std::uint8_t { module, op };

// The observer tells it, on the thread that launches, whom the next launches belong to: a stack for each thread. Called
// in the hot path: must not allocate, throw or lock.
class LaunchMarker {
 public:
  virtual ~LaunchMarker() = default;
  virtual void push(LaunchId id, LaunchLevel level) noexcept = 0;
  virtual void pop(LaunchLevel level) noexcept = 0;
};

// The memory that a copy reads or writes. Host memory is pinned or pageable.
enum class Memory : std::uint8_t { unknown, pageable, pinned, device, managed };
inline constexpr std::array<std::string_view, 5> kMemoryNames = {"unknown", "pageable", "pinned", "device", "managed"};

// NVIDIA's driver runs large fills of a graph as this kernel, and does not tell their bytes.
constexpr bool is_fill_of_graph(std::string_view kernel, std::uint64_t graph_node) {
  return graph_node != 0 && kernel == "memset32";
}

// One kernel, copy or fill that a device ran.
struct KernelRecord {
  KernelKind kind = KernelKind::kernel;
  Memory from = Memory::unknown;  // of a copy
  Memory to = Memory::unknown;
  std::uint32_t name = 0;  // index into DeviceTrace::names
  std::uint32_t device = 0;
  std::uint32_t to_device = 0;  // of a copy between devices, else the same
  std::uint32_t stream = 0;
  std::uint64_t correlation = 0;  // of the launch; rises in launch order. One launch of a graph runs many kernels
  std::uint64_t graph_node = 0;   // 0: not of a graph
  LaunchId launch = kNoLaunch;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  std::int64_t bytes = 0;  // of a copy or fill; 0: not known

  bool operator==(const KernelRecord&) const = default;
};

// A stretch of time in which a device ran something that is in no record: the launches of what ran before.
struct OthersWork {
  std::uint32_t device = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  bool operator==(const OthersWork&) const = default;
};

// All that devices did between two moments, in any order.
struct DeviceTrace {
  std::vector<std::string> names;  // of kernels, demangled
  std::vector<KernelRecord> records;
  std::vector<OthersWork> others;  // a device is not idle meanwhile
  std::int64_t start_ns = 0;       // of the trace, by the records' clock; 0: not known
  std::int64_t end_ns = 0;
  std::int64_t dropped = 0;     // records that the collector lost, or had no room for
  std::int64_t incomplete = 0;  // records without a start or end: left out of `records`
  std::int64_t foreign = 0;     // buffers of another client's that came to us
  std::vector<Note> notes;

  bool operator==(const DeviceTrace&) const = default;
};

// The quantities that hardware counters count. core/counter_metrics.h has the metrics behind each, by chip.
enum class Counter : std::uint8_t {
  dram_read_bytes,
  dram_write_bytes,
  dram_bytes,
  l2_bytes,
  l1_bytes,
  time_ns,
  fp16_flops,  // executed by CUDA cores
  fp32_flops,
  fp64_flops,
  tensor_fp16_flops,  // executed by tensor cores, by input type
  tensor_bf16_flops,
  tensor_tf32_flops,
  tensor_fp8_flops,
  tensor_fp4_flops,
  tensor_int8_ops,
  tensor_fp64_flops,
};
inline constexpr std::size_t kCounterCount = 16;
inline constexpr std::array<std::string_view, kCounterCount> kCounterNames = {
    "dram_read_bytes",  "dram_write_bytes",  "dram_bytes",        "l2_bytes",
    "l1_bytes",         "time_ns",           "fp16_flops",        "fp32_flops",
    "fp64_flops",       "tensor_fp16_flops", "tensor_bf16_flops", "tensor_tf32_flops",
    "tensor_fp8_flops", "tensor_fp4_flops",  "tensor_int8_ops",   "tensor_fp64_flops"};

using CounterValues = std::array<std::optional<double>, kCounterCount>;

// The metrics that the hardware was asked for on behalf of one counter, and why values are missing.
struct CounterSource {
  Counter counter = Counter::dram_bytes;
  std::vector<std::string> metrics;  // of this chip; empty: it has none
  std::string formula;               // in the metrics' names
  std::string missing;               // why values are missing; empty: none are

  bool operator==(const CounterSource&) const = default;
};

// The ranges by which counters distinguish launches.
enum class CounterRanges : std::uint8_t {
  kernels,  // each kernel by itself, in launch order, one after the other
  modules   // whole modules, whose kernels may overlap
};
inline constexpr std::array<std::string_view, 2> kCounterRangeNames = {"kernels", "modules"};

struct CounterRecord {
  // Ranges of kernels: the position in launch order, from 0. Ranges of modules: the LaunchId.
  std::uint64_t range = 0;
  CounterValues values{};

  bool operator==(const CounterRecord&) const = default;
};

// The counters of one run of some code.
struct CounterTrace {
  std::string chip;  // "GH100"
  CounterRanges ranges = CounterRanges::kernels;
  std::vector<CounterSource> sources;
  std::vector<CounterRecord> records;
  std::int64_t dropped = 0;  // ranges left out for lack of room
  std::int64_t passes = 0;   // times that the code ran
  std::vector<Note> notes;

  bool operator==(const CounterTrace&) const = default;
};

}  // namespace roofprof
