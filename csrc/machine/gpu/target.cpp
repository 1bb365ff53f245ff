#include "machine/gpu/target.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/ones.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <stdexcept>

#include "machine/common/measurement.h"
#include "machine/gpu/timer.h"

namespace roofprof {
namespace {

[[noreturn]] void refuse(const std::string& device, const std::string& why) {
  throw std::invalid_argument("the roofs of \"" + device + "\" cannot be measured: " + why);
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
