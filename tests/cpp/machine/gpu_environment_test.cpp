#include "machine/gpu/environment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#ifdef ROOFPROF_FAKES
#include "support/fake_libraries.h"

namespace roofprof {
namespace {

std::map<std::string, EnvironmentValue> environment_of(const std::string& device) {
  const Environment environment = gpu_environment(device);
  std::map<std::string, EnvironmentValue> values(environment.begin(), environment.end());
  EXPECT_EQ(values.size(), environment.size()) << "a key stands there twice";
  return values;
}

std::string text(const EnvironmentValue& value) { return std::get<std::string>(value); }

class GpuEnvironment : public WithFakes {};

// The driver is found once in a process: one test for all that comes after it, in a process of its own.
TEST_F(GpuEnvironment, TellsWhatDriverAndNvmlTell) {
  EXPECT_TRUE(gpu_environment("cpu").empty());

  // A driver that is not there, then one that is.
  use("ROOFPROF_CUDA_LIB", fake_library("none", "libcuda.so.1"));
  auto values = environment_of("cuda:0");
  EXPECT_TRUE(values.contains("gpu_problem"));
  EXPECT_FALSE(values.contains("gpu_device"));

  use("ROOFPROF_CUDA_LIB", fake_library("all", "libcuda.so.1"));
  values = environment_of("cuda:0");
  EXPECT_EQ(text(values.at("gpu_device")), "Simulated GPU");
  EXPECT_EQ(text(values.at("gpu_compute_capability")), "9.0");
  EXPECT_EQ(text(values.at("gpu_driver_cuda")), "13.2");
  EXPECT_EQ(std::get<std::int64_t>(values.at("gpu_max_sm_clock_hz")), 1'980'000'000);  // the driver's, without NVML
  EXPECT_NE(text(values.at("gpu_problem")).find("NVML"), std::string::npos);

  use("ROOFPROF_NVML_LIB", fake_library("all", "libnvidia-ml.so.1"));
  fake_set("nvml_max_sm_mhz", 1900);
  values = environment_of("cuda:0");
  EXPECT_FALSE(values.contains("gpu_problem"));
  EXPECT_EQ(text(values.at("gpu_driver")), "580.65.06");
  EXPECT_EQ(std::get<std::int64_t>(values.at("gpu_max_sm_clock_hz")), 1'900'000'000);  // NVML knows it better
  EXPECT_EQ(std::get<double>(values.at("gpu_power_limit_watts")), 700.0);
  EXPECT_EQ(text(values.at("gpu_throttle_reasons")), "software power cap");
  EXPECT_EQ(text(values.at("gpu_ecc")), "on");
  values = environment_of("cuda:5");
  EXPECT_FALSE(values.contains("gpu_device"));
  EXPECT_EQ(text(values.at("gpu_problem")), "there is no cuda:5: the driver shows 1 device");
}

}  // namespace
}  // namespace roofprof
#endif
