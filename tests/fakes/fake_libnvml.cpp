// A simulated libnvidia-ml.so.1: the functions that roofprof looks up. There is no header of NVML's to be had with
// torch, so the prototypes are ours, from NVIDIA's documentation of its interface.
#include <cstdint>
#include <cstdio>
#include <string>

#include "fake_control.h"

namespace {

using Return = int;    // nvmlReturn_t
using Device = void*;  // its index + 1
constexpr Return kInvalidArgument = 2;
constexpr Return kNotSupported = 3;
constexpr Return kNotFound = 6;

Return set(unsigned number, Device* device) {
  *device = reinterpret_cast<Device>(std::uintptr_t{number});
  return number >= 1 && number <= fake_get("devices") ? 0 : kNotFound;
}

template <class Value>
Return set(const char* setting, Value* value) {
  const long long reply = fake_get(setting);
  if (reply < 0) return kNotSupported;
  *value = static_cast<Value>(reply);
  return 0;
}

Return set_text(const char* setting, char* text, unsigned length) {
  std::snprintf(text, length, "%s", fake_get_text(setting));
  return 0;
}

}  // namespace

// NVML(name, (parameters), result): a function.
#define NVML(name, parameters, ...) \
  Return name parameters {          \
    FAKE(Return, name);             \
    return __VA_ARGS__;             \
  }

extern "C" {

NVML(nvmlInit_v2, (), (fake::live("nvml", +1), 0))
NVML(nvmlShutdown, (), (fake::live("nvml", -1), 0))
NVML(nvmlSystemGetDriverVersion, (char* text, unsigned length), set_text("nvml_driver", text, length))
NVML(nvmlDeviceGetCount_v2, (unsigned* count), set("devices", count))
NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned index, Device* device), set(index + 1, device))
// As the fake libcuda names them: "0000:01:00.0" is device 0.
NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char* id, Device* device),
     set(static_cast<unsigned>(std::stoi(std::string(id).substr(5))), device))
NVML(nvmlDeviceGetName, (Device, char* text, unsigned length), set_text("device_name", text, length))
NVML(nvmlDeviceGetUUID, (Device, char* text, unsigned length), set_text("nvml_uuid", text, length))
NVML(nvmlDeviceGetClockInfo, (Device, int type, unsigned* mhz), set(type == 1 ? "nvml_sm_mhz" : "nvml_memory_mhz", mhz))
NVML(nvmlDeviceGetMaxClockInfo, (Device, int type, unsigned* mhz),
     set(type == 1 ? "nvml_max_sm_mhz" : "nvml_max_memory_mhz", mhz))
NVML(nvmlDeviceGetPowerUsage, (Device, unsigned* value), set("nvml_power_mw", value))
NVML(nvmlDeviceGetEnforcedPowerLimit, (Device, unsigned* value), set("nvml_power_limit_mw", value))
NVML(nvmlDeviceGetCurrPcieLinkGeneration, (Device, unsigned* value), (*value = 1, 0))
NVML(nvmlDeviceGetMaxPcieLinkGeneration, (Device, unsigned* value), (*value = 5, 0))
NVML(nvmlDeviceGetCurrPcieLinkWidth, (Device, unsigned* value), (*value = 16, 0))
NVML(nvmlDeviceGetMaxPcieLinkWidth, (Device, unsigned* value), (*value = 16, 0))
NVML(nvmlDeviceGetCurrentClocksEventReasons, (Device, unsigned long long* bits), set("nvml_throttle", bits))
NVML(nvmlDeviceGetCurrentClocksThrottleReasons, (Device, unsigned long long* bits), set("nvml_throttle", bits))
NVML(nvmlDeviceGetEccMode, (Device, unsigned* now, unsigned* later), (*later = 0, set("nvml_ecc", now)))
NVML(nvmlDeviceGetMigMode, (Device, unsigned* now, unsigned* later), (*later = 0, set("nvml_mig", now)))
NVML(nvmlDeviceGetTemperature, (Device, int, unsigned* celsius), (*celsius = 41, 0))
NVML(nvmlDeviceGetUtilizationRates, (Device, unsigned* gpu_and_memory), (gpu_and_memory[0] = 7, gpu_and_memory[1] = 0))

Return nvmlDeviceGetNvLinkState(Device, unsigned link, unsigned* active) {
  FAKE(Return, nvmlDeviceGetNvLinkState);
  const long long links = fake_get("nvml_links");
  if (links < 0) return kNotSupported;
  *active = link + 2 < links ? 1 : 0;
  return link < links ? 0 : kInvalidArgument;
}
}
