// The driver and NVML: what can be said without one, and as simulated by tests/fakes, which are built where there are
// CUPTI's headers.
#include "device/nvidia/driver.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "device/interface/collector.h"
#include "device/nvidia/nvml.h"
#ifdef ROOFPROF_FAKES
#include <dlfcn.h>

#include "support/fake_libraries.h"
#include "support/forked.h"
#endif

namespace roofprof::cuda {
namespace {

using Words = std::vector<std::string>;

TEST(CudaCores, TheWorkedExampleOfAnRtx3060) {
  const auto peak = cuda_core_fp32_peak(28, 1'777'000'000, 8, 6);
  ASSERT_TRUE(peak);
  EXPECT_DOUBLE_EQ(*peak, 12'737.536e9);
  EXPECT_NEAR(*peak / 360e9, 35.38, 0.005);  // I_max
  EXPECT_FALSE(cuda_core_fp32_peak(132, 1'980'000'000, 99, 0));
}

TEST(NvmlThrottle, ReasonsInWords) {
  EXPECT_EQ(throttle_words(0), Words{});
  EXPECT_EQ(throttle_words(0x1), Words{"idle"});
  EXPECT_EQ(throttle_words(0x40 | 0x8), (Words{"hardware slowdown", "hardware thermal slowdown"}));
  EXPECT_EQ(throttle_words(0x100), Words{"display clocks setting"});
  EXPECT_EQ(throttle_words(0x1000 | 0x20), (Words{"software thermal slowdown", "reason 0x1000"}));
}

#ifdef ROOFPROF_FAKES

class FakeDriver : public WithFakes {
 protected:
  void TearDown() override {
    EXPECT_EQ(fake_live("primary_context"), 0);
    EXPECT_EQ(fake_live("nvml"), 0) << "it is shut down as often as it is started";
    WithFakes::TearDown();
  }
  static std::string opening() {
    return message_of<CollectorError>([] { open_driver(); });
  }
  static std::string waiting() {
    return message_of<CollectorError>([] { synchronize_all(open_driver()); });
  }
};

TEST_F(FakeDriver, TellsItsVersionAndDevices) {
  fake_set("devices", 2);
  fake_set_text("device_name", "NVIDIA H100 80GB HBM3");
  const Driver driver = open_driver();
  EXPECT_EQ(driver.version, 13020);
  EXPECT_EQ(driver.devices, 2);
  EXPECT_EQ(driver.path, fake_library("all", "libcuda.so.1"));
  const auto all = devices(driver);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].index, 1);
  EXPECT_EQ(all[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(all[1].pci_bus_id, "0000:02:00.0");
  EXPECT_EQ(std::pair(all[1].compute_major, all[1].compute_minor), std::pair(9, 0));
  EXPECT_EQ(all[1].memory_bytes, 80LL << 30);
  EXPECT_EQ(all[1].sm_count, 132);
  EXPECT_EQ(all[1].clock_hz, 1'980'000'000);
  EXPECT_EQ(all[1].l2_bytes, 50LL << 20);
  EXPECT_EQ(all[1].memory_clock_hz, 2'619'000'000);
  fake_set("memory_clock_khz", 0);  // as integrated ones answer
  fake_fail("cuDeviceGetPCIBusId", 1, 0);
  EXPECT_FALSE(devices(driver).front().memory_clock_hz.has_value());
  EXPECT_EQ(devices(driver).front().pci_bus_id, "");
}

TEST_F(FakeDriver, WhatIsInItsWayIsReported) {
  const std::string all = fake_library("all", "libcuda.so.1");
  for (const auto& [library, code_of_init, devices, says] : std::vector<std::tuple<std::string, int, int, std::string>>{
           {"/nowhere/libcuda.so.1", 0, 1, "ROOFPROF_CUDA_LIB cannot be loaded (/nowhere/libcuda.so.1:"},
           // A library that is there on any Linux.
           {"libdl.so.2", 0, 1, "the library of NVIDIA's driver lacks cuInit: it is too old or something else"},
           {fake_library("lacking", "libcuda.so.1"), 0, 1, "NVIDIA's driver lacks cuCtxSynchronize: "},
           {all, 34, 1, all + " is the CUDA toolkit's stub, not a driver: "},
           {all, 0, 0, "NVIDIA's driver works but shows no device: "},
           {all, 100, 1, "CUDA_VISIBLE_DEVICES"},  // so it answers where that is empty
           {all, 803, 1, "does not start: cuInit says CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): "},
           {all, 4711, 1, "cuInit says error (4711)"}}) {
    use("ROOFPROF_CUDA_LIB", library);
    fake_fail("cuInit", code_of_init, 0);
    fake_set("devices", devices);
    EXPECT_SAYS(says, opening());
  }
}

TEST_F(FakeDriver, WaitsForActiveDevicesOnly) {
  fake_set("devices", 3);
  EXPECT_EQ(waiting(), "(nothing was thrown)");
  EXPECT_EQ(fake_calls("cuCtxSynchronize"), 0);
  fake_kernel("a", 0, 7, 5'000'000);
  fake_kernel("b", 2, 7, 9'000'000);
  EXPECT_EQ(active_devices(open_driver()), (std::vector<int>{0, 2}));
  const long long launched = fake_now();
  EXPECT_EQ(waiting(), "(nothing was thrown)");
  EXPECT_EQ(fake_calls("cuCtxSynchronize"), 2);
  EXPECT_EQ(fake_now() - launched, 9'000'000);
  EXPECT_EQ(current_context(open_driver()), nullptr);
}

TEST_F(FakeDriver, ALostDeviceIsNamedAndTheOthersAreWaitedFor) {
  fake_set("devices", 2);
  fake_set_text("device_name", "NVIDIA H100");
  fake_kernel("a", 0, 0, 1000);
  fake_kernel("b", 1, 0, 1000);
  fake_fail("cuCtxSynchronize", 700, 1);
  EXPECT_SAYS("waiting for cuda:1 (NVIDIA H100) failed: the driver says CUDA_ERROR_ILLEGAL_ADDRESS (700): ", waiting());
  fake_fail("cuCtxSynchronize", 700, 0);
  EXPECT_SAYS("cuda:0", waiting());
  EXPECT_SAYS("cuda:1", waiting());
  fake_fail("cuDevicePrimaryCtxRetain", 46, 0);
  EXPECT_SAYS("cuda:0 (NVIDIA H100) failed: the driver says CUDA_ERROR_DEVICE_UNAVAILABLE (46)", waiting());
  fake_fail("cuDevicePrimaryCtxRetain", 0, 0);
  fake_fail("cuCtxPushCurrent", 700, 0);
  EXPECT_SAYS("(700)", waiting());
}

TEST_F(FakeDriver, ThePrimaryContextIsCurrentWhileItIsHeld) {
  fake_set("devices", 2);
  const Driver driver = open_driver();
  {
    const PrimaryContext outer(driver, 0);
    {
      const PrimaryContext inner(driver, 1);
      EXPECT_EQ(current_context(driver), inner.get());
      EXPECT_NE(inner.get(), outer.get());
    }
    EXPECT_EQ(current_context(driver), outer.get());
    EXPECT_EQ(fake_live("primary_context"), 1);
  }
  EXPECT_EQ(current_context(driver), nullptr);
  EXPECT_THROW(PrimaryContext(driver, 2), CollectorError);
}

// ---- NVML

class FakeNvml : public FakeDriver {
 protected:
  void SetUp() override {
    FakeDriver::SetUp();
    use("ROOFPROF_NVML_LIB", fake_library("all", "libnvidia-ml.so.1"));
  }
  static constexpr const char* kFirst = "0000:01:00.0";  // where the fake driver says that its first device is
};

TEST_F(FakeNvml, TellsEverythingInItsUnits) {
  const Nvml nvml;
  EXPECT_EQ(nvml.problem(), "");
  EXPECT_EQ(nvml.driver_version(), "580.65.06");
  const GpuState state = nvml.state(kFirst);
  EXPECT_EQ(state.problem, "");
  EXPECT_EQ(state.name, "Simulated GPU");
  EXPECT_EQ(state.uuid, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(state.sm_clock_hz, 1'755'000'000);
  EXPECT_EQ(state.max_sm_clock_hz, 1'980'000'000);
  EXPECT_EQ(state.memory_clock_hz, 2'619'000'000);
  EXPECT_EQ(state.max_memory_clock_hz, 2'619'000'000);
  EXPECT_EQ(state.power_watts, 412.345);
  EXPECT_EQ(state.power_limit_watts, 700.0);
  EXPECT_EQ(state.throttle_reasons, Words{"software power cap"});
  EXPECT_EQ(state.ecc, true);
  EXPECT_EQ(state.mig, false);
  EXPECT_EQ(state.pcie_generation, 1);
  EXPECT_EQ(state.max_pcie_generation, 5);
  EXPECT_EQ(state.pcie_width, 16);
  EXPECT_EQ(state.max_pcie_width, 16);
  EXPECT_EQ(state.nvlinks_up, 16);
  EXPECT_EQ(state.temperature_celsius, 41);
  EXPECT_EQ(state.utilization_percent, 7);
  EXPECT_EQ(nvml.sm_clock_hz(kFirst), 1'755'000'000);
  EXPECT_EQ(nvml.throttle_reasons(kFirst), Words{"software power cap"});
}

TEST_F(FakeNvml, OneThatCannotBeUsedSaysWhy) {
  for (const auto& [folder, code_of_init, says] : std::vector<std::tuple<const char*, int, const char*>>{
           {"none", 0, "cannot be loaded"},
           {"lacking", 0, "nvmlInit_v2"},
           {"all", 9, "NVML does not start: the driver is not loaded"},
           {"all", 18, "different versions"},
           {"all", 999, "NVML does not start: error 999"}}) {
    use("ROOFPROF_NVML_LIB", fake_library(folder, "libnvidia-ml.so.1"));
    fake_fail("nvmlInit_v2", code_of_init, 0);
    const Nvml nvml;
    EXPECT_SAYS(says, nvml.problem());
    EXPECT_FALSE(nvml.driver_version());
    EXPECT_EQ(nvml.state(kFirst).problem, nvml.problem());
    EXPECT_FALSE(nvml.sm_clock_hz(kFirst));
  }
}

// Settings of -1, and functions that an older driver has not or under another name.
TEST_F(FakeNvml, WhatIsNotThereIsEmptyAndTheRestIsThere) {
  for (const char* setting : {"nvml_ecc", "nvml_mig", "nvml_links", "nvml_power_mw", "nvml_throttle"}) {
    fake_set(setting, -1);
  }
  const GpuState state = Nvml().state(kFirst);
  EXPECT_EQ(state.problem, "");
  EXPECT_FALSE(state.ecc || state.mig || state.nvlinks_up || state.power_watts || state.throttle_reasons);
  EXPECT_EQ(state.power_limit_watts, 700.0);
  fake_reset();
  use("ROOFPROF_NVML_LIB", fake_library("older", "libnvidia-ml.so.1"));
  const GpuState older = Nvml().state(kFirst);
  EXPECT_EQ(older.throttle_reasons, Words{"software power cap"});  // by the older name
  EXPECT_FALSE(older.mig || older.nvlinks_up);
  EXPECT_EQ(older.ecc, true);
}

// CUDA_VISIBLE_DEVICES changes the indices of a process and not NVML's.
TEST_F(FakeNvml, AGpuIsFoundByItsPlaceOnTheBus) {
  fake_set("devices", 2);
  EXPECT_TRUE(Nvml().state("0000:02:00.0").name);
  EXPECT_SAYS("no such GPU", Nvml().state("0000:07:00.0").problem);
  EXPECT_SAYS("which of its GPUs", Nvml().state("").problem);
  fake_set("devices", 1);
  EXPECT_TRUE(Nvml().state("").name);
  fake_fail("nvmlDeviceGetHandleByPciBusId_v2", 15, 0);
  EXPECT_EQ(Nvml().state(kFirst).problem, std::string("NVML does not open the GPU at ") + kFirst + ": the GPU is lost");
}

#endif

}  // namespace
}  // namespace roofprof::cuda
