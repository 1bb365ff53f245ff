#include "device/cupti/range_profiler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cupti/counter_plan.h"
#include "device/cupti/module_ranges.h"
#include "device/cupti/range_session.h"

namespace roofprof::cupti {
namespace {

using Body = std::function<void(LaunchMarker*)>;

// The metrics of a group by CounterRecord::range; of modules the sums over their ranges. One that is not a number makes
// its sum none.
using RangeValues = std::map<std::uint64_t, std::vector<double>>;

constexpr std::size_t kFewestRooms = 512;

std::size_t rooms_for(const CounterRequest& request) {
  return std::max(kFewestRooms, 2 * static_cast<std::size_t>(std::max<std::int64_t>(request.expected_launches, 0)));
}

// Runs the body once for each pass.
void run_passes(RangeSession& session, ModuleRanges* ranges, std::size_t announced, const Body& body,
                CounterTrace& trace) {
  for (std::size_t pass = 0;; ++pass) {
    if (pass > announced) {
      throw CollectorError("CUPTI announced " + std::to_string(announced) + " passes and asks for more");
    }
    session.start();
    if (ranges != nullptr) ranges->begin_pass();
    ++trace.passes;
    body(ranges);
    if (ranges != nullptr) ranges->end_pass();
    cuda::synchronize_all(cuda::driver());
    const bool last = session.stop();
    if (ranges != nullptr) ranges->check();
    if (last) return;
  }
}

void add_note(std::string note, CounterTrace& trace) {
  if (std::ranges::find(trace.notes, note) == trace.notes.end()) trace.notes.push_back(std::move(note));
}

// After the last pass. opened: whose the ranges of modules were; null for ranges of kernels, which are their own.
RangeValues read_values(RangeSession& session, std::size_t metrics, const std::vector<LaunchId>* opened,
                        CounterTrace& trace) {
  const std::size_t dropped = session.decode();
  trace.dropped = std::max(trace.dropped, static_cast<std::int64_t>(dropped));
  const auto key = [opened](std::size_t ordinal) { return opened != nullptr ? opened->at(ordinal) : ordinal; };
  RangeValues sums;
  std::vector<bool> seen(opened != nullptr ? opened->size() : 0);
  std::size_t not_evaluated = 0;
  CUptiResult why = CUPTI_SUCCESS;
  const std::size_t ranges = session.range_count();
  for (std::size_t range = 0; range < ranges; ++range) {
    std::vector<double> values(metrics, std::numeric_limits<double>::quiet_NaN());
    if (const CUptiResult result = session.evaluate(range, values); result != CUPTI_SUCCESS) {
      std::ranges::fill(values, std::numeric_limits<double>::quiet_NaN());
      ++not_evaluated;
      why = result;
    }
    const std::size_t ordinal = range_ordinal(session.range_name(range));
    if (ordinal < seen.size()) seen[ordinal] = true;
    std::vector<double>& sum = sums.try_emplace(key(ordinal), metrics, 0.0).first->second;
    std::ranges::transform(sum, values, sum.begin(), std::plus());
  }
  // Ranges without kernels may be left out; but where there was no room, it may have been theirs.
  if (dropped > 0) {
    for (std::size_t ordinal = 0; ordinal < seen.size(); ++ordinal) {
      if (!seen[ordinal]) sums[key(ordinal)].assign(metrics, std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (not_evaluated > 0) {
    add_note("CUPTI could not work out counters of " + std::to_string(not_evaluated) + " of " + std::to_string(ranges) +
                 " ranges (" + std::string(error_name(why)) + ")",
             trace);
  }
  return sums;
}

RangeValues count_group(const CounterGroup& group, const CounterRequest& request, CUcontext context, const Body& body,
                        CounterTrace& trace) {
  const Configuration& configuration = *group.configuration;
  RangeSession session(configuration, context, request.ranges, rooms_for(request));
  std::optional<ModuleRanges> modules;
  if (request.ranges == CounterRanges::modules) modules.emplace(session);
  run_passes(session, modules ? &*modules : nullptr, configuration.passes(), body, trace);
  if (modules && modules->threads_took_turns()) {
    add_note("several threads were in modules at once: what they launched counts for the module that was entered last",
             trace);
  }
  return read_values(session, configuration.metrics().size(), modules ? &modules->opened() : nullptr, trace);
}

bool same_ranges(const RangeValues& values, const std::map<std::uint64_t, CounterValues>& records) {
  return std::ranges::equal(values, records, [](const auto& a, const auto& b) { return a.first == b.first; });
}

// Writes a group's counters to the records, which the first group makes.
void add_group(const CounterGroup& group, const RangeValues& values, CounterPlan& plan,
               std::map<std::uint64_t, CounterValues>& records) {
  const bool first = &group == &plan.groups.front();
  const bool fits = first || same_ranges(values, records);
  std::size_t from = 0;
  for (const std::size_t index : group.counters) {
    ResolvedCounter& counter = plan.counters[index];
    const std::size_t metrics = counter.source.metrics.size();
    if (fits) {
      for (const auto& [range, metric_values] : values) {
        records[range][static_cast<std::size_t>(counter.source.counter)] =
            evaluate(counter, std::span(metric_values).subspan(from, metrics));
      }
    } else {
      counter.source.missing = "the code did not launch the same in each run: " + std::to_string(records.size()) +
                               " ranges when the first counters were taken, " + std::to_string(values.size()) +
                               " for these";
    }
    from += metrics;
  }
}

std::vector<std::uint8_t> ask_availability(const Api& api, CUcontext context, CounterTrace& trace) {
  try {
    return counter_availability(api, context);
  } catch (const CuptiError& error) {  // if that is in the counters' way, it will be said when they are switched on
    trace.notes.push_back("which counters this system allows is not known: " + error.found());
    return {};
  }
}

void note_other_devices(int device, CounterTrace& trace) {
  std::string others;
  for (const int active : cuda::active_devices(cuda::driver())) {
    if (active != device) others += (others.empty() ? "cuda:" : ", cuda:") + std::to_string(active);
  }
  if (others.empty()) return;
  trace.notes.push_back("counters are of cuda:" + std::to_string(device) + " alone, of this process's other devices (" +
                        others + ") there are none");
}

}  // namespace

CounterTrace count_ranges(const CounterRequest& request, const Body& body) {
  const Api& api = cupti::api();
  require_counters(api);
  const cuda::Driver& driver = cuda::driver();
  const auto context = static_cast<CUcontext>(cuda::current_context(driver));
  const std::optional<int> device = cuda::current_device(driver);
  if (context == nullptr || !device) {
    throw CollectorError("this thread has no CUDA context to count in", "run something on the device first");
  }

  const ProfilerLibrary library(api);
  check_supported(api, *device);
  CounterTrace trace;
  trace.ranges = request.ranges;
  trace.chip = chip_name(api, static_cast<std::size_t>(*device));
  note_other_devices(*device, trace);
  const HostProfiler host(api, trace.chip, ask_availability(api, context, trace));
  CounterPlan plan = plan_counters(host, request);
  std::map<std::uint64_t, CounterValues> records;
  for (const CounterGroup& group : plan.groups) {
    try {
      add_group(group, count_group(group, request, context, body, trace), plan, records);
    } catch (const CuptiError& error) {
      if (&group == &plan.groups.front()) throw;
      for (const std::size_t index : group.counters) plan.counters[index].source.missing = error.found();
    }
  }
  for (ResolvedCounter& counter : plan.counters) trace.sources.push_back(std::move(counter.source));
  for (const auto& [range, values] : records) trace.records.push_back({range, values});
  return trace;
}

}  // namespace roofprof::cupti
