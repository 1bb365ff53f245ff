// Our own prototypes of the driver, held against NVIDIA's header: enums are ints there, handles pointers or ints.
#include <cuda.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "device/nvidia/driver.h"

namespace roofprof::cuda {
namespace {

template <class T>
struct Plain {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <>
struct Plain<CUcontext> {
  using type = Context;
};
template <class T>
struct Plain<T*> {
  using type = typename Plain<T>::type*;
};

template <class Function>
struct Signature;
template <class Result, class... Args>
struct Signature<Result (*)(Args...)> {
  using type = typename Plain<Result>::type (*)(typename Plain<Args>::type...);
};

#define SAME(ours, theirs) static_assert(std::is_same_v<decltype(Driver::ours), Signature<decltype(&::theirs)>::type>)
SAME(init, cuInit);
SAME(driver_version, cuDriverGetVersion);
SAME(get_error_name, cuGetErrorName);
SAME(device_count, cuDeviceGetCount);
SAME(device_get, cuDeviceGet);
SAME(device_name, cuDeviceGetName);
SAME(device_memory, cuDeviceTotalMem);
SAME(device_attribute, cuDeviceGetAttribute);
SAME(device_pci_bus_id, cuDeviceGetPCIBusId);
SAME(primary_state, cuDevicePrimaryCtxGetState);
SAME(primary_retain, cuDevicePrimaryCtxRetain);
SAME(primary_release, cuDevicePrimaryCtxRelease);
SAME(push_current, cuCtxPushCurrent);
SAME(pop_current, cuCtxPopCurrent);
SAME(get_current, cuCtxGetCurrent);
SAME(synchronize, cuCtxSynchronize);
#undef SAME

// Old names have a symbol of their own, with another meaning: ours are those that the header maps them to.
#define TEXT_OF(name) #name
#define SYMBOL(name) std::string_view(TEXT_OF(name))
static_assert(SYMBOL(cuDeviceTotalMem) == "cuDeviceTotalMem_v2");
static_assert(SYMBOL(cuDevicePrimaryCtxRelease) == "cuDevicePrimaryCtxRelease_v2");
static_assert(SYMBOL(cuCtxPushCurrent) == "cuCtxPushCurrent_v2");
static_assert(SYMBOL(cuCtxPopCurrent) == "cuCtxPopCurrent_v2");
static_assert(SYMBOL(cuDevicePrimaryCtxRetain) == "cuDevicePrimaryCtxRetain");
static_assert(SYMBOL(cuCtxSynchronize) == "cuCtxSynchronize");

TEST(Prototypes, NumbersAreTheHeaders) {
  EXPECT_EQ(static_cast<int>(Attribute::clock_khz), CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  EXPECT_EQ(static_cast<int>(Attribute::sm_count), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(static_cast<int>(Attribute::memory_clock_khz), CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  EXPECT_EQ(static_cast<int>(Attribute::l2_bytes), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(static_cast<int>(Attribute::compute_capability_major), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(static_cast<int>(Attribute::compute_capability_minor), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
  EXPECT_EQ(kNoDevice, CUDA_ERROR_NO_DEVICE);
}

}  // namespace
}  // namespace roofprof::cuda
