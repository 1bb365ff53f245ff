#include "device/nvidia/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <mutex>

#include "core/forks.h"

namespace roofprof::cuda {

namespace {

constexpr const char* kNoDriverAdvice =
    "install NVIDIA's driver, and in a container start it with the GPUs (docker run --gpus all)";

template <class Function>
void look_up(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
}

template <class Function>
void require(void* library, const char* symbol, Function& function) {
  look_up(library, symbol, function);
  if (function == nullptr) {
    throw CollectorError(std::string("the library of NVIDIA's driver lacks ") + symbol,
                         "it is too old or something else under its name; update the driver");
  }
}

// The symbols that today's cuda.h maps these names to.
void look_up_all(void* library, Driver& driver) {
  require(library, "cuInit", driver.init);
  require(library, "cuDriverGetVersion", driver.driver_version);
  require(library, "cuGetErrorName", driver.get_error_name);
  require(library, "cuDeviceGetCount", driver.device_count);
  require(library, "cuDeviceGet", driver.device_get);
  require(library, "cuDeviceGetName", driver.device_name);
  require(library, "cuDeviceTotalMem_v2", driver.device_memory);
  require(library, "cuDeviceGetAttribute", driver.device_attribute);
  require(library, "cuDevicePrimaryCtxGetState", driver.primary_state);
  require(library, "cuDevicePrimaryCtxRetain", driver.primary_retain);
  require(library, "cuDevicePrimaryCtxRelease_v2", driver.primary_release);
  require(library, "cuCtxPushCurrent_v2", driver.push_current);
  require(library, "cuCtxPopCurrent_v2", driver.pop_current);
  require(library, "cuCtxGetCurrent", driver.get_current);
  require(library, "cuCtxGetDevice", driver.current_device);
  require(library, "cuCtxSynchronize", driver.synchronize);
  look_up(library, "cuDeviceGetPCIBusId", driver.device_pci_bus_id);
}

void check(const Driver& driver, Result result, const std::string& what) {
  if (result != 0) throw CollectorError(what + " failed: the driver says " + driver.error_name(result));
}

std::string device_name(const Driver& driver, Device device) {
  std::array<char, 256> name{};
  if (driver.device_name(name.data(), static_cast<int>(name.size()) - 1, device) != 0) return "unknown";
  return name.data();
}

// "cuda:0 (NVIDIA H100)"
std::string title(const Driver& driver, int index) {
  return "cuda:" + std::to_string(index) + " (" + device_name(driver, index) + ")";
}

std::optional<std::int64_t> attribute(const Driver& driver, Device device, Attribute which, std::int64_t unit = 1) {
  int value = 0;
  if (driver.device_attribute(&value, static_cast<int>(which), device) != 0 || value <= 0) return std::nullopt;
  return value * unit;
}

bool is_active(const Driver& driver, Device device) {
  unsigned flags = 0;
  int active = 0;
  return driver.primary_state(device, &flags, &active) == 0 && active != 0;
}

NvidiaDevice facts(const Driver& driver, int index) {
  NvidiaDevice found;
  Device device = 0;
  check(driver, driver.device_get(&device, index), "looking for device " + std::to_string(index));
  found.index = index;
  found.name = device_name(driver, device);
  std::array<char, 32> bus{};
  if (driver.device_pci_bus_id != nullptr &&
      driver.device_pci_bus_id(bus.data(), static_cast<int>(bus.size()) - 1, device) == 0) {
    found.pci_bus_id = bus.data();
  }
  std::size_t bytes = 0;
  if (driver.device_memory(&bytes, device) == 0) found.memory_bytes = static_cast<std::int64_t>(bytes);
  found.compute_major = static_cast<int>(attribute(driver, device, Attribute::compute_capability_major).value_or(0));
  found.compute_minor = static_cast<int>(attribute(driver, device, Attribute::compute_capability_minor).value_or(0));
  found.sm_count = attribute(driver, device, Attribute::sm_count);
  found.clock_hz = attribute(driver, device, Attribute::clock_khz, 1000);
  found.memory_clock_hz = attribute(driver, device, Attribute::memory_clock_khz, 1000);
  found.l2_bytes = attribute(driver, device, Attribute::l2_bytes);
  return found;
}

}  // namespace

std::string Driver::error_name(Result error) const {
  const char* name = nullptr;
  const bool known = get_error_name != nullptr && get_error_name(error, &name) == 0 && name != nullptr;
  return (known ? std::string(name) : std::string("error")) + " (" + std::to_string(error) + ")";
}

std::string version_text(std::int64_t cuda) {
  return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

Driver open_driver() {
  const char* path = std::getenv("ROOFPROF_CUDA_LIB");
  const bool is_given = path != nullptr && *path != '\0';
  // Never closed: the driver does not expect to be.
  void* library = dlopen(is_given ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    if (!is_given) throw CollectorError("there is no NVIDIA driver here (no libcuda.so.1)", kNoDriverAdvice);
    throw CollectorError(std::string("ROOFPROF_CUDA_LIB cannot be loaded (") + dlerror() + ")",
                         "unset it, or name the driver's libcuda.so.1");
  }
  Driver driver;
  look_up_all(library, driver);
  if (Dl_info info{}; dladdr(reinterpret_cast<void*>(driver.init), &info) != 0) driver.path = info.dli_fname;
  driver.simulated = dlsym(library, "roofprof_simulated") != nullptr;

  const Result started = driver.init(0);
  if (started == kStubLibrary) {
    throw CollectorError(driver.path + " is the CUDA toolkit's stub, not a driver",
                         std::string("take the stub's folder out of LD_LIBRARY_PATH; ") + kNoDriverAdvice);
  }
  if (started != 0 && started != kNoDevice) {
    throw CollectorError("NVIDIA's driver does not start: cuInit says " + driver.error_name(started),
                         "see whether nvidia-smi works; after an update of the driver, restart the machine");
  }
  if (started == kNoDevice || driver.device_count(&driver.devices) != 0 || driver.devices <= 0) {
    throw CollectorError("NVIDIA's driver works but shows no device",
                         "see whether nvidia-smi lists one, and whether CUDA_VISIBLE_DEVICES hides it");
  }
  if (driver.driver_version(&driver.version) != 0) driver.version = 0;
  return driver;
}

const Driver& driver() {
  static auto& mutex = *new ForkMutex;
  static std::unique_ptr<const Driver> found;
  const std::lock_guard lock(mutex);
  if (!found) found = std::make_unique<const Driver>(open_driver());
  return *found;
}

std::vector<NvidiaDevice> devices(const Driver& driver) {
  std::vector<NvidiaDevice> all;
  all.reserve(static_cast<std::size_t>(driver.devices));
  for (int index = 0; index < driver.devices; ++index) all.push_back(facts(driver, index));
  return all;
}

PrimaryContext::PrimaryContext(const Driver& driver, int device_index) : driver_(driver) {
  const std::string where = title(driver, device_index);
  check(driver, driver.device_get(&device_, device_index), "looking for " + where);
  check(driver, driver.primary_retain(&context_, device_), "taking the context of " + where);
  const Result pushed = driver.push_current(context_);
  if (pushed != 0) driver.primary_release(device_);
  check(driver, pushed, "entering the context of " + where);
}

PrimaryContext::~PrimaryContext() {
  Context popped = nullptr;
  driver_.pop_current(&popped);
  driver_.primary_release(device_);
}

std::vector<int> active_devices(const Driver& driver) {
  std::vector<int> active;
  for (int index = 0; index < driver.devices; ++index) {
    Device device = 0;
    if (driver.device_get(&device, index) == 0 && is_active(driver, device)) active.push_back(index);
  }
  return active;
}

void synchronize_all(const Driver& driver) {
  std::string failures;
  for (const int index : active_devices(driver)) {
    try {
      const PrimaryContext context(driver, index);
      check(driver, driver.synchronize(), "waiting for " + title(driver, index));
    } catch (const CollectorError& error) {
      failures += (failures.empty() ? "" : "; ") + error.found();
    }
  }
  if (!failures.empty()) {
    throw CollectorError(failures,
                         "this process cannot use the device any more, start it again; nvidia-smi and dmesg tell "
                         "whether the device works");
  }
}

Context current_context(const Driver& driver) {
  Context context = nullptr;
  return driver.get_current(&context) == 0 ? context : nullptr;
}

std::optional<int> current_device(const Driver& driver) {
  Device device = 0;
  if (current_context(driver) == nullptr || driver.current_device(&device) != 0) return std::nullopt;
  return device;
}

std::optional<int> fp32_lanes_per_sm(int compute_major, int compute_minor) {
  const int architecture = compute_major * 10 + compute_minor;
  const auto is_one_of = [&](std::initializer_list<int> known) {
    return std::ranges::find(known, architecture) != known.end();
  };
  if (is_one_of({30, 32, 35, 37})) return 192;
  if (is_one_of({50, 52, 53, 61, 62, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121})) return 128;
  if (is_one_of({60, 70, 72, 75, 80})) return 64;
  return std::nullopt;
}

std::optional<double> cuda_core_fp32_peak(std::int64_t sm_count, std::int64_t clock_hz, int compute_major,
                                          int compute_minor) {
  const auto lanes = fp32_lanes_per_sm(compute_major, compute_minor);
  if (!lanes || sm_count <= 0 || clock_hz <= 0) return std::nullopt;
  return static_cast<double>(sm_count) * *lanes * static_cast<double>(clock_hz) * 2;
}

namespace {

struct Sign {
  const char* variable;
  const char* tool;
};

// The variables that the tools set for the processes that they start. An injected library comes last: the other tools
// work through one, too.
constexpr std::array kSigns = {
    Sign{"NSYS_PROFILING_SESSION_ID", "Nsight Systems"},
    Sign{"NV_NSIGHT_INJECTION_PORT_BASE", "Nsight Compute"},
    Sign{"NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "Nsight Compute"},
    Sign{"NVPROF_ID", "nvprof"},
    Sign{"CUDA_INJECTION64_PATH", "a library that the driver loads"},
};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::vector<std::string> profilers_in_environment() {
  std::vector<std::string> found;
  std::string last;
  for (const Sign& sign : kSigns) {
    if (!is_set(sign.variable) || last == sign.tool) continue;
    const bool is_injection = &sign == &kSigns.back();
    if (is_injection && !found.empty()) continue;
    last = sign.tool;
    found.push_back(last + " (" + sign.variable +
                    (is_injection ? std::string("=") + std::getenv(sign.variable) : " is set") + ")");
  }
  return found;
}

}  // namespace roofprof::cuda
