#include "machine/gpu/target.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/ones.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <cmath>

#include "machine/common/measurement.h"

namespace roofprof {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

double seconds_by_events(c10::Device device, int calls, const std::function<void()>& body) {
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  c10::Event begin(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind keeps no time
  c10::Event end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  begin.record(stream);
  for (int call = 0; call < calls; ++call) body();
  end.record(stream);
  end.synchronize();
  return begin.elapsedTime(end) / 1000;
}

double seconds_by_clock(int calls, const std::function<void()>& body) {
  const auto begin = Clock::now();
  for (int call = 0; call < calls; ++call) body();
  return Seconds(Clock::now() - begin).count();
}

}  // namespace

Timer timer_of(c10::Device device) {
  if (device.is_cpu()) return seconds_by_clock;
  return [device](int calls, const std::function<void()>& body) { return seconds_by_events(device, calls, body); };
}

void synchronize(c10::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

Rate measured_rate(const Trial& trial, const Timer& timer, Seconds budget) {
  constexpr int kRepeats = 7;
  constexpr int kFewestRepeats = 3;
  constexpr double kMostCalls = 10'000;
  constexpr double kShortest = 1e-9;
  const auto begin = Clock::now();
  timer(1, trial.run);  // kernels are chosen and loaded at the first call
  const double once = std::max(timer(1, trial.run), kShortest);
  const int calls = static_cast<int>(std::clamp(std::floor(budget.count() / kRepeats / once), 1.0, kMostCalls));

  Rate rate{.name = trial.name};
  double worst = 0;
  while (rate.repeats < kRepeats && (rate.repeats < kFewestRepeats || Clock::now() - begin < budget)) {
    const double per_second = trial.work * calls / std::max(timer(calls, trial.run), kShortest);
    rate.per_second = std::max(rate.per_second, per_second);
    worst = rate.repeats == 0 ? per_second : std::min(worst, per_second);
    ++rate.repeats;
  }
  rate.spread = (rate.per_second - worst) / rate.per_second;
  return rate;
}

std::vector<Rate> measured_rates(const std::vector<Trial>& trials, const Timer& timer, Seconds budget) {
  std::vector<Rate> rates;
  rates.reserve(trials.size());
  for (const Trial& trial : trials) {
    rates.push_back(measured_rate(trial, timer, budget / static_cast<double>(trials.size())));
  }
  std::ranges::stable_sort(rates, std::greater{}, &Rate::per_second);
  return rates;
}

namespace {

[[noreturn]] void refuse(const std::string& device, const std::string& why) {
  throw InvalidArgument("the roofs of \"" + device + "\" cannot be measured: " + why);
}

// Why torch has no GPU: what stands between it and the driver, or the driver itself.
std::string why_no_gpu() {
  try {
    cuda::driver();
  } catch (const CollectorError& error) {
    return error.what();
  }
  return "torch sees no GPU, though the driver has some; torch may be built without CUDA or for another driver, or the "
         "program may not load libtorch_cuda";
}

std::int64_t reserved_bytes(c10::Device device) {
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.reserved_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].current;
}

}  // namespace

c10::Device usable_gpu(const std::string& device) {
  c10::Device target(c10::kCUDA);
  try {
    target = c10::Device(device);
  } catch (const c10::Error&) {
    refuse(device, "a device is named \"cuda\" or \"cuda:<index>\"");
  }
  if (!at::detail::getCUDAHooks().hasCUDA()) refuse(device, why_no_gpu());
  try {
    const c10::impl::VirtualGuardImpl backend(c10::kCUDA);
    if (!target.has_index()) target = backend.getDevice();
    if (const c10::DeviceIndex count = backend.deviceCount(); target.index() >= count) {
      refuse(device, "torch sees " + std::to_string(count) + (count == 1 ? " GPU" : " GPUs"));
    }
    // A GPU too old or too new for this torch shows at the first kernel.
    at::ones({1}, at::TensorOptions().device(target)).add_(1);
    synchronize(target);
  } catch (const c10::Error& error) {
    refuse(device, "torch cannot use it: " + first_line_of(error.what_without_backtrace()));
  }
  return target;
}

std::optional<cuda::NvidiaDevice> gpu_facts(c10::Device device) {
  try {
    for (auto& facts : cuda::devices(cuda::driver())) {
      if (facts.index == device.index()) return std::move(facts);
    }
  } catch (const CollectorError&) {  // torch reaches the device in some other way; its figures are then not known
  }
  return std::nullopt;
}

void refuse_beside_torchs_profiler() {
  if (torch::profiler::impl::profilerEnabled()) {
    throw CollectorError(
        "torch.profiler is active, and a GPU serves one profiler at a time: profile outside of its block");
  }
}

std::int64_t free_bytes(c10::Device device) {
  constexpr std::int64_t kOfTheCpu = std::int64_t{256} << 20;
  if (device.is_cpu()) return kOfTheCpu;
  auto* allocator = c10::getDeviceAllocator(device.type());
  const auto stats = allocator->getDeviceStats(device.index());
  const auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const std::int64_t cached = stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
  return static_cast<std::int64_t>(allocator->getMemoryInfo(device.index()).first) + cached;
}

MemoryGivenBack::MemoryGivenBack(c10::Device device) : device_(device), reserved_before_(reserved_bytes(device)) {}

MemoryGivenBack::~MemoryGivenBack() {
  try {
    if (reserved_bytes(device_) > reserved_before_) c10::getDeviceAllocator(device_.type())->emptyCache();
    at::getHostAllocator(device_.type())->empty_cache();
  } catch (const c10::Error&) {  // the device is lost, and its memory with it
  }
}

}  // namespace roofprof
