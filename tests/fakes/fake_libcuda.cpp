// A simulated libcuda.so.1: the functions that roofprof looks up, with the prototypes of NVIDIA's header.
#include <cuda.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "fake_control.h"

namespace {

thread_local std::vector<CUcontext> current;
bool started = false;

// Contexts are told apart by their address alone: that of device n is at n + 1.
CUcontext context_of(CUdevice device) { return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1); }
CUdevice current_device() { return static_cast<CUdevice>(reinterpret_cast<std::uintptr_t>(current.back())) - 1; }

void set_text(char* to, int length, const std::string& text) {
  std::snprintf(to, static_cast<std::size_t>(length), "%s", text.c_str());
}

const std::map<CUdevice_attribute, const char*> kAttributes = {
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "clock_khz"},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "sm_count"},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, "memory_clock_khz"},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "l2_bytes"},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "compute_major"},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "compute_minor"}};
const std::map<int, const char*> kErrors = {{CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                                            {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                            {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}};

}  // namespace

// CUDA(function, (parameters), body); OF_DEVICE: of a device's number, `device`; OF_CURRENT: of the current context.
#define CUDA(name, parameters, ...) \
  CUresult name parameters {        \
    FAKE(CUresult, name);           \
    __VA_ARGS__;                    \
    return CUDA_SUCCESS;            \
  }
#define OF_DEVICE(name, parameters, ...) \
  CUDA(name, parameters, if (device < 0 || device >= fake_get("devices")) return CUDA_ERROR_INVALID_DEVICE; __VA_ARGS__)
#define OF_CURRENT(name, parameters, ...) \
  CUDA(name, parameters, if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT; __VA_ARGS__)

extern "C" {

CUDA(cuInit, (unsigned), started = true)
CUDA(cuDriverGetVersion, (int* version), *version = static_cast<int>(fake_get("driver_version")))
CUDA(cuGetErrorName, (CUresult error, const char** name), *name = kErrors.contains(error) ? kErrors.at(error) : nullptr)
CUDA(cuDeviceGetCount, (int* count), if (!started) return CUDA_ERROR_NOT_INITIALIZED;
     *count = static_cast<int>(fake_get("devices")); if (*count > 0) fake::open_gate())

OF_DEVICE(cuDeviceGet, (CUdevice * found, int device), *found = device)
OF_DEVICE(cuDeviceGetName, (char* to, int length, CUdevice device), set_text(to, length, fake_get_text("device_name")))
OF_DEVICE(cuDeviceTotalMem, (std::size_t* bytes, CUdevice device),
          *bytes = static_cast<std::size_t>(fake_get("memory_bytes")))
OF_DEVICE(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device),
          *value = static_cast<int>(fake_get(kAttributes.at(attribute))))
OF_DEVICE(cuDeviceGetPCIBusId, (char* to, int length, CUdevice device),
          set_text(to, length, "0000:0" + std::to_string(device + 1) + ":00.0"))
OF_DEVICE(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned* flags, int* active), *flags = 0;
          *active = fake::is_active(static_cast<unsigned>(device)) ? 1 : 0)
OF_DEVICE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
          fake::retain(static_cast<unsigned>(device), +1);
          *context = context_of(device))
OF_DEVICE(cuDevicePrimaryCtxRelease, (CUdevice device), fake::retain(static_cast<unsigned>(device), -1))

CUDA(cuCtxPushCurrent, (CUcontext context), current.push_back(context))
OF_CURRENT(cuCtxPopCurrent, (CUcontext * context), *context = current.back(); current.pop_back())
CUDA(cuCtxGetCurrent, (CUcontext * context), *context = current.empty() ? nullptr : current.back())
OF_CURRENT(cuCtxGetDevice, (CUdevice * device), *device = current_device())
OF_CURRENT(cuCtxSynchronize, (), fake_call(0); fake::wait_for(static_cast<unsigned>(current_device())))
}
