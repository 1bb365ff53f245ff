#pragma once
// Holds the plain data of one pass. A pass is one call of the model, or one block, observed from its start to its end.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/collective_data.h"
#include "core/device_data.h"
#include "core/profile.h"

namespace roofprof {

// The signature of inputs that are not distinguished. A hash has this value once in 2^64.
inline constexpr std::uint64_t kAnyInputs = ~std::uint64_t{0};

// The number of autograd nodes of each thread that are remembered; older ones are forgotten.
inline constexpr std::uint64_t kNodesRemembered = 1U << 16;

// All calls of one operator in one module, phase and region with one signature. Equal in all passes of a process.
struct OpKey {
  std::uint32_t op = 0;  // the operator's number, another one for each overload; 0: no operator
  Owner owner;
  std::uint64_t signature = 0;
  auto operator<=>(const OpKey&) const = default;
};

// The begin and end of single ops and frames of a pass, where they are kept.
struct PassEvents {
  std::vector<Event> host;         // in any order; `bucket` is an index into Pass::ops, `thread` any number
  std::vector<std::string> names;  // of ops that are looked through, for their `name`
  std::int64_t left_out = 0;
};

// Memory that was allocated during a pass; peaks are above what was allocated before.
struct PassMemory {
  struct Module {
    ModuleId module = kModel;
    std::int64_t peak_bytes = 0;             // of the call that had most
    std::optional<std::int64_t> kept_bytes;  // of all calls in the forward; empty: not known, or none
  };
  std::int64_t peak_bytes = 0;
  std::vector<Module> modules;
  std::vector<AliveMemory> alive;  // at the peak, and what was there before
  MemoryTimeline timeline;
};

// Memory that the listener observed.
struct MemorySeen {
  PassMemory cpu;
  PassMemory meta;            // by the sizes of tensors without memory (meta, fake), between ops
  bool meta_unsized = false;  // the size of some is not known
  // Memory on devices whose allocators cannot be listened to, also by the sizes of tensors.
  PassMemory watched;
  std::vector<std::string> watched_devices;  // where tensors were made, such as "cuda:0"
  bool watched_unknown = false;              // the memory of some is not known
  bool watches_cpu = false;                  // the CPU is one of them
  std::string why_not;                       // nothing could be seen, and why
};

// One call of a graph that was compiled for its kernels: what ran in it, in order.
struct GraphCall {
  struct Range {
    std::string name;
    std::int64_t ns = 0;
  };
  std::int64_t graph = 0;  // index into RunRecord::graphs
  Owner owner;
  std::vector<Range> ranges;
};

// The parts of a long block (calls of the model, or steps), and of how many the traffic of ops was logged.
struct TrafficParts {
  std::int64_t all = 0;  // 0: it has none, and its first ops were logged
  std::int64_t logged = 0;
  bool are_steps = false;
};

// Bytes that calls of an op moved whose traffic was not logged.
struct BytesLeftOut {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;

  bool any() const { return read_bytes > 0 || write_bytes > 0; }
};

// The sums of one pass, threads merged. Two passes of the same work have equal `ops` but for their times.
struct Pass {
  // An op's record as the profile keeps it, and what tells it from others as long as the process lasts.
  struct Op : OpBucket {
    enum class Kind : std::uint8_t {
      op,
      compiled_region,      // compiled code, which dispatches little of what it does
      unobserved_function,  // no op: an autograd function whose work bypassed the dispatcher
      unobserved_module,    // no op: a module whose work bypassed the dispatcher
      tracing               // no work: shapes were computed, or code was traced, in a call that has data
    };
    std::uint32_t number = 0;  // the operator's; 0: compiled code, which the join adds
    std::uint64_t signature = 0;
    std::uint64_t inputs = 0;  // the signature of the inputs alone; kAnyInputs: of several
    Kind kind = Kind::op;
    bool without_data = false;  // its tensors are on the meta device, or fake

    bool is_unobserved() const { return kind == Kind::unobserved_function || kind == Kind::unobserved_module; }
    // Returns true where the op did something, or where nothing is known of it.
    bool has_work() const { return kind != Kind::tracing && (!costed || work != Work{}); }
    OpKey key() const { return {number, owner, signature}; }
    OpKey inputs_key() const { return {number, owner, inputs}; }
  };
  struct Clock {
    Owner owner;
    std::int64_t calls = 0;
    std::int64_t self_ns = 0;
  };
  struct RegionClock {
    RegionId region = kNoRegion;
    std::int64_t calls = 0;
    std::int64_t wall_ns = 0;
  };
  std::vector<Op> ops;
  std::vector<Clock> clocks;
  std::vector<RegionClock> regions;
  bool crossings_known = false;         // of all ops
  std::optional<TrafficParts> sampled;  // reuse distances and crossings are estimated from these; empty: from all calls
  Work outside_steps;                   // what of the work was in no step of a block: between them, or after the last
  std::int64_t wall_ns = 0;
  std::int64_t unknown_backward_nodes = 0;
  std::set<ModuleId> differentiated_whole;      // by TorchScript's executor: parts of these modules' code
  std::set<ModuleId> uncertain_places;          // modules with several places: it is unknown which one was called
  bool ops_elsewhere = false;                   // on threads that no scope was open on
  std::int64_t threads_inside = 0;              // other threads that were inside modules when the pass ended
  std::map<std::string, std::string> failures;  // op -> why its cost could not be computed
  std::optional<MemorySeen> memory;             // empty where nobody asked
  std::shared_ptr<const DeviceTrace> device;    // what devices did meanwhile, where they were traced
  std::shared_ptr<const PassEvents> events;     // where they were requested
  PassCollectives collectives;
  std::vector<GraphCall> graph_calls;
  std::int64_t trace_start_ns = 0;  // of the device's trace, from the pass's start on: below 0
};

// Returns whether both passes have the same ops with the same calls: one is a repeat of the other.
bool same_work(const Pass& a, const Pass& b);

bool ran_compiled_code(const Pass& pass);

// Returns where in `ops` each op stands, without compiled code that the join added.
std::map<OpKey, std::int64_t> indices_by_key(const std::vector<Pass::Op>& ops);

// Gives each op of `pass` the reuse distances and crossings of the same op in `from`, scaled to its calls.
void take_traffic(Pass& pass, const Pass& from);

// Scales the reuse distances and crossings of ops, which are those of logged calls, to all calls: reads by all bytes
// read, and writes by all bytes written. `left_out`: the bytes of each op's other calls. An op without a logged call
// gets the traffic of calls of the same operator and module with other inputs; where there are none either, all of it
// may cross every boundary.
void scale_traffic(Pass& pass, const std::vector<BytesLeftOut>& left_out);

}  // namespace roofprof
