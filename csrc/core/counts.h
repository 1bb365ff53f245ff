#pragma once
// Holds what was counted: the ops, and the memory of the counting call.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/crossings.h"
#include "core/ids.h"
#include "core/reuse.h"
#include "core/shapes.h"
#include "roofprof/dtype.h"
#include "roofprof/work.h"

namespace roofprof {

// The op of a compiled region's code: its time, and its calls.
inline constexpr std::string_view kCompiledRegion = "compiled region";
// The op of what a region's code does besides its kernels, where these are known: then "compiled region" is theirs.
inline constexpr std::string_view kOutsideKernels = "(outside kernels)";
// Returns whether the op has a region's time and calls; its work is that of other ops.
constexpr bool is_time_of_region(std::string_view op) { return op == kCompiledRegion || op == kOutsideKernels; }
// The op of a call of an AOTInductor package, whose code is compiled, too. No module of the model runs inside.
inline constexpr std::string_view kCompiledPackage = "AOTInductor package";
constexpr bool is_compiled_code(std::string_view op) { return op == kCompiledRegion || op == kCompiledPackage; }

// The purpose of memory; docs/memory.md has the rules.
enum class MemoryCategory : std::uint8_t {
  parameters,
  buffers,
  inputs,
  gradients,
  optimizer_state,
  activations,
  outputs,
  temporaries,
  other
};
inline constexpr std::array<std::string_view, 9> kMemoryCategoryNames = {"parameters", "buffers",         "inputs",
                                                                         "gradients",  "optimizer state", "activations",
                                                                         "outputs",    "temporaries",     "other"};

// Storages that were alive when most memory was: of one category, module and phase.
struct AliveMemory {
  MemoryCategory category = MemoryCategory::other;
  ModuleId module = kModel;  // whose op allocated them; of what was there before, whose it is
  Phase phase = Phase::forward;
  bool before = false;  // they were there before what was counted: no phase, and not in the peak
  std::int64_t storages = 0;
  std::int64_t bytes = 0;

  bool operator==(const AliveMemory&) const = default;
};

// The most bytes that were allocated during an interval of ops, above those before, and who ran then.
struct MemoryPoint {
  std::int64_t bytes = 0;
  ModuleId module = kModel;
  Phase phase = Phase::forward;

  bool operator==(const MemoryPoint&) const = default;
};

// The memory of a counting call over its ops. Intervals are equally long.
struct MemoryTimeline {
  std::int64_t ops_per_point = 0;  // 0: not known
  std::int64_t peak_point = -1;    // index of the interval in which most was allocated; -1: nothing was
  std::vector<MemoryPoint> points = {};

  bool operator==(const MemoryTimeline&) const = default;
};

// The memory of the whole counting call.
struct CountedMemory {
  std::optional<std::int64_t> peak_bytes = {};  // empty: not measured
  std::vector<AliveMemory> alive = {};          // at the peak, largest first; empty: not known
  MemoryTimeline timeline = {};

  bool operator==(const CountedMemory&) const = default;
};

// The bytes that hardware counters saw an op's kernels move to and from DRAM, all calls together.
struct CountedBytes {
  std::int64_t dram_bytes = 0;
  std::optional<std::int64_t> dram_read_bytes = {};  // these two where they were counted apart
  std::optional<std::int64_t> dram_write_bytes = {};
  // The bytes of the op's copies and fills, which have no counters, by their records: a copy reads and writes them.
  std::int64_t uncounted_bytes = 0;

  bool operator==(const CountedBytes&) const = default;
};

// All calls of one op in one module and phase with one signature; the unit that everything is summed from.
struct OpBucket {
  std::string op = {};  // qualified name without overload: "aten::conv2d"
  Owner owner = {};
  DType dtype = DType::other;  // compute dtype: the first tensor input's
  OpShapes shapes = {};
  bool costed = true;  // false: nothing is known of its work
  std::int64_t calls = 0;
  Work work = {};                            // of all calls together
  std::optional<std::int64_t> time_ns = {};  // all calls together; of a profile, in the run that the rows come from
  // The 80% interval of a predicted time. Empty: the time was measured, or is not known.
  std::optional<std::int64_t> time_low_ns = {};
  std::optional<std::int64_t> time_high_ns = {};
  std::int64_t floor_ns = 0;  // of a predicted time, what calls take that do nothing
  // Copied between host and device, all calls together: held against the host link in place of a memory level.
  std::int64_t link_bytes = 0;
  // True if the profile has a device's times and the op launched nothing there: it ran on the host, or was captured
  // into a graph. Its work is counted, and no roof of the device holds it.
  bool off_device = false;
  // The reuse distances of the bytes of `work`, all calls together. Where it covers fewer bytes, the rest is at the
  // distance of one call's footprint.
  Reuse reuse = {};
  std::optional<CountedBytes> counted = {};  // empty: not all of its kernels were counted, one by one
  // All calls together; known where Counts::crossings_known says so.
  Crossings crossings = {};
  // A convolution or pooling of images none of which is channels_last, in its first call.
  bool channels_first = false;
  // The op may be a kernel that a compiler generated, as traces have it. `fused`: the ops that its name tells; `code`:
  // the file of its code.
  std::vector<std::string> fused = {};
  std::string code = {};

  bool operator==(const OpBucket&) const = default;
};

struct Counts {
  std::vector<OpBucket> ops = {};
  bool crossings_known = false;  // those of all ops
  CountedMemory memory = {};
  std::map<std::string, std::int64_t> unobserved =
      {};  // module or function -> calls whose work bypassed the dispatcher

  bool operator==(const Counts&) const = default;
};

}  // namespace roofprof
