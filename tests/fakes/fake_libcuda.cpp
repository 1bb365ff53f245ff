// A simulated libcuda.so.1: the functions that roofprof looks up, with the prototypes of NVIDIA's header.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "fake_state.h"

namespace {

thread_local std::vector<CUcontext> current;
bool started = false;

bool is_device(CUdevice device) { return device >= 0 && device < fake_get("devices"); }

// Contexts are told apart by their address alone: that of device n is at n + 1.
CUcontext context_of(CUdevice device) { return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1); }

int device_of(CUcontext context) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1; }

const char* setting_of(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return "clock_khz";
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return "sm_count";
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return "memory_clock_khz";
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return "l2_bytes";
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return "compute_major";
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return "compute_minor";
    default:
      return nullptr;
  }
}

const char* name_of(CUresult error) {
  switch (error) {
    case CUDA_ERROR_NOT_INITIALIZED:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case CUDA_ERROR_INVALID_DEVICE:
      return "CUDA_ERROR_INVALID_DEVICE";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "CUDA_ERROR_DEVICE_UNAVAILABLE";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    default:
      return nullptr;
  }
}

void copy_text(char* to, int length, const char* from) {
  std::snprintf(to, static_cast<std::size_t>(length), "%s", from);
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  FAKE(CUresult, cuInit);
  started = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  FAKE(CUresult, cuDriverGetVersion);
  *version = static_cast<int>(fake_get("driver_version"));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  FAKE(CUresult, cuGetErrorName);
  *name = name_of(error);
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  FAKE(CUresult, cuDeviceGetCount);
  if (!started) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(fake_get("devices"));
  if (*count > 0) fake::open_gate();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE(CUresult, cuDeviceGet);
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  FAKE(CUresult, cuDeviceGetName);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  copy_text(name, length, fake_get_text("device_name"));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  FAKE(CUresult, cuDeviceTotalMem);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = static_cast<std::size_t>(fake_get("memory_bytes"));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  FAKE(CUresult, cuDeviceGetAttribute);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const char* setting = setting_of(attribute);
  if (setting == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = static_cast<int>(fake_get(setting));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  FAKE(CUresult, cuDeviceGetPCIBusId);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02x:00.0", device + 1);
  copy_text(id, length, text);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  FAKE(CUresult, cuDevicePrimaryCtxGetState);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = fake::is_active(static_cast<unsigned>(device)) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE(CUresult, cuDevicePrimaryCtxRetain);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  fake::retain(static_cast<unsigned>(device), +1);
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  FAKE(CUresult, cuDevicePrimaryCtxRelease);
  fake::retain(static_cast<unsigned>(device), -1);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  FAKE(CUresult, cuCtxPushCurrent);
  current.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  FAKE(CUresult, cuCtxPopCurrent);
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE(CUresult, cuCtxGetCurrent);
  *context = current.empty() ? nullptr : current.back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE(CUresult, cuCtxGetDevice);
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = device_of(current.back());
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  FAKE(CUresult, cuCtxSynchronize);
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  fake::driver_call();
  fake::wait_for(static_cast<unsigned>(device_of(current.back())));
  return CUDA_SUCCESS;
}
}
