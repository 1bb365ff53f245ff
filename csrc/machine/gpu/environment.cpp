#include "machine/gpu/environment.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/device_kind.h"
#include "core/phrases.h"
#include "device/nvidia/driver.h"
#include "device/nvidia/nvml.h"

namespace roofprof {
namespace {

class Entries {
 public:
  template <class Value>
  void add(std::string key, const std::optional<Value>& value) {
    if (value) environment_.emplace_back(std::move(key), *value);
  }
  void add(std::string key, std::string value) {
    if (!value.empty()) environment_.emplace_back(std::move(key), std::move(value));
  }
  void add(std::string key, const std::optional<bool>& on) {
    if (on) add(std::move(key), std::string(*on ? "on" : "off"));
  }
  Environment take() { return std::move(environment_); }

 private:
  Environment environment_;
};

std::string torch_cuda_version() {
  try {
    const auto version = at::detail::getCUDAHooks().versionCUDART();
    return version > 0 ? cuda::version_text(version) : "";
  } catch (const c10::Error&) {  // a torch without CUDA
    return "";
  }
}

// Returns -1 where the text names no index, or is not the name of a device.
c10::DeviceIndex index_of(const std::string& device) {
  try {
    return c10::Device(device).index();
  } catch (const c10::Error&) {
    return -1;
  }
}

void add_facts(Entries& entries, const cuda::NvidiaDevice& facts) {
  entries.add("gpu_device", facts.name);
  entries.add("gpu_pci_bus_id", facts.pci_bus_id);
  if (facts.compute_major > 0) {
    entries.add("gpu_compute_capability",
                std::to_string(facts.compute_major) + "." + std::to_string(facts.compute_minor));
  }
  entries.add("gpu_sm_count", facts.sm_count);
  entries.add("gpu_memory_total_bytes", std::optional(facts.memory_bytes));
  entries.add("gpu_l2_cache_bytes", facts.l2_bytes);
}

void add_state(Entries& entries, const cuda::GpuState& state, const std::optional<cuda::NvidiaDevice>& facts) {
  if (!facts) entries.add("gpu_device", state.name);
  entries.add("gpu_uuid", state.uuid);
  entries.add("gpu_sm_clock_hz", state.sm_clock_hz);
  entries.add("gpu_max_sm_clock_hz", state.max_sm_clock_hz || !facts ? state.max_sm_clock_hz : facts->clock_hz);
  entries.add("gpu_memory_clock_hz", state.memory_clock_hz);
  entries.add("gpu_max_memory_clock_hz",
              state.max_memory_clock_hz || !facts ? state.max_memory_clock_hz : facts->memory_clock_hz);
  entries.add("gpu_power_watts", state.power_watts);
  entries.add("gpu_power_limit_watts", state.power_limit_watts);
  if (const auto& reasons = state.throttle_reasons) {
    entries.add("gpu_throttle_reasons", reasons->empty() ? "none" : listed(*reasons));
  }
  entries.add("gpu_temperature_celsius", state.temperature_celsius);
  entries.add("gpu_utilization_percent", state.utilization_percent);
  entries.add("gpu_ecc", state.ecc);
  entries.add("gpu_mig", state.mig);
  entries.add("gpu_pcie_generation", state.pcie_generation);
  entries.add("gpu_max_pcie_generation", state.max_pcie_generation);
  entries.add("gpu_pcie_width", state.pcie_width);
  entries.add("gpu_max_pcie_width", state.max_pcie_width);
  entries.add("gpu_nvlinks_up", state.nvlinks_up);
}

}  // namespace

Environment gpu_environment(const std::string& device) {
  if (device_kind(device) != DeviceKind::nvidia) return {};
  Entries entries;
  std::optional<cuda::NvidiaDevice> facts;
  std::string problem;
  try {
    const cuda::Driver& driver = cuda::driver();
    const auto index = static_cast<std::size_t>(std::max(0, int{index_of(device)}));
    auto devices = cuda::devices(driver);
    if (index < devices.size()) {
      facts = std::move(devices[index]);
    } else {
      problem = "there is no " + device + ": the driver shows " + std::to_string(devices.size()) +
                (devices.size() == 1 ? " device" : " devices");
    }
    if (driver.version > 0) entries.add("gpu_driver_cuda", cuda::version_text(driver.version));
  } catch (const CollectorError& error) {
    problem = error.what();
  }
  entries.add("torch_cuda", torch_cuda_version());
  if (problem.empty()) {
    const cuda::Nvml nvml;
    entries.add("gpu_driver", nvml.driver_version());
    if (facts) add_facts(entries, *facts);
    const auto state = nvml.state(facts ? facts->pci_bus_id : std::string());
    add_state(entries, state, facts);
    problem = state.problem;
  }
  entries.add("gpu_problem", problem);
  return entries.take();
}

}  // namespace roofprof
