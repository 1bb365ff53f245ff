// NVML as simulated by tests/fakes, which are built where there are CUPTI's headers.
#ifdef ROOFPROF_FAKES

#include "device/nvidia/nvml.h"

#include <gtest/gtest.h>

#include "support/fake_libraries.h"

namespace roofprof::cuda {
namespace {

const std::string kFirst = "0000:01:00.0";  // where the fake driver says that its first device is

class NvmlTest : public WithFakes {
 protected:
  void SetUp() override {
    WithFakes::SetUp();
    use("ROOFPROF_NVML_LIB", fake_library("all", "libnvidia-ml.so.1"));
  }
};

using Words = std::vector<std::string>;

TEST(NvmlThrottle, ReasonsInWords) {
  EXPECT_EQ(throttle_words(0), Words{});
  EXPECT_EQ(throttle_words(0x1), Words{"idle"});
  EXPECT_EQ(throttle_words(0x4), Words{"software power cap"});
  EXPECT_EQ(throttle_words(0x40 | 0x8), (Words{"hardware slowdown", "hardware thermal slowdown"}));
  EXPECT_EQ(throttle_words(0x100), Words{"display clocks setting"});
  EXPECT_EQ(throttle_words(0x1000 | 0x20), (Words{"software thermal slowdown", "reason 0x1000"}));
}

TEST_F(NvmlTest, TellsEverythingInItsUnits) {
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

TEST_F(NvmlTest, IsShutDownAsOftenAsItIsStarted) {
  for (int i = 0; i < 3; ++i) Nvml().state(kFirst);
  EXPECT_EQ(fake_live("nvml"), 0);
  EXPECT_EQ(fake_calls("nvmlInit_v2"), 3);
}

TEST_F(NvmlTest, ALibraryThatIsNotThereIsSaidInASentence) {
  use("ROOFPROF_NVML_LIB", fake_library("none", "libnvidia-ml.so.1"));
  const Nvml nvml;
  EXPECT_NE(nvml.problem().find("cannot be loaded"), std::string::npos) << nvml.problem();
  EXPECT_FALSE(nvml.driver_version());
  const GpuState state = nvml.state(kFirst);
  EXPECT_EQ(state.problem, nvml.problem());
  EXPECT_FALSE(state.name || state.sm_clock_hz || state.throttle_reasons || state.ecc);
  EXPECT_FALSE(nvml.sm_clock_hz(kFirst));
}

TEST_F(NvmlTest, OlderDriversHaveOtherNamesAndFewerFunctions) {
  use("ROOFPROF_NVML_LIB", fake_library("older", "libnvidia-ml.so.1"));
  const GpuState state = Nvml().state(kFirst);
  EXPECT_EQ(state.throttle_reasons, Words{"software power cap"});  // by the older name
  EXPECT_EQ(fake_calls("nvmlDeviceGetCurrentClocksThrottleReasons"), 1);
  EXPECT_FALSE(state.mig);
  EXPECT_FALSE(state.nvlinks_up);
  EXPECT_EQ(state.ecc, true);

  use("ROOFPROF_NVML_LIB", fake_library("lacking", "libnvidia-ml.so.1"));
  EXPECT_NE(Nvml().problem().find("nvmlInit_v2"), std::string::npos);
}

TEST_F(NvmlTest, WhatADeviceDoesNotSupportIsEmptyAndTheRestIsThere) {
  for (const char* setting : {"nvml_ecc", "nvml_mig", "nvml_links", "nvml_power_mw", "nvml_throttle"}) {
    fake_set(setting, -1);
  }
  const GpuState state = Nvml().state(kFirst);
  EXPECT_EQ(state.problem, "");
  EXPECT_FALSE(state.ecc || state.mig || state.nvlinks_up || state.power_watts || state.throttle_reasons);
  EXPECT_EQ(state.power_limit_watts, 700.0);
  EXPECT_EQ(state.sm_clock_hz, 1'755'000'000);
}

TEST_F(NvmlTest, ALostGpuIsSaidInASentence) {
  fake_fail("nvmlDeviceGetHandleByPciBusId_v2", 15, 0);
  const GpuState state = Nvml().state(kFirst);
  EXPECT_EQ(state.problem, "NVML does not open the GPU at " + kFirst + ": the GPU is lost");
  EXPECT_FALSE(state.sm_clock_hz);

  fake_reset();
  for (const char* function : {"nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage"}) fake_fail(function, 15, 0);
  const GpuState half = Nvml().state(kFirst);
  EXPECT_FALSE(half.sm_clock_hz || half.power_watts);
  EXPECT_TRUE(half.name);
}

TEST_F(NvmlTest, AnNvmlThatDoesNotStartSaysWhy) {
  fake_fail("nvmlInit_v2", 18, 0);
  EXPECT_NE(Nvml().problem().find("different versions"), std::string::npos) << Nvml().problem();
  fake_fail("nvmlInit_v2", 9, 0);
  EXPECT_EQ(Nvml().problem(), "NVML does not start: the driver is not loaded");
  fake_fail("nvmlInit_v2", 999, 0);
  EXPECT_EQ(Nvml().problem(), "NVML does not start: error 999");
}

// CUDA_VISIBLE_DEVICES changes the indices of a process and not NVML's.
TEST_F(NvmlTest, AGpuIsFoundByItsPlaceOnTheBus) {
  fake_set("devices", 2);
  EXPECT_TRUE(Nvml().state("0000:02:00.0").name);
  EXPECT_NE(Nvml().state("0000:07:00.0").problem.find("no such GPU"), std::string::npos);
  EXPECT_NE(Nvml().state("").problem.find("which of its GPUs"), std::string::npos);
  EXPECT_EQ(fake_calls("nvmlDeviceGetHandleByIndex_v2"), 0);
  fake_set("devices", 1);
  EXPECT_TRUE(Nvml().state("").name);
}

}  // namespace
}  // namespace roofprof::cuda

#endif
