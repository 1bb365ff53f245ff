#include "run/device_passes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/device_kind.h"
#include "core/forks.h"
#include "join/counter_join.h"
#include "join/device_join.h"
#include "machine/cpu/environment.h"
#include "machine/gpu/environment.h"
#include "machine/gpu/target.h"
#include "run/observing_cost.h"

namespace roofprof {
namespace {

// Returns the device's collector. It lives as long as the process: the user's threads may still report launches when a
// trace is over.
DeviceCollector& collector_of(const std::string& device) {
  static auto& mutex = *new ForkMutex(ForkMutex::Nesting::outer);  // the driver is looked up under it
  static auto* collectors = new std::map<DeviceKind, DeviceCollector*>;
  const std::lock_guard lock(mutex);
  auto& collector = (*collectors)[device_kind(device)];
  if (collector == nullptr) collector = make_collector(device).release();
  if (collector == nullptr) throw CollectorError("there is no collector for " + device);
  return *collector;
}

constexpr const char* kTorchsProfilerBegan =
    "torch.profiler began while this was profiled: both may miss kernels; let one end before the other begins";

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
    if (only && std::cmp_not_equal(*only, record.device)) return std::nullopt;
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

}  // namespace

Environment environment_of(const std::string& device) {
  auto environment = cpu_environment();
  std::ranges::move(gpu_environment(device), std::back_inserter(environment));
  return environment;
}

std::string untimed_on(const std::string& device) {
  const auto kind = device_kind(device);
  if (kind == DeviceKind::cpu || has_collector(kind)) return "";
  if (kind == DeviceKind::meta) return "not timed: tensors on the meta device hold no data";
  return "not timed: kernel times on " + device + " need a device collector, which this version lacks";
}

// Reserves the collectors for one profile at a time.
class DevicePasses::DeviceLock {
 public:
  DeviceLock() {
    if (taken().exchange(true)) {
      throw CollectorError(
          "another profile of this process is tracing the device, and one can at a time: let it end first");
    }
  }
  ~DeviceLock() { taken() = false; }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  static std::atomic<bool>& taken() {
    static std::atomic<bool> is_taken{false};
    return is_taken;
  }
};

DevicePasses::DevicePasses(std::string device, Counters counters)
    : device_(has_collector(device_kind(device)) ? std::move(device) : ""), counters_(counters) {
  if (device_.empty()) return;
  try {
    collector_ = &collector_of(device_);
  } catch (const CollectorError& error) {
    note("no-kernel-times", "no kernel times and no counters", error.what());
  }
}

DevicePasses::~DevicePasses() { stop_tracing(); }

void DevicePasses::note(NoteCode code, const std::string& what, const std::string& why) {
  add_note(notes_, code, what + ": " + why, {device_});
}

void DevicePasses::synchronize() {
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
  if (!lost_.empty()) note("device-lost", "the device is lost", lost_);
}

LaunchMarker* DevicePasses::start_tracing(Recorded recorded) {
  if (collector_ == nullptr || !lost_.empty()) return nullptr;
  try {
    refuse_beside_torchs_profiler();
    auto lock = std::make_unique<DeviceLock>();
    collector_->start_tracing(recorded);
    trace_started_ = observe::now_ticks();  // the collector reads its clock last, so both times are of the same moment
    lock_ = std::move(lock);
    return collector_->marker();
  } catch (const CollectorError& error) {
    synchronize();  // the device may be what failed: then nothing else can be tried, and what was traced stands
    if (!lost_.empty()) return nullptr;
    note("no-kernel-times", "no kernel times and no counters", error.what());
    collector_ = nullptr;
    return nullptr;
  }
}

std::shared_ptr<const DeviceTrace> DevicePasses::stop_tracing() {
  if (!lock_) return nullptr;
  const auto lock = std::move(lock_);
  try {
    auto trace = std::make_shared<DeviceTrace>(collector_->stop_tracing());
    if (torch::profiler::impl::profilerEnabled()) add_note(trace->notes, "other-profiler", kTorchsProfilerBegan);
    return trace;
  } catch (const CollectorError& error) {
    note("no-kernel-times", "no kernel times and no counters", error.what());
    collector_ = nullptr;
    return nullptr;
  }
}

void DevicePasses::start(observe::Session& session, std::optional<ModuleId> base) {
  synchronize();
  auto* marker = start_tracing(Recorded::all);
  try {
    session.start(base, marker);
  } catch (...) {
    stop_tracing();
    throw;
  }
}

Pass DevicePasses::stop(observe::Session& session, bool raised) {
  if (!raised) synchronize();
  auto pass = session.stop();
  end_trace(session.started(), pass);
  return pass;
}

void DevicePasses::start_alone() {
  synchronize();
  start_tracing(Recorded::launches);
  alone_started_ = observe::now_ticks();
}

void DevicePasses::restart_alone(const std::function<void()>& prepare) {
  if (lock_) {
    try {
      collector_->forget();
      trace_started_ = observe::now_ticks();
    } catch (const CollectorError& error) {
      note("no-kernel-times", "no kernel times and no counters", error.what());
      stop_tracing();
      collector_ = nullptr;
    }
  }
  prepare();
  alone_started_ = observe::now_ticks();
}

Pass DevicePasses::stop_alone(bool raised) {
  if (!raised) synchronize();
  Pass pass;
  pass.wall_ns = std::llround(static_cast<double>(observe::now_ticks() - alone_started_) * observe::ns_per_tick());
  end_trace(alone_started_, pass);
  return pass;
}

// Ends the trace. The pass's time excludes what the collector does before and after it.
void DevicePasses::end_trace(observe::Ticks pass_started, Pass& pass) {
  const auto ticks = static_cast<double>(trace_started_ - pass_started);
  pass.trace_start_ns = lock_ ? std::llround(ticks * observe::ns_per_tick()) : 0;
  pass.device = stop_tracing();
  if (pass.device == nullptr || !collector_->by_host_clock()) return;
  pass.device = std::make_shared<const DeviceTrace>(within_pass(*pass.device, pass));
}

bool DevicePasses::may_count() const { return counters_ != Counters::off && collector_ != nullptr && lost_.empty(); }

void DevicePasses::leave_out_counters(const std::string& why) {
  if (may_count()) note("no-counters", "no counters", why);
}

void DevicePasses::count(observe::Session& session, std::optional<ModuleId> base, const std::vector<Pass>& timed,
                         const std::function<void()>& call) {
  if (!may_count() || timed.empty() || timed.back().device == nullptr) return;
  if (kernels_in(*timed.back().device) == 0) {
    return note("no-counters", "no counters", "the device ran no kernel, and copies and memsets have none");
  }
  const auto request = request_for(counters_, *timed.back().device);
  if (request.ranges == CounterRanges::kernels) {
    const auto why = why_not_kernel_by_kernel(*timed.back().device);
    if (!why.empty()) return note("no-counters", "no counters", why);
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
    const DeviceLock lock;
    counted_ = collector_->count(request, in_modules);
  } catch (const CollectorError& error) {
    note("no-counters", "no counters", error.what());
  }
}

namespace {

// Launches whose cost under observation is held against their bare one: small, so that the host is what they wait for.
class SmallLaunches {
 public:
  static constexpr int kLaunches = 50;

  explicit SmallLaunches(const std::string& device)
      : square_(at::ones({16, 16}, at::TensorOptions().device(c10::Device(device)))),
        images_(at::ones({1, 8, 8, 8}, square_.options())),
        filters_(at::ones({8, 8, 3, 3}, square_.options())) {}

  void add() {
    for (int i = 0; i < kLaunches; ++i) square_.add_(1);
  }
  void multiply() const {
    for (int i = 0; i < kLaunches; ++i) at::linear(square_, square_);
  }
  void convolve() const {
    for (int i = 0; i < kLaunches; ++i) at::conv2d(images_, filters_);
  }

 private:
  at::Tensor square_, images_, filters_;
};

// The kinds of work that a program launched. Other kinds are not tried, as they could load a library for the first
// time.
struct LaunchedKinds {
  bool products = false;
  bool convolutions = false;
  auto operator<=>(const LaunchedKinds&) const = default;
};

LaunchedKinds kinds_in(const std::vector<Pass>& timed) {
  LaunchedKinds kinds;
  for (const auto& pass : timed) {
    for (const auto& op : pass.ops) {
      const bool convolution = op.op.starts_with("aten::conv");
      kinds.convolutions = kinds.convolutions || convolution;
      kinds.products = kinds.products || (op.work.macs > 0 && !convolution);
    }
  }
  return kinds;
}

// Returns what observing adds to the launches that `launch` makes; 0 where that could not be traced.
std::int64_t measure_observing(const std::string& device, const std::function<void()>& launch) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 3;
  DevicePasses passes(device, Counters::off);
  const auto session = std::make_shared<observe::Session>();
  launch();  // what comes with the first time is not asked for
  const auto bare = [&] {
    passes.synchronize();
    const auto start = Clock::now();
    launch();
    passes.synchronize();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  };
  const auto observed = [&]() -> run::TimedLaunches {
    passes.start(*session, kModel);
    const auto end = c10::make_scope_exit([&] {
      if (session->active()) passes.stop(*session, /*raised=*/true);
    });
    launch();
    const auto pass = passes.stop(*session);
    return {pass.wall_ns, pass.device == nullptr ? 0 : std::ssize(pass.device->records)};
  };
  return run::added_to_a_launch(kRounds, bare, observed);
}

// Returns what observing adds to a launch on the device, by the dearest kind of small launches that the program makes;
// empty where it cannot be measured. A process measures it once for the same kinds.
std::optional<std::int64_t> observing_ns(const std::string& device, LaunchedKinds kinds) {
  static auto& mutex = *new ForkMutex(ForkMutex::Nesting::outer);
  static auto* known = new std::map<std::pair<std::string, LaunchedKinds>, std::int64_t>;
  const std::lock_guard lock(mutex);
  const auto found = known->find({device, kinds});
  if (found != known->end()) return found->second;
  // A mode of torch's would take the launches for the program's own.
  if (c10::impl::TorchDispatchModeTLS::any_modes_set()) return std::nullopt;
  try {
    const at::NoGradGuard no_grad;
    SmallLaunches small(device);
    auto longest = measure_observing(device, [&] { small.add(); });
    if (kinds.products) longest = std::max(longest, measure_observing(device, [&] { small.multiply(); }));
    if (kinds.convolutions) longest = std::max(longest, measure_observing(device, [&] { small.convolve(); }));
    if (longest == 0) return std::nullopt;
    return known->emplace(std::pair(device, kinds), longest).first->second;
  } catch (const std::exception&) {  // the report says that it is not known
    return std::nullopt;
  }
}

}  // namespace

std::optional<DeviceFacts> DevicePasses::facts(const std::vector<Pass>& timed, bool has_bare) const {
  if (device_.empty()) return std::nullopt;
  DeviceFacts facts;
  facts.simulated = collector_ != nullptr && collector_->simulated();
  facts.by_host_clock = collector_ == nullptr || collector_->by_host_clock();
  facts.counters_wanted = counters_ != Counters::off;
  facts.counters = counted_;
  facts.notes = notes_;
  // A device that was not traced may not answer.
  if (timed.empty() || !std::ranges::all_of(timed, [](const auto& pass) { return pass.device != nullptr; })) {
    return facts;
  }
  if (!has_bare && facts.by_host_clock && !facts.simulated && lost_.empty()) {
    facts.observing_ns = observing_ns(device_, kinds_in(timed));
  }
  if (const auto gpu = gpu_facts(c10::Device(device_)); gpu && gpu->compute_major > 0) {
    facts.compute_capability = std::to_string(gpu->compute_major) + "." + std::to_string(gpu->compute_minor);
  }
  return facts;
}

}  // namespace roofprof
