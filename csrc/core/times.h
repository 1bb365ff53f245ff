#pragma once
// Holds what was timed, or predicted: modules, kernels of compiled code, and single events.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "core/ids.h"
#include "roofprof/work.h"

namespace roofprof {

// The time that a module's own code took (children excluded) and its calls, in one phase and region.
struct ModuleTime {
  Owner owner = {};
  std::int64_t calls = 0;
  std::vector<std::int64_t> self_ns = {};       // one figure for each timed run; empty: not timed
  std::vector<std::int64_t> host_self_ns = {};  // the host's times, where self_ns has a device's; else empty

  bool operator==(const ModuleTime&) const = default;
};

// A module whose ops a kernel of compiled code runs, and its part of the kernel's work.
struct KernelPart {
  ModuleId module = kModel;
  double share = 1;  // 0-1, of the kernel's work

  bool operator==(const KernelPart&) const = default;
};

// A kernel that torch.compile generated, or an operator that its code calls, in one place of that code; all its calls
// in one run.
struct CompiledKernel {
  std::string name = {};
  std::int64_t id = 0;     // from 1 on, where its launches on a device are known; 0: it ran on a CPU
  Owner owner = {kModel};  // the innermost module that holds all parts; that of the region where none is known
  bool attributed = true;  // false: none is known
  std::vector<std::string> ops = {};   // that it runs, each once
  std::vector<KernelPart> parts = {};  // largest first
  std::string code = {};               // where it is generated or called, "FILE:LINE"; empty: not known
  std::string source = {};             // the line of the user's code that it comes from
  bool costed = true;                  // false: the work of some of its ops is not known
  Work work = {};                      // of all calls; bytes are those of the kernel's inputs and outputs
  std::int64_t unfused_bytes = 0;      // that its ops would move one by one
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;  // its part of the region's time, in the run that the rows come from
  std::int64_t min_ns = 0;    // of the calls in all runs of the kernels
  std::int64_t max_ns = 0;
  std::int64_t median_ns = 0;
  double stddev_ns = 0;

  bool operator==(const CompiledKernel&) const = default;
};

// The number of events of a run that are kept where they are requested; as many launches are kept.
inline constexpr std::int64_t kEventsKept = 1'000'000;

enum class EventKind : std::uint8_t {
  op,
  transparent,  // an op that may launch kernels, where ops that it called count in its place
  module,
  region
};
inline constexpr std::array<std::string_view, 4> kEventKindNames = {"op", "transparent", "module", "region"};

// One call of an op or a module, or a region from its opening to its end, by the host's clock. Ops are those that
// count: what each of them took without those inside it adds up to the clock's time of its bucket.
struct Event {
  std::int64_t id = 0;  // from 1 on, another one for each event of the run
  EventKind kind = EventKind::op;
  std::int64_t thread = 0;  // 0 is that of the first event
  // The module whose row it is in, or where a region without a row was opened; the region that was open, or a region's
  // own.
  Owner owner = {};
  std::int64_t name = -1;     // of an op: index into Events::names; -1: none
  std::int64_t bucket = -1;   // of an op: index into Counts::ops; -1: it is in none by itself
  std::int64_t begin_ns = 0;  // from the run's start on
  std::int64_t end_ns = 0;

  bool operator==(const Event&) const = default;
};

// One launch, by the same clock.
struct LaunchEvent {
  KernelKind kind = KernelKind::kernel;
  std::int64_t name = -1;  // index into Events::names; -1: none
  std::int64_t event = 0;  // the op's that launched it; 0: none, or it is not known
  std::int64_t device = 0;
  std::int64_t stream = 0;
  Owner owner = {kOutside};
  std::int64_t bucket = -1;  // index into Counts::ops; -1: none, or more than one
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool operator==(const LaunchEvent&) const = default;
};

// The single events of the run that the rows come from.
struct Events {
  bool kept = false;                     // they were requested
  std::vector<std::string> names = {};   // of ops and kernels
  std::vector<Event> host = {};          // by their begin, outer ones first
  std::vector<LaunchEvent> device = {};  // by their begin
  std::int64_t left_out = 0;             // left out for lack of room

  bool operator==(const Events&) const = default;
};

struct Times {
  std::vector<ModuleTime> modules =
      {};                   // of a device's kernels where the profile has what ran on one, else the clock's
  double common_error = 1;  // of predicted times: the share of the squared error that all have in common
  std::vector<CompiledKernel> compiled_kernels = {};  // longest total first; empty: nobody asked
  Events events = {};

  bool operator==(const Times&) const = default;
};

}  // namespace roofprof
