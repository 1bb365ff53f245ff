#include "device/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "device/cupti/api.h"
#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {
namespace {

class Doctor : public WithFakes {
 protected:
  void SetUp() override {
    WithFakes::SetUp();
    use("ROOFPROF_NVML_LIB", fake_library("all", "libnvidia-ml.so.1"));
  }
  void TearDown() override {
    expect_nothing_held();
    WithFakes::TearDown();
  }
  static void expect_nothing_held() {
    for (const char* held : {"subscriber", "primary_context", "profiler", "host_object", "range_profiler"}) {
      EXPECT_EQ(fake_live(held), 0) << held;
    }
  }

  static Examined finding(const std::string& what) {
    const std::vector<Examined> all = doctor();
    const auto found = std::ranges::find(all, what, &Examined::what);
    return found != all.end() ? *found : Examined{what, "(not looked at)", ""};
  }
};

TEST_F(Doctor, SaysWhatIsThereInOrder) {
  fake_set_text("device_name", "NVIDIA H100 80GB HBM3");
  const std::vector<Examined> all = doctor();
  const std::vector<std::string> order = {"this build", "driver",       "cuda:0",   "NVML",
                                          "CUPTI",      "kernel times", "counters", "other profilers"};
  ASSERT_EQ(all.size(), order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    EXPECT_EQ(all[at].what, order[at]);
    EXPECT_EQ(all[at].advice, "") << all[at].what << ": " << all[at].found;
  }
  EXPECT_EQ(all[0].found, "has kernel times and counters of GPUs");
  EXPECT_EQ(all[1].found, "CUDA 13.2 (" + cuda::driver().path + "), simulated");
  EXPECT_EQ(all[3].found, "available");
  EXPECT_EQ(all[2].found, "NVIDIA H100 80GB HBM3, compute capability 9.0, 80.0 GiB");
  EXPECT_EQ(all[4].found, version_text(api().version) + ", " + api().how + " (" + api().path + "), simulated");
  EXPECT_EQ(all[5].found, "available");
  EXPECT_EQ(all[6].found, "available on cuda:0 (chip GH100)");
  EXPECT_EQ(all[7].found, "none");
}

TEST_F(Doctor, NamesAnotherSubscriber) {
  CUpti_SubscriberHandle other = nullptr;
  ROOFPROF_CUPTI(api(), cuptiSubscribe, &other, nullptr, nullptr);
  EXPECT_SAYS("available; another client holds CUPTI's callbacks", finding("kernel times").found);
  setenv("NSYS_PROFILING_SESSION_ID", "1", 1);
  const Examined times = finding("kernel times");
  unsetenv("NSYS_PROFILING_SESSION_ID");
  ROOFPROF_CUPTI(api(), cuptiUnsubscribe, other);
  EXPECT_SAYS("another profiler is at work", times.found);
  EXPECT_SAYS("cuda-gdb", times.advice);
  EXPECT_EQ(fake_live("activity_kind"), 0);
}

// What stands in the way of counters, what is said of it and what helps.
TEST_F(Doctor, SaysWhatIsWithCounters) {
  const auto counters = [](const std::string& found, const std::string& advice) {
    const Examined said = finding("counters");
    EXPECT_SAYS(found, said.found);
    EXPECT_SAYS(advice, said.advice);
    EXPECT_EQ(finding("kernel times").found, "available");
    expect_nothing_held();
    fake_reset();
  };
  const std::string refused = "no permission to read the GPU's performance counters";
  fake_set("permitted", 0);
  counters(refused, "NVreg_RestrictProfilingToAdminUsers=0");
  fake_fail("cuptiRangeProfilerStart", 35, 0);  // as some drivers do, which let everything be prepared
  counters(refused, "NVreg_RestrictProfilingToAdminUsers=0");
  fake_set("most_ranges", 900);  // as many kernels are tried as a model has
  counters("available on cuda:0 (chip GH100), 512 kernels in one run", "");
  fake_fail("cuptiRangeProfilerEnable", 26, 0);
  counters("somebody else uses the device's counters", "dcgmi profiling --pause");
  fake_set_text("refused_metric", "dram__bytes_read");
  counters("available on cuda:0 (chip GH100), without dram_read_bytes", "");
  fake_set_text("not_supported", "architecture");
  counters("compute capability 7.5", "");
}

TEST_F(Doctor, NamesMigMode) {
  EXPECT_EQ(finding("cuda:0").advice, "");
  fake_set("nvml_mig", 1);
  EXPECT_SAYS(", in MIG mode", finding("cuda:0").found);
  EXPECT_SAYS("may be missing", finding("cuda:0").advice);
  fake_set("nvml_mig", 0);
  fake_set_text("device_name", "NVIDIA A100-SXM4-40GB MIG 1g.5gb");  // as the driver names an instance
  EXPECT_SAYS(", in MIG mode", finding("cuda:0").found);
}

TEST_F(Doctor, WithoutNvmlTheRestIsLookedAt) {
  use("ROOFPROF_NVML_LIB", fake_library("none", "libnvidia-ml.so.1"));
  EXPECT_SAYS("none/libnvidia-ml.so.1", finding("NVML").found);
  EXPECT_SAYS("clocks and power stay unknown", finding("NVML").advice);
  EXPECT_EQ(finding("counters").found, "available on cuda:0 (chip GH100)");
}

TEST_F(Doctor, ADeviceWithoutAContextToGiveIsNotCountedOn) {
  fake_fail("cuDevicePrimaryCtxRetain", 46, 0);
  EXPECT_SAYS("CUDA_ERROR_DEVICE_UNAVAILABLE (46)", finding("counters").found);
}

// What the process keeps once it was found: processes of their own.
class FreshDoctor : public Doctor {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Doctor::SetUp();
  }
  [[noreturn]] static void say(const std::string& what) {
    const Examined said = finding(what);
    std::cerr << said.found << " -> " << said.advice;
    std::exit(fake_ungated_calls() == 0 ? 0 : 1);
  }
};
using Exits = testing::ExitedWithCode;

TEST_F(FreshDoctor, WithoutADriverCuptiIsNotLookedAt) {
  use("ROOFPROF_CUDA_LIB", "/nowhere/libcuda.so.1");
  EXPECT_EXIT(say("driver"), Exits(0), "ROOFPROF_CUDA_LIB cannot be loaded .*-> unset it");
  EXPECT_EXIT(say("CUPTI"), Exits(0), "not looked at");
}

TEST_F(FreshDoctor, AnOldDriverIsToBeUpdated) {
  EXPECT_EXIT(
      {
        fake_set("driver_version", 12080);
        say("driver");
      },
      Exits(0), "CUDA 12.8 .*-> CUPTI 13 needs a driver of CUDA 13 \\(580 or newer\\)");
}

TEST_F(FreshDoctor, WithoutCuptiItSaysHowToGetOne) {
  use("ROOFPROF_CUPTI_LIB", "/nowhere/libcupti.so.13");
  EXPECT_EXIT(say("CUPTI"), Exits(0), "ROOFPROF_CUPTI_LIB cannot be loaded .*-> unset it, or name a libcupti.so.13");
  EXPECT_EXIT(say("counters"), Exits(0), "not looked at");
}

TEST_F(FreshDoctor, ALibraryWithoutCountersStillHasKernelTimes) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_counters", "libcupti.so.13"));
  EXPECT_EXIT(say("kernel times"), Exits(0), "available -> $");
  EXPECT_EXIT(say("counters"), Exits(0), "lacks what counters need: cuptiProfilerInitialize");
}

}  // namespace
}  // namespace roofprof::cupti
