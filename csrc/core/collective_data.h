#pragma once
// Data about collectives, the calls between the ranks of a program: as a pass observed them, and as a profile keeps
// them.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/interval.h"

namespace roofprof {

// The number of collectives of a run that get times; all are counted.
inline constexpr std::int64_t kCollectivesTimed = 4096;
// The number of stretches of computing that are kept for each thread while collectives are under way.
inline constexpr std::size_t kComputedKept = 1 << 18;

// Ranks that call collectives together.
struct ProcessGroup {
  std::string name;          // the same on all of its ranks
  std::string backend;       // "gloo", "nccl"
  std::int64_t ranks = 0;    // 0: not known
  std::int64_t hosts = 0;    // that its ranks run on; of a merged profile, else 0
  std::string members = {};  // its ranks, "[0, 1]", where a trace says; groups of one name may differ in them

  bool operator==(const ProcessGroup&) const = default;
};

// One call, on a clock that all processes of a host share (std::chrono::steady_clock).
struct CollectiveCall {
  std::int64_t collective = -1;  // index into CollectiveData::collectives; of a pass: into PassCollectives::counts
  std::int64_t sequence = -1;    // in its group, from the run's start on; -1: not all of the group take part
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool operator==(const CollectiveCall&) const = default;
};

// A stretch in which a thread ran code of one module, phase and region.
struct RanIn {
  Owner owner;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// The collectives that a pass observed.
struct PassCollectives {
  // All calls of an operator with one signature in one group.
  struct Count {
    std::int64_t op = -1;  // index into Pass::ops
    std::int64_t group = -1;
    std::int64_t calls = 0;
    bool uneven = false;  // ranks give each other parts of different sizes
  };
  std::vector<ProcessGroup> groups;
  std::vector<Count> counts;
  std::vector<CollectiveCall> calls;  // whose ends are known
  std::int64_t left_out = 0;          // left out for lack of room
  std::int64_t unfinished = 0;        // still under way when the pass ended, or failed
  std::int64_t without_end = 0;       // whose backend does not tell when they end
  std::vector<RanIn> ran;             // where they overlap collectives
  bool all_ran = true;                // false: some were left out for lack of room
  Intervals computed;                 // ops that compute, where they overlap collectives
  std::int64_t computed_until = std::numeric_limits<std::int64_t>::max();  // later ones were not kept
  bool of_kernels = false;  // calls last as long as their kernels, and `computed` are kernels: a trace tells both
};

// All calls of one operator bucket in one group.
struct CollectiveBucket {
  std::int64_t bucket = -1;  // index into Counts::ops
  std::int64_t group = -1;   // index into CollectiveData::groups
  std::int64_t calls = 0;
  std::int64_t timed_calls = 0;  // those that the times are of
  std::int64_t time_ns = 0;      // from their calls to their ends
  // The part of time_ns in which no op computed. Where several collectives are under way at once, that time is shared
  // equally.
  std::int64_t exposed_ns = 0;
  bool exposed_known = false;
  std::int64_t waited_calls = 0;  // of a merged profile: those that were found on all ranks of the group
  std::int64_t wait_ns = 0;       // of these: until the last rank called it
  std::int64_t transfer_ns = 0;   // of these: from then on
  bool uneven = false;            // how much the busiest rank sends is not known
  std::string algorithm = {};     // "RING LL", by the names of kernels; empty: not known

  bool operator==(const CollectiveBucket&) const = default;
};

// The part of a collective's exposed time that is also a module's own time. The module is the one that ran in that
// time, whichever module caused the collective.
struct ExposedIn {
  std::int64_t collective = -1;  // index into CollectiveData::collectives
  Owner owner;
  std::int64_t exposed_ns = 0;

  bool operator==(const ExposedIn&) const = default;
};

struct CollectiveData {
  std::vector<ProcessGroup> groups;
  std::vector<CollectiveBucket> collectives;
  std::vector<ExposedIn> exposed_in;  // empty: nothing was exposed, or it is not known where
  std::vector<CollectiveCall> calls;  // in the order of their begins; none in a merged profile
  // While any was under way, and of it, while no op computed; empty: not known.
  std::optional<std::int64_t> time_ns;
  std::optional<std::int64_t> exposed_ns;

  bool operator==(const CollectiveData&) const = default;
};

}  // namespace roofprof
