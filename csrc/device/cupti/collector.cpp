#include "device/cupti/collector.h"

#include <atomic>
#include <functional>
#include <utility>

#include "device/cupti/api.h"
#include "device/cupti/host_profiler.h"
#include "device/cupti/metric_sets.h"
#include "device/cupti/range_counting.h"
#include "device/cupti/range_session.h"
#include "device/cupti/tracer.h"
#include "device/nvidia/driver.h"

namespace roofprof::cupti {

namespace {

// The devices' records and counters are the process's: one collector at a time has them, for one of the two.
class CollectorLock {
 public:
  CollectorLock() = default;
  explicit CollectorLock(const char* purpose) {
    if (taken.exchange(true)) {
      throw CollectorError(
          std::string("the GPU's ") + purpose + " cannot be taken while another measurement of roofprof's is under way",
          "let one end before the next begins, also in other threads");
    }
    held_ = true;
  }
  CollectorLock(CollectorLock&& other) noexcept : held_(std::exchange(other.held_, false)) {}
  CollectorLock& operator=(CollectorLock&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~CollectorLock() {
    if (held_) taken = false;
  }

 private:
  static inline std::atomic<bool> taken = false;
  bool held_ = false;
};

class CuptiCollector final : public DeviceCollector {
 public:
  CuptiCollector() : tracer_(api(), [this] { synchronize(); }) {}

  bool simulated() const override { return api().simulated; }
  bool by_host_clock() const override { return within_a_second(api().real_time(), machines_real_time()); }

  void synchronize() override { cuda::synchronize_all(cuda::driver()); }

  void start_tracing(Recorded recorded) override {
    CollectorLock lock("kernel times");
    tracer_.start(recorded);
    tracing_ = std::move(lock);
  }

  LaunchMarker* marker() override { return tracer_.marker(); }
  // Calls that are only simulated need no warm-up.
  bool can_forget() const override { return by_host_clock(); }
  void forget() override { tracer_.forget(); }

  DeviceTrace stop_tracing() override {
    const CollectorLock lock(std::move(tracing_));
    return tracer_.stop();
  }

  CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) override {
    const CollectorLock lock("counters");
    return count_ranges(request, body);
  }

 private:
  CollectorLock tracing_;  // given back after the tracer has gone, which ends a trace under way
  Tracer tracer_;
};

}  // namespace

std::unique_ptr<DeviceCollector> make_collector() {
  cuda::driver();
  require_activity(api());
  return std::make_unique<CuptiCollector>();
}

namespace {

// Returns what the look found, or what prevented it.
Examined finding(const char* what, const std::function<std::string()>& look) {
  try {
    return {what, look(), ""};
  } catch (const CollectorError& error) {
    return {what, error.found(), error.advice()};
  }
}

// A trace of nothing: another profiler shows there.
std::string look_at_kernel_times(const Api& api) {
  Tracer tracer(api, [] { cuda::synchronize_all(cuda::driver()); });
  tracer.start();
  std::string found = "available";
  for (const Note& note : tracer.stop().notes) found += "; " + note.text;
  return found;
}

// ", without ..." of the counters that the chip or the system does not have.
std::string without(const CounterPlan& plan) {
  std::string names;
  for (const ResolvedCounter& counter : plan.counters) {
    if (counter.there()) continue;
    names.append(names.empty() ? ", without " : ", ")
        .append(kCounterNames[static_cast<std::size_t>(counter.source.counter)]);
  }
  return names;
}

// About the kernels of a step, or of a part of one.
constexpr std::size_t kRangesOfAModel = 1024;

// All that counting does: a missing permission or a busy device shows as late as when it starts.
std::string look_at_counters(const Api& api, bool admins_only) {
  require_counters(api);
  if (admins_only) {
    throw CollectorError(
        "no permission to read the GPU's performance counters: the driver keeps them for administrators "
        "(RmProfilingAdminOnly in /proc/driver/nvidia/params)",
        CuptiError("", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).advice());
  }
  const cuda::PrimaryContext context(cuda::driver(), 0);
  const auto cupti_context = static_cast<CUcontext>(context.get());
  const ProfilerLibrary library(api);
  check_supported(api, 0);
  const HostProfiler host(api, chip_name(api, 0), counter_availability(api, cupti_context));
  const CounterPlan plan = plan_counters(host, {});
  std::size_t ranges = kRangesOfAModel;
  for (const MetricGroup& group : plan.groups) {
    RangeSession session(*group.configuration, cupti_context, RangeMode::kernels, {ranges, ranges});
    ranges = session.rooms();
    session.start();
    session.stop();
  }
  return "available on cuda:0 (chip " + host.chip() + ")" + without(plan) +
         (ranges < kRangesOfAModel ? ", " + std::to_string(ranges) + " kernels in one run" : "");
}

}  // namespace

void examine(bool admins_only, std::vector<Examined>& findings) {
  const Api* api = nullptr;
  findings.push_back(finding("CUPTI", [&] {
    api = &cupti::api();
    return version_text(api->version) + ", " + api->how + " (" + api->path + ")" +
           (api->simulated ? ", simulated" : "");
  }));
  if (api == nullptr) return;
  findings.push_back(finding("kernel times", [&] { return look_at_kernel_times(*api); }));
  findings.push_back(finding("counters", [&] { return look_at_counters(*api, admins_only); }));
}

}  // namespace roofprof::cupti
