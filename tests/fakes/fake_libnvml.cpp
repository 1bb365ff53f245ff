// A simulated libnvidia-ml.so.1: the functions that roofprof looks up. There is no header of NVML's to be had with
// torch, so the prototypes are ours, from NVIDIA's documentation of its interface.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "fake_state.h"

namespace {

using Return = int;  // nvmlReturn_t
constexpr Return kUninitialized = 1;
constexpr Return kInvalidArgument = 2;
constexpr Return kNotSupported = 3;
constexpr Return kNotFound = 6;
constexpr Return kInsufficientSize = 7;

bool started = false;

using Device = void*;
// A device is its index + 1.
Device device_at(long long index) { return reinterpret_cast<Device>(static_cast<std::uintptr_t>(index) + 1); }
bool is_device(Device device) {
  const auto number = static_cast<long long>(reinterpret_cast<std::uintptr_t>(device));
  return number >= 1 && number <= fake_get("devices");
}

Return tell(Device device, const char* setting, unsigned* value) {
  if (!started) return kUninitialized;
  if (!is_device(device)) return kInvalidArgument;
  const long long told = fake_get(setting);
  if (told < 0) return kNotSupported;
  *value = static_cast<unsigned>(told);
  return 0;
}

Return tell(Device device, const char* setting, unsigned long long* value) {
  unsigned told = 0;
  const Return result = tell(device, setting, &told);
  if (result == 0) *value = told;
  return result;
}

Return tell_text(const char* setting, char* text, unsigned length) {
  const std::string told = fake_get_text(setting);
  if (told.size() + 1 > length) return kInsufficientSize;
  std::memcpy(text, told.c_str(), told.size() + 1);
  return 0;
}

const char* clock_setting(int type, bool most) {
  if (type == 1) return most ? "nvml_max_sm_mhz" : "nvml_sm_mhz";
  return type == 2 ? (most ? "nvml_max_memory_mhz" : "nvml_memory_mhz") : nullptr;
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  FAKE(Return, nvmlInit_v2);
  started = true;
  fake::live("nvml", +1);
  return 0;
}

Return nvmlShutdown() {
  FAKE(Return, nvmlShutdown);
  fake::live("nvml", -1);
  return 0;
}

Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  FAKE(Return, nvmlSystemGetDriverVersion);
  return tell_text("nvml_driver", version, length);
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  FAKE(Return, nvmlDeviceGetCount_v2);
  *count = static_cast<unsigned>(fake_get("devices"));
  return 0;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  FAKE(Return, nvmlDeviceGetHandleByIndex_v2);
  if (index >= static_cast<unsigned>(fake_get("devices"))) return kInvalidArgument;
  *device = device_at(index);
  return 0;
}

// As the fake libcuda names them: "0000:01:00.0" is device 0.
Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* device) {
  FAKE(Return, nvmlDeviceGetHandleByPciBusId_v2);
  unsigned bus = 0;
  if (std::sscanf(id, "0000:%x:00.0", &bus) != 1) return kInvalidArgument;
  if (bus < 1 || bus > static_cast<unsigned>(fake_get("devices"))) return kNotFound;
  *device = device_at(static_cast<long long>(bus) - 1);
  return 0;
}

Return nvmlDeviceGetName(Device device, char* name, unsigned length) {
  FAKE(Return, nvmlDeviceGetName);
  return is_device(device) ? tell_text("device_name", name, length) : kInvalidArgument;
}

Return nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  FAKE(Return, nvmlDeviceGetUUID);
  return is_device(device) ? tell_text("nvml_uuid", uuid, length) : kInvalidArgument;
}

Return nvmlDeviceGetClockInfo(Device device, int type, unsigned* mhz) {
  FAKE(Return, nvmlDeviceGetClockInfo);
  const char* setting = clock_setting(type, false);
  return setting != nullptr ? tell(device, setting, mhz) : kInvalidArgument;
}

Return nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned* mhz) {
  FAKE(Return, nvmlDeviceGetMaxClockInfo);
  const char* setting = clock_setting(type, true);
  return setting != nullptr ? tell(device, setting, mhz) : kInvalidArgument;
}

#define FAKE_NUMBER(name, setting)              \
  Return name(Device device, unsigned* value) { \
    FAKE(Return, name);                         \
    return tell(device, setting, value);        \
  }
FAKE_NUMBER(nvmlDeviceGetPowerUsage, "nvml_power_mw")
FAKE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, "nvml_power_limit_mw")
FAKE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "nvml_pcie_generation")
FAKE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "nvml_max_pcie_generation")
FAKE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "nvml_pcie_width")
FAKE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "nvml_max_pcie_width")

#define FAKE_REASONS(name)                                  \
  Return name(Device device, unsigned long long* reasons) { \
    FAKE(Return, name);                                     \
    return tell(device, "nvml_throttle", reasons);          \
  }
FAKE_REASONS(nvmlDeviceGetCurrentClocksEventReasons)
FAKE_REASONS(nvmlDeviceGetCurrentClocksThrottleReasons)

#define FAKE_MODE(name, setting)                                     \
  Return name(Device device, unsigned* current, unsigned* pending) { \
    FAKE(Return, name);                                              \
    *pending = 0;                                                    \
    return tell(device, setting, current);                           \
  }
FAKE_MODE(nvmlDeviceGetEccMode, "nvml_ecc")
FAKE_MODE(nvmlDeviceGetMigMode, "nvml_mig")

Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned* active) {
  FAKE(Return, nvmlDeviceGetNvLinkState);
  const long long links = fake_get("nvml_links");
  if (!is_device(device) || (links >= 0 && link >= links)) return kInvalidArgument;
  if (links < 0) return kNotSupported;
  *active = link < fake_get("nvml_links_up") ? 1 : 0;
  return 0;
}

Return nvmlDeviceGetTemperature(Device device, int sensor, unsigned* celsius) {
  FAKE(Return, nvmlDeviceGetTemperature);
  return sensor == 0 ? tell(device, "nvml_celsius", celsius) : kInvalidArgument;
}

Return nvmlDeviceGetUtilizationRates(Device device, unsigned* gpu_and_memory) {
  FAKE(Return, nvmlDeviceGetUtilizationRates);
  gpu_and_memory[1] = 0;
  return tell(device, "nvml_utilization", gpu_and_memory);
}
}
