#include "device/cupti/range_profiler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "device/cupti/counter_plan.h"
#include "device/cupti/range_counting.h"
#include "device/cupti/range_session.h"
#include "device/nvidia/driver.h"

namespace roofprof::cupti {
namespace {

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

CounterTrace count_ranges(const CounterRequest& request, const RangeCounting::Body& body) {
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
  RangeCounting counting(request, device, body, trace);
  for (MetricGroup& group : plan.groups) {
    const bool first = &group == &plan.groups.front();
    try {
      add_columns(group, first, plan.columns, counting.count(*group.configuration), table);
    } catch (const CuptiError& error) {  // of the others there may still be values
      if (first) throw;
      group.failure = error.found();
    }
  }
  write_counters(std::move(plan), table, trace);
  return trace;
}

}  // namespace roofprof::cupti
