#include "profiler/device_runs.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

#include "core/device/device_join.h"
#include "core/device/kernel_serialisation.h"
#include "device/cpu/environment.h"
#include "device/gpu/environment.h"
#include "device/gpu/target.h"

namespace roofprof {
namespace {

bool is_cuda(const std::string& device) { return device == "cuda" || device.starts_with("cuda:"); }

// Kept for the life of the process: threads of the user's may still tell their launches when a trace is over.
DeviceCollector& collector_of(const std::string& device) {
  static std::mutex mutex;
  static auto* collectors = new std::map<std::string, DeviceCollector*>;
  const std::lock_guard lock(mutex);
  auto& collector = (*collectors)[device.substr(0, device.find(':'))];
  if (collector == nullptr) collector = make_collector(device).release();
  if (collector == nullptr) throw CollectorError("there is no collector for " + device);
  return *collector;
}

// CUPTI serves one client, and does not say when torch's profiler becomes it.
void refuse_beside_torchs_profiler() {
  if (torch::profiler::impl::profilerEnabled()) {
    throw CollectorError(
        "torch.profiler is active, and a GPU serves one profiler at a time: profile outside of its "
        "block");
  }
}

// A marker that is there for good, for one that is not.
class Relay final : public LaunchMarker {
 public:
  static Relay& instance() {
    static auto* relay = new Relay;
    return *relay;
  }
  void tell(LaunchMarker* marker) {
    const std::lock_guard lock(mutex_);
    to_ = marker;
  }
  void push(LaunchId id, LaunchLevel level) noexcept override {
    const std::lock_guard lock(mutex_);
    if (to_ != nullptr) to_->push(id, level);
  }
  void pop(LaunchLevel level) noexcept override {
    const std::lock_guard lock(mutex_);
    if (to_ != nullptr) to_->pop(level);
  }

 private:
  std::mutex mutex_;
  LaunchMarker* to_ = nullptr;
};

std::int64_t kernels_in(const DeviceTrace& trace) {
  return std::ranges::count(trace.records, KernelKind::kernel, &KernelRecord::kind);
}

// The device that all kernels ran on; which need not be this thread's current one.
std::optional<int> only_device(const DeviceTrace& trace) {
  std::optional<int> only;
  for (const KernelRecord& record : trace.records) {
    if (record.kind != KernelKind::kernel) continue;
    if (only && *only != static_cast<int>(record.device)) return std::nullopt;
    only = static_cast<int>(record.device);
  }
  return only;
}

CounterRequest request_for(Counters counters, const DeviceTrace& trace) {
  CounterRequest request;
  request.executed_flops = counters == Counters::flops;
  request.ranges = counters == Counters::modules ? CounterRanges::modules : CounterRanges::kernels;
  request.expected_launches = kernels_in(trace);
  request.device = only_device(trace);
  return request;
}

// What a clock says on the host is no time of the device's; that of whole runs is, as they end when the device has.
void forget_times_of_parts(ProfileData& data) {
  for (auto& time : data.times) time.self_ns.clear();
  for (auto& bucket : data.ops) bucket.time_ns.reset();
}

}  // namespace

Environment environment_of(const std::string& device) {
  auto environment = cpu_environment();
  if (is_cuda(device)) std::ranges::move(gpu_environment(device), std::back_inserter(environment));
  return environment;
}

std::string untimed_on(const std::string& device) {
  if (device == "cpu" || is_cuda(device)) return "";
  if (device == "meta") return "not timed: tensors on the meta device hold no data";
  return "not timed: kernel times on " + device + " need a device collector, which this version lacks";
}

// One profile at a time has the collectors.
class DeviceRuns::Claim {
 public:
  Claim() {
    if (taken().exchange(true)) {
      throw CollectorError(
          "another profile of this process is tracing the device, and one can at a time: let it end first");
    }
  }
  ~Claim() { taken() = false; }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  static std::atomic<bool>& taken() {
    static std::atomic<bool> is_taken{false};
    return is_taken;
  }
};

DeviceRuns::DeviceRuns(std::string device, Counters counters)
    : device_(is_cuda(device) ? std::move(device) : ""), counters_(counters) {
  if (device_.empty()) return;
  try {
    collector_ = &collector_of(device_);
  } catch (const CollectorError& error) {
    note("no kernel times and no counters", error.what());
  }
}

DeviceRuns::~DeviceRuns() {
  if (claim_) collector_->stop_tracing();
}

void DeviceRuns::note(const std::string& what, const std::string& why) {
  auto text = what + ": " + why;
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(std::move(text));
}

void DeviceRuns::synchronize() {
  if (device_.empty() || !lost_.empty()) return;
  try {
    if (collector_ != nullptr) {
      collector_->synchronize();
    } else if (at::detail::getCUDAHooks().hasCUDA()) {
      at::detail::getCUDAHooks().deviceSynchronize(c10::Device(device_).index());
    }
  } catch (const CollectorError& error) {
    lost_ = error.what();
  } catch (const c10::Error& error) {
    lost_ = error.what_without_backtrace();
  }
  if (!lost_.empty()) note("the device is lost", lost_);
}

LaunchMarker* DeviceRuns::start_tracing() {
  if (collector_ == nullptr || !lost_.empty()) return nullptr;
  try {
    refuse_beside_torchs_profiler();
    auto claim = std::make_unique<Claim>();
    collector_->start_tracing();
    claim_ = std::move(claim);
    return collector_->marker();
  } catch (const CollectorError& error) {
    synchronize();  // the device may be what failed: then nothing else can be tried, and what was traced stands
    if (!lost_.empty()) return nullptr;
    note("no kernel times and no counters", error.what());
    collector_ = nullptr;
    return nullptr;
  }
}

std::shared_ptr<const DeviceTrace> DeviceRuns::stop_tracing() {
  if (!claim_) return nullptr;
  auto trace = std::make_shared<const DeviceTrace>(collector_->stop_tracing());
  claim_.reset();
  return trace;
}

void DeviceRuns::start(observe::Session& session, std::optional<ModuleId> base) {
  synchronize();
  auto* marker = start_tracing();
  try {
    session.start(base, marker);
  } catch (...) {
    stop_tracing();
    throw;
  }
}

observe::Pass DeviceRuns::stop(observe::Session& session, bool raised) {
  if (!raised) synchronize();
  auto pass = session.stop();
  pass.device = stop_tracing();
  return pass;
}

void DeviceRuns::count(observe::Session& session, std::optional<ModuleId> base, const std::vector<observe::Pass>& timed,
                       const std::function<void()>& call) {
  if (counters_ == Counters::off || collector_ == nullptr || !lost_.empty()) return;
  if (timed.empty() || timed.back().device == nullptr) return;
  if (kernels_in(*timed.back().device) == 0) {
    return note("no counters", "the device ran no kernel, and copies and memsets have none");
  }
  const auto request = request_for(counters_, *timed.back().device);
  if (request.ranges == CounterRanges::kernels) {
    const auto why = why_not_kernel_by_kernel(*timed.back().device);
    if (!why.empty()) return note("no counters", why);
  }
  const auto in_modules = [&](LaunchMarker* marker) {
    if (marker == nullptr) return call();
    Relay::instance().tell(marker);
    const auto untell = c10::make_scope_exit([] { Relay::instance().tell(nullptr); });
    session.start(base, &Relay::instance());
    const auto stop = c10::make_scope_exit([&] { session.stop(); });
    call();
  };
  try {
    refuse_beside_torchs_profiler();
    const Claim claim;
    counted_ = collector_->count(request, in_modules);
  } catch (const CollectorError& error) {
    note("no counters", error.what());
  }
}

void DeviceRuns::add_to(const observe::Session& session, const std::vector<observe::Pass>& timed,
                        const observe::LaunchPlaces& places, ProfileData& data) const {
  if (device_.empty()) return;
  data.notes.insert(data.notes.end(), notes_.begin(), notes_.end());
  if (timed.empty()) return;
  if (collector_ != nullptr && collector_->simulated()) {
    data.notes.push_back(std::string(kAttention) + "simulated: what stands here of " + device_ +
                         " comes from stand-ins for NVIDIA's libraries, no GPU ran");
  }
  if (!std::ranges::all_of(timed, [](const auto& pass) { return pass.device != nullptr; })) {
    return forget_times_of_parts(data);
  }
  if (const auto facts = gpu_facts(c10::Device(device_)); facts && facts->compute_major > 0) {
    data.compute_capability = std::to_string(facts->compute_major) + "." + std::to_string(facts->compute_minor);
  }
  const auto launched_in = places.find(session.launches().keys(), data);
  std::vector<DeviceRun> runs;
  for (const auto& pass : timed) runs.push_back({*pass.device, launched_in});
  add_device(runs, counted_, data, launched_in);
  if (data.scope == "block" && counters_ != Counters::off) {
    data.notes.emplace_back("no counters: they need runs of their own, which a block does not get; run() reads them");
  }
}

}  // namespace roofprof
