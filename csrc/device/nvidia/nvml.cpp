#include "device/nvidia/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace roofprof::cuda {

using Result = int;  // nvmlReturn_t; 0 is success
using Gpu = void*;   // nvmlDevice_t
using Number = unsigned;

namespace {

constexpr Result kInvalidArgument = 2;
constexpr int kSmClock = 1;  // nvmlClockType_t
constexpr int kMemoryClock = 2;
constexpr int kGpuTemperature = 0;
constexpr Number kMostLinks = 18;

// The names that NVML's errors have, for those that a GPU's owner can do something about.
std::string error_words(Result result) {
  switch (result) {
    case 3:
      return "not supported";
    case 4:
      return "no permission";
    case 6:
      return "no such GPU";
    case 9:
      return "the driver is not loaded";
    case 15:
      return "the GPU is lost";
    case 16:
      return "the GPU must be reset";
    case 18:
      return "the driver and NVML are of different versions: restart after the update";
    default:
      return "error " + std::to_string(result);
  }
}

std::int64_t megahertz(Number value) { return std::int64_t{value} * 1'000'000; }

}  // namespace

// Not in an unnamed namespace: a member of Nvml::Library has it in its type, and gcc warns of that.
struct NvmlUtilization {  // NOLINT(misc-use-internal-linkage)
  Number gpu = 0;
  Number memory = 0;
};

// NVML's functions as far as we ask: name and parameters.
#define ROOFPROF_NVML_FUNCTIONS(FUNCTION)                                         \
  FUNCTION(nvmlInit_v2, ())                                                       \
  FUNCTION(nvmlShutdown, ())                                                      \
  FUNCTION(nvmlSystemGetDriverVersion, (char*, Number))                           \
  FUNCTION(nvmlDeviceGetCount_v2, (Number*))                                      \
  FUNCTION(nvmlDeviceGetHandleByIndex_v2, (Number, Gpu*))                         \
  FUNCTION(nvmlDeviceGetHandleByPciBusId_v2, (const char*, Gpu*))                 \
  FUNCTION(nvmlDeviceGetName, (Gpu, char*, Number))                               \
  FUNCTION(nvmlDeviceGetUUID, (Gpu, char*, Number))                               \
  FUNCTION(nvmlDeviceGetClockInfo, (Gpu, int, Number*))                           \
  FUNCTION(nvmlDeviceGetMaxClockInfo, (Gpu, int, Number*))                        \
  FUNCTION(nvmlDeviceGetPowerUsage, (Gpu, Number*))                               \
  FUNCTION(nvmlDeviceGetEnforcedPowerLimit, (Gpu, Number*))                       \
  FUNCTION(nvmlDeviceGetCurrentClocksEventReasons, (Gpu, unsigned long long*))    \
  FUNCTION(nvmlDeviceGetCurrentClocksThrottleReasons, (Gpu, unsigned long long*)) \
  FUNCTION(nvmlDeviceGetEccMode, (Gpu, Number*, Number*))                         \
  FUNCTION(nvmlDeviceGetMigMode, (Gpu, Number*, Number*))                         \
  FUNCTION(nvmlDeviceGetCurrPcieLinkGeneration, (Gpu, Number*))                   \
  FUNCTION(nvmlDeviceGetMaxPcieLinkGeneration, (Gpu, Number*))                    \
  FUNCTION(nvmlDeviceGetCurrPcieLinkWidth, (Gpu, Number*))                        \
  FUNCTION(nvmlDeviceGetMaxPcieLinkWidth, (Gpu, Number*))                         \
  FUNCTION(nvmlDeviceGetNvLinkState, (Gpu, Number, Number*))                      \
  FUNCTION(nvmlDeviceGetTemperature, (Gpu, int, Number*))                         \
  FUNCTION(nvmlDeviceGetUtilizationRates, (Gpu, NvmlUtilization*))

struct Nvml::Library {
  ~Library() {
    if (running && nvmlShutdown != nullptr) nvmlShutdown();
    if (handle != nullptr) dlclose(handle);
  }

  void* handle = nullptr;
  bool running = false;
  std::string problem;

#define ROOFPROF_DECLARE(name, parameters) Result(*name) parameters = nullptr;
  ROOFPROF_NVML_FUNCTIONS(ROOFPROF_DECLARE)
#undef ROOFPROF_DECLARE

  void open();
  void look_up();
  // Returns the GPU's handle; null where it has none, and the reason.
  std::pair<Gpu, std::string> find(const std::string& pci_bus_id) const;
  std::optional<std::vector<std::string>> throttle_reasons(Gpu gpu) const;
};

namespace {

// Returns the value that a function writes through its last argument; empty if the function is missing or fails.
template <class Value, class... Parameters, class... Args>
std::optional<Value> queried(Result (*function)(Parameters...), Args... args) {
  Value value{};
  if (function == nullptr || function(args..., &value) != 0) return std::nullopt;
  return value;
}

std::optional<std::string> queried_text(Result (*function)(Gpu, char*, Number), Gpu gpu) {
  std::array<char, 128> text{};
  if (function == nullptr || function(gpu, text.data(), text.size()) != 0) return std::nullopt;
  return std::string(text.data());
}

template <class From, class Convert>
auto converted(const std::optional<From>& value, Convert convert) {
  return value ? std::optional(convert(*value)) : std::nullopt;
}

std::int64_t whole(Number value) { return value; }
double watts(Number milliwatts) { return milliwatts / 1000.0; }

// Modes come as a pair: what is in force, and what will be after the next restart.
std::optional<bool> queried_mode(Result (*function)(Gpu, Number*, Number*), Gpu gpu) {
  Number current = 0;
  Number pending = 0;
  if (function == nullptr || function(gpu, &current, &pending) != 0) return std::nullopt;
  return current != 0;
}

std::optional<std::int64_t> links_up(Result (*function)(Gpu, Number, Number*), Gpu gpu) {
  if (function == nullptr) return std::nullopt;
  std::optional<std::int64_t> up;
  for (Number link = 0; link < kMostLinks; ++link) {
    Number active = 0;
    const Result result = function(gpu, link, &active);
    if (result == kInvalidArgument) break;  // there are no more
    if (result == 0) up = up.value_or(0) + (active != 0 ? 1 : 0);
  }
  return up;
}

}  // namespace

void Nvml::Library::look_up() {
  const auto find = [this](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
  };
#define ROOFPROF_FIND(name, parameters) find(name, #name);
  ROOFPROF_NVML_FUNCTIONS(ROOFPROF_FIND)
#undef ROOFPROF_FIND
}

void Nvml::Library::open() {
  const char* named = std::getenv("ROOFPROF_NVML_LIB");
  const std::string path = named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1";
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    problem = "NVML (" + path +
              ") cannot be loaded, so the GPU's clocks, power and links are not known: it comes with " +
              "NVIDIA's driver";
    return;
  }
  look_up();
  if (nvmlInit_v2 == nullptr) {
    problem = path + " is not an NVML that roofprof can use: it has no nvmlInit_v2";
    return;
  }
  if (const Result result = nvmlInit_v2(); result != 0) {
    problem = "NVML does not start: " + error_words(result);
    return;
  }
  running = true;
}

std::pair<Gpu, std::string> Nvml::Library::find(const std::string& pci_bus_id) const {
  if (!running) return {nullptr, problem};
  Gpu gpu = nullptr;
  if (!pci_bus_id.empty() && nvmlDeviceGetHandleByPciBusId_v2 != nullptr) {
    const Result result = nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.c_str(), &gpu);
    if (result == 0) return {gpu, ""};
    return {nullptr, "NVML does not open the GPU at " + pci_bus_id + ": " + error_words(result)};
  }
  // NVML's indices are not those of the process, which may see some GPUs only, in another order.
  if (queried<Number>(nvmlDeviceGetCount_v2).value_or(0) != 1 || nvmlDeviceGetHandleByIndex_v2 == nullptr) {
    return {nullptr, "NVML cannot tell which of its GPUs is meant: the driver does not say where on the PCI bus it is"};
  }
  const Result result = nvmlDeviceGetHandleByIndex_v2(0, &gpu);
  if (result == 0) return {gpu, ""};
  return {nullptr, "NVML does not open the GPU: " + error_words(result)};
}

// Drivers since 535 have the first name, all others the second.
std::optional<std::vector<std::string>> Nvml::Library::throttle_reasons(Gpu gpu) const {
  auto reasons = queried<unsigned long long>(nvmlDeviceGetCurrentClocksEventReasons, gpu);
  if (!reasons) reasons = queried<unsigned long long>(nvmlDeviceGetCurrentClocksThrottleReasons, gpu);
  return converted(reasons, throttle_words);
}

Nvml::Nvml() : library_(std::make_unique<Library>()) { library_->open(); }
Nvml::~Nvml() = default;

const std::string& Nvml::problem() const { return library_->problem; }

std::optional<std::string> Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!library_->running || library_->nvmlSystemGetDriverVersion == nullptr) return std::nullopt;
  if (library_->nvmlSystemGetDriverVersion(text.data(), text.size()) != 0) return std::nullopt;
  return std::string(text.data());
}

std::optional<std::int64_t> Nvml::sm_clock_hz(const std::string& pci_bus_id) const {
  const Gpu gpu = library_->find(pci_bus_id).first;
  if (gpu == nullptr) return std::nullopt;
  return converted(queried<Number>(library_->nvmlDeviceGetClockInfo, gpu, kSmClock), megahertz);
}

std::optional<double> Nvml::power_watts(const std::string& pci_bus_id) const {
  const Gpu gpu = library_->find(pci_bus_id).first;
  if (gpu == nullptr) return std::nullopt;
  return converted(queried<Number>(library_->nvmlDeviceGetPowerUsage, gpu), watts);
}

std::optional<std::vector<std::string>> Nvml::throttle_reasons(const std::string& pci_bus_id) const {
  const Gpu gpu = library_->find(pci_bus_id).first;
  return gpu != nullptr ? library_->throttle_reasons(gpu) : std::nullopt;
}

GpuState Nvml::state(const std::string& pci_bus_id) const {
  GpuState state;
  const Library& nvml = *library_;
  const auto [gpu, problem] = nvml.find(pci_bus_id);
  state.problem = problem;
  if (gpu == nullptr) return state;

  state.name = queried_text(nvml.nvmlDeviceGetName, gpu);
  state.uuid = queried_text(nvml.nvmlDeviceGetUUID, gpu);
  state.sm_clock_hz = converted(queried<Number>(nvml.nvmlDeviceGetClockInfo, gpu, kSmClock), megahertz);
  state.memory_clock_hz = converted(queried<Number>(nvml.nvmlDeviceGetClockInfo, gpu, kMemoryClock), megahertz);
  state.max_sm_clock_hz = converted(queried<Number>(nvml.nvmlDeviceGetMaxClockInfo, gpu, kSmClock), megahertz);
  state.max_memory_clock_hz = converted(queried<Number>(nvml.nvmlDeviceGetMaxClockInfo, gpu, kMemoryClock), megahertz);
  state.power_watts = converted(queried<Number>(nvml.nvmlDeviceGetPowerUsage, gpu), watts);
  state.power_limit_watts = converted(queried<Number>(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu), watts);
  state.throttle_reasons = nvml.throttle_reasons(gpu);
  state.ecc = queried_mode(nvml.nvmlDeviceGetEccMode, gpu);
  state.mig = queried_mode(nvml.nvmlDeviceGetMigMode, gpu);
  state.pcie_generation = converted(queried<Number>(nvml.nvmlDeviceGetCurrPcieLinkGeneration, gpu), whole);
  state.max_pcie_generation = converted(queried<Number>(nvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu), whole);
  state.pcie_width = converted(queried<Number>(nvml.nvmlDeviceGetCurrPcieLinkWidth, gpu), whole);
  state.max_pcie_width = converted(queried<Number>(nvml.nvmlDeviceGetMaxPcieLinkWidth, gpu), whole);
  state.nvlinks_up = links_up(nvml.nvmlDeviceGetNvLinkState, gpu);
  state.temperature_celsius = converted(queried<Number>(nvml.nvmlDeviceGetTemperature, gpu, kGpuTemperature), whole);
  const auto utilization = queried<NvmlUtilization>(nvml.nvmlDeviceGetUtilizationRates, gpu);
  state.utilization_percent = converted(utilization, [](const NvmlUtilization& rates) { return whole(rates.gpu); });
  return state;
}

std::vector<std::string> throttle_words(std::uint64_t reasons) {
  constexpr std::array<std::string_view, 9> kReasons = {"idle",
                                                        "application clocks setting",
                                                        "software power cap",
                                                        "hardware slowdown",
                                                        "sync boost",
                                                        "software thermal slowdown",
                                                        "hardware thermal slowdown",
                                                        "hardware power brake",
                                                        "display clocks setting"};
  std::vector<std::string> words;
  for (std::size_t bit = 0; bit < kReasons.size(); ++bit) {
    if ((reasons >> bit & 1) != 0) words.emplace_back(kReasons[bit]);
  }
  if (const std::uint64_t unknown = reasons >> kReasons.size() << kReasons.size(); unknown != 0) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "reason 0x%llx", static_cast<unsigned long long>(unknown));
    words.emplace_back(text.data());
  }
  return words;
}

}  // namespace roofprof::cuda
