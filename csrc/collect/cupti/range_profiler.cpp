#include "collect/cupti/range_profiler.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collect/cupti/counter_plan.h"
#include "collect/cupti/module_ranges.h"
#include "collect/cupti/range_session.h"
#include "nvidia/driver.h"

namespace roofprof::cupti {
namespace {

using Body = std::function<void(LaunchMarker*)>;

// How many ranges to make room for. A launch is one range; by module, entering and leaving a module are a range each,
// and many have no launch of their own.
constexpr std::size_t kFewestRooms = 2048;
constexpr std::size_t kRoomsPerLaunch = 2;
constexpr std::size_t kModuleRoomsPerLaunch = 4;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

int device_for(const CounterRequest& request, const cuda::Driver& driver) {
  if (request.device) return *request.device;
  if (const auto current = cuda::current_device(driver)) return *current;
  const std::vector<int> active = cuda::active_devices(driver);
  if (!active.empty()) return active.front();
  throw CollectorError("no device is in use whose counters could be read", "run something on it first");
}

// Keeps the device's context, whatever the body does, without making it this thread's.
class HeldContext {
 public:
  HeldContext(const cuda::Driver& driver, int device) : driver_(driver), device_(device) {
    const cuda::PrimaryContext context(driver, device);  // says what is wrong where it cannot be had
    driver_.primary_retain(&context_, device_);
  }
  ~HeldContext() { driver_.primary_release(device_); }
  HeldContext(const HeldContext&) = delete;
  HeldContext& operator=(const HeldContext&) = delete;

 private:
  const cuda::Driver& driver_;
  cuda::Device device_;
  cuda::Context context_ = nullptr;
};

void note_other_devices(int device, const cuda::Driver& driver, CounterTrace& trace) {
  std::string others;
  for (const int active : cuda::active_devices(driver)) {
    if (active != device) others.append(others.empty() ? "cuda:" : ", cuda:").append(std::to_string(active));
  }
  if (others.empty()) return;
  add_note(trace.notes, "counters-of-one-device",
           "the counters are of cuda:" + std::to_string(device) + " alone; this process uses " + others + " too");
}

std::vector<std::uint8_t> ask_availability(const Api& api, CUcontext context, CounterTrace& trace) {
  try {
    return counter_availability(api, context);
  } catch (const CuptiError& error) {  // if that prevents counting, switching the counters on will say so
    add_note(trace.notes, "counter-access-not-known",
             "which counters this system allows is not known: " + error.found());
    return {};
  }
}

HostProfiler host_for(int device, const Api& api, CounterTrace& trace) {
  const cuda::PrimaryContext context(cuda::driver(), device);
  check_supported(api, device);
  trace.chip = chip_name(api, static_cast<std::size_t>(device));
  return {api, trace.chip, ask_availability(api, static_cast<CUcontext>(context.get()), trace)};
}

// Runs the body once for each pass, in the context that the caller left it in.
void run_passes(RangeSession& session, ModuleRanges* modules, std::size_t announced, int device, const Body& body,
                CounterTrace& trace) {
  const cuda::Driver& driver = cuda::driver();
  for (std::size_t pass = 0;; ++pass) {
    if (pass > announced) {
      throw CollectorError("CUPTI announced " + std::to_string(announced) + " passes and asks for more");
    }
    {
      const cuda::PrimaryContext context(driver, device);
      session.start();
      if (modules != nullptr) modules->begin_pass();
    }
    ++trace.passes;
    body(modules);
    const cuda::PrimaryContext context(driver, device);
    if (modules != nullptr) modules->end_pass();
    cuda::synchronize_all(driver);
    const bool last = session.stop();
    if (modules != nullptr) modules->check();
    if (last) return;
  }
}

// The ranges of a session after its last pass. opened: whose the ranges of modules were, whose metrics are added up, so
// that one which is not a number makes its sum none; null for ranges of kernels, which are their own.
RangeTable read_ranges(RangeSession& session, std::size_t metrics, const std::vector<LaunchId>* opened,
                       CounterTrace& trace) {
  const std::size_t dropped = session.decode();
  trace.dropped = std::max(trace.dropped, static_cast<std::int64_t>(dropped));
  const std::size_t ranges = session.range_count();
  std::vector<bool> seen(opened != nullptr ? opened->size() : 0);
  std::size_t not_evaluated = 0;
  CUptiResult why = CUPTI_SUCCESS;
  RangeTable table;
  for (std::size_t range = 0; range < ranges; ++range) {
    std::vector<double> values(metrics, kUnknown);
    if (const CUptiResult result = session.evaluate(range, values); result != CUPTI_SUCCESS) {
      std::ranges::fill(values, kUnknown);
      ++not_evaluated;
      why = result;
    }
    const RangeName name = read_range_name(session.range_name(range));
    if (name.ordinal < seen.size()) seen[name.ordinal] = true;
    const std::uint64_t key = opened != nullptr ? name.id : name.ordinal;
    std::vector<double>& sums = table.try_emplace(key, metrics, 0.0).first->second;
    std::ranges::transform(sums, values, sums.begin(), std::plus());
  }
  // A range without kernels may be left out; but where there was no room for all, it may have had some.
  if (dropped > 0) {
    for (std::size_t ordinal = 0; ordinal < seen.size(); ++ordinal) {
      if (!seen[ordinal]) table[(*opened)[ordinal]].assign(metrics, kUnknown);
    }
  }
  if (not_evaluated > 0) {
    add_note(trace.notes, "counters-not-evaluated",
             "CUPTI could not work out counters of " + std::to_string(not_evaluated) + " of " + std::to_string(ranges) +
                 " ranges (" + std::string(error_name(why)) + ")");
  }
  return table;
}

RangeSession open_session(const MetricGroup& group, int device, const CounterRequest& request) {
  const std::size_t per_launch = request.ranges == CounterRanges::modules ? kModuleRoomsPerLaunch : kRoomsPerLaunch;
  const auto expected = static_cast<std::size_t>(std::max<std::int64_t>(request.expected_launches, 0));
  const cuda::PrimaryContext context(cuda::driver(), device);
  return {*group.configuration, static_cast<CUcontext>(context.get()), request.ranges,
          std::max(kFewestRooms, per_launch * expected)};
}

RangeTable count_group(const MetricGroup& group, const CounterRequest& request, int device, const Body& body,
                       CounterTrace& trace) {
  const Configuration& configuration = *group.configuration;
  RangeSession session = open_session(group, device, request);
  std::optional<ModuleRanges> modules;
  if (request.ranges == CounterRanges::modules) modules.emplace(session);
  run_passes(session, modules ? &*modules : nullptr, configuration.passes(), device, body, trace);
  if (modules && modules->threads_took_turns()) {
    add_note(trace.notes, "counters-between-threads",
             "several threads were in modules at once: what they launched counts for the module that was entered last, "
             "and while one range gives way to another for none");
  }
  const cuda::PrimaryContext context(cuda::driver(), device);
  return read_ranges(session, configuration.metrics().size(), modules ? &modules->opened() : nullptr, trace);
}

// Puts a group's columns into the table, whose rows the first group makes.
void add_columns(MetricGroup& group, bool first, std::size_t columns, const RangeTable& counted, RangeTable& table) {
  const auto same_range = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!first && !std::ranges::equal(counted, table, same_range)) {
    group.failure = "the code did not launch the same in each run: " + std::to_string(table.size()) +
                    " ranges in the first one, " + std::to_string(counted.size()) + " in that of this counter";
    return;
  }
  for (const auto& [range, values] : counted) {
    std::vector<double>& row = table.try_emplace(range, columns, kUnknown).first->second;
    std::ranges::copy(values, row.begin() + static_cast<std::ptrdiff_t>(group.first_column));
  }
}

}  // namespace

CounterTrace count_ranges(const CounterRequest& request, const Body& body) {
  const Api& api = cupti::api();
  require_counters(api);
  const cuda::Driver& driver = cuda::driver();
  const int device = device_for(request, driver);
  const HeldContext held(driver, device);
  const ProfilerLibrary library(api);
  CounterTrace trace;
  trace.ranges = request.ranges;
  note_other_devices(device, driver, trace);
  const HostProfiler host = host_for(device, api, trace);
  CounterPlan plan = plan_counters(host, request);
  RangeTable table;
  for (MetricGroup& group : plan.groups) {
    const bool first = &group == &plan.groups.front();
    try {
      add_columns(group, first, plan.columns, count_group(group, request, device, body, trace), table);
    } catch (const CuptiError& error) {  // of the others there may still be values
      if (first) throw;
      group.failure = error.found();
    }
  }
  write_counters(std::move(plan), table, trace);
  return trace;
}

}  // namespace roofprof::cupti
