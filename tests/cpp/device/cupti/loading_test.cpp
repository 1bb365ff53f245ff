// How CUPTI is found and loaded, what its errors mean, and what roofprof doctor says of it.
#include <cupti_result.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <tuple>
#include <vector>

#include "device/cupti/api.h"
#include "device/doctor.h"
#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {
namespace {

class Loading : public WithFakes {
 protected:
  void SetUp() override {
    WithFakes::SetUp();
    use("ROOFPROF_NVML_LIB", fake_library("all", "libnvidia-ml.so.1"));
  }
  static std::string opening() {
    return message_of<CollectorError>([] { open_api(); });
  }
  static std::string cupti(const std::string& folder) { return fake_library(folder, "libcupti.so.13"); }
};

TEST_F(Loading, TheLibraryRequestedComesFirst) {
  const Api found = open_api();
  EXPECT_EQ(version_text(found.version), "13.2.2");
  EXPECT_EQ(found.how, "ROOFPROF_CUPTI_LIB");
  EXPECT_EQ(found.path, cupti("all"));
  EXPECT_TRUE(found.simulated);
  require_counters(found);
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(loaded, nullptr) << name;
    EXPECT_NE(dlsym(loaded, "roofprof_simulated"), nullptr) << name << " is not the one beside CUPTI";
  }
}

TEST_F(Loading, WhatCannotBeUsedIsNamed) {
  for (const auto& [library, version, says] : std::vector<std::tuple<std::string, int, std::string>>{
           {"/nowhere/libcupti.so.13", 130202, "ROOFPROF_CUPTI_LIB cannot be loaded (/nowhere/libcupti.so.13: "},
           // A real library is not called behind a simulated driver.
           {"libdl.so.2", 130202, "of the driver and CUPTI one is simulated and the other is not: "},
           {cupti("all"), 26,
            "is too old: it is that of CUDA 12 or older (API version 26), and 13.0 is the oldest that works: use a "
            "torch that was built for CUDA 13"},
           {cupti("all"), 0, "(cuptiGetVersion: CUPTI_ERROR_UNKNOWN, 999)"},
           {cupti("without_timestamp"), 130202, "lacks what profilers need: cuptiGetTimestamp: "},
           {cupti("all"), 130000, "(nothing was thrown)"}}) {
    fake_reset();
    use("ROOFPROF_CUPTI_LIB", library);
    fake_set("cupti_version", version);
    if (version == 0) fake_fail("cuptiGetVersion", 999, 0);
    EXPECT_SAYS(says, opening());
    EXPECT_EQ(fake_calls("cuptiSubscribe"), 0);
  }
}

TEST_F(Loading, WithoutCountersKernelTimesWork) {
  use("ROOFPROF_CUPTI_LIB", cupti("without_counters"));
  const Api found = open_api();
  require_activity(found);
  const std::string message = message_of<CollectorError>([&] { require_counters(found); });
  EXPECT_SAYS("lacks what counters need: cuptiProfilerInitialize, ", message);
  EXPECT_SAYS(", cuptiDeviceGetChipName, ", message);
  EXPECT_EQ(message.find("cuptiActivity"), std::string::npos);
}

// What a process has loaded cannot be undone: these run in processes of their own.
class InAFreshProcess : public Loading {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Loading::SetUp();
  }
  void TearDown() override {
    unsetenv("LD_LIBRARY_PATH");
    Loading::TearDown();
  }

  [[noreturn]] static void say(const std::string& text) {
    std::cerr << text;
    std::exit(fake_ungated_calls() == 0 ? 0 : 1);
  }
  // Loads another library first, where one is named, and looks for CUPTI by its name alone.
  [[noreturn]] static void say_how_it_was_found(const std::string& loaded = "") {
    unsetenv("ROOFPROF_CUPTI_LIB");
    const bool by_the_system = loaded.find("libcupti.so.13") == std::string::npos &&
                               std::getenv("LD_LIBRARY_PATH") == nullptr &&
                               dlopen("libcupti.so.13", RTLD_NOW) != nullptr;
    if (by_the_system) say("the system has one");
    if (!loaded.empty()) dlopen(loaded.c_str(), RTLD_NOW);
    Api found;
    const std::string refused = message_of<CollectorError>([&] { found = open_api(); });
    say(found.how.empty() ? refused : found.how + ": " + found.path);
  }
};
using Exits = testing::ExitedWithCode;

TEST_F(InAFreshProcess, TheCopyThatIsLoadedComesBeforeTheSearchPath) {
  EXPECT_EXIT(say_how_it_was_found(), Exits(0),
              "there is no CUPTI here \\(libcupti.so.13\\): use a torch that was built for CUDA 13|the system has one");
  EXPECT_EXIT(say_how_it_was_found(fake_library("older", "libcupti.so.12")), Exits(0),
              "the CUPTI in this process is too old \\(libcupti.so.12; 13.0 is the oldest|the system has one");
  setenv("LD_LIBRARY_PATH", fake_library("all", "").c_str(), 1);
  EXPECT_EXIT(say_how_it_was_found(), Exits(0), "search path: .*/all/+libcupti.so.13");
  EXPECT_EXIT(say_how_it_was_found(cupti("without_counters")), Exits(0),
              "already loaded: .*/without_counters/libcupti.so.13");
}

TEST_F(InAFreshProcess, NothingOfCuptiIsCalledWithoutADriver) {
  const auto opened_without_driver = [](int init_code, int devices) {
    fake_fail("cuInit", init_code, 0);
    fake_set("devices", devices);
    const std::string message = opening();
    if (fake_calls("cupti*") != 0) say("CUPTI was called");
    if (dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD) != nullptr) say("CUPTI was loaded");
    say(message);
  };
  EXPECT_EXIT(opened_without_driver(34, 1), Exits(0), "is the CUDA toolkit's stub, not a driver");
  EXPECT_EXIT(opened_without_driver(0, 0), Exits(0), "shows no device");
  EXPECT_EXIT(opened_without_driver(803, 1), Exits(0), "does not start");
}

// ---- calls and errors

// "NAME = 35," of the header that this was built with.
TEST(CuptiErrors, EveryCodeOfTheHeaderHasItsNameAndASentenceWithAnAdvice) {
  std::map<int, std::string> codes;
  std::ifstream header(std::string(ROOFPROF_CUPTI_INCLUDE) + "/cupti_result.h");
  static const std::regex line(R"(^\s*(CUPTI_\w+)\s*=\s*(\d+),)");
  std::smatch parts;
  for (std::string text; std::getline(header, text);) {
    if (std::regex_search(text, parts, line)) codes[std::stoi(parts[2])] = parts[1];
  }
  ASSERT_GE(codes.size(), 48U);  // 0 to 46 and 999 in 13.0
  for (const auto& [code, name] : codes) {
    EXPECT_EQ(error_name(code), name) << code;
    const CuptiError error("cuptiAny", code);
    EXPECT_EQ(error.code(), code);
    EXPECT_SAYS("(cuptiAny: " + name + ", " + std::to_string(code) + ")", error.found());
    EXPECT_FALSE(error.advice().empty()) << name;
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_FALSE(text.ends_with('.')) << text;
  }
  EXPECT_EQ(error_name(4711), "an error that roofprof does not know");
}

// By the codes that users meet, as numbers: what NVIDIA's guide and header say of each.
TEST(CuptiErrors, SayWhatTheyMeanAndWhatToDo) {
  for (const auto& [code, words] : std::map<int, std::vector<std::string>>{
           {15, {"libnvperf_host.so"}},
           {26, {"somebody else uses the device's counters", "dcgmi profiling --pause"}},
           {27, {"does not support it", "counters=\"off\""}},
           {35, {"no permission", "NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN", "565", "CAP_PERFMON"}},
           {39, {"another profiler is at work", "nsys", "ncu", "cuda-gdb", "torch.profiler"}},
           {46, {"do not support this chip", "7.5"}},
           {4711, {"does not know", "4711"}}}) {
    for (const std::string& part : words) EXPECT_SAYS(part, CuptiError("cuptiAny", code).what());
  }
}

// ---- roofprof doctor

// What stands in the way, what is said of it and what helps; a function is to fail, or a setting to be set.
TEST_F(Loading, DoctorSaysWhatIsInTheWay) {
  using Case = std::tuple<std::string, std::function<void()>, std::string, std::string>;
  for (const auto& [what, happens, found, advice] : std::vector<Case>{
           // As some drivers do, which let everything be prepared.
           {"counters", [] { fake_fail("cuptiRangeProfilerStart", 35, 0); }, "no permission to read", "NVreg_Restrict"},
           {"counters", [] { fake_set("most_ranges", 900); }, "(chip GH100), 512 kernels in one run", ""},
           {"counters", [] { fake_fail("cuptiRangeProfilerEnable", 26, 0); }, "somebody else uses", "dcgmi profiling"},
           {"counters", [] { fake_set_text("refused_metric", "dram__bytes_read"); }, ", without dram_read_bytes", ""},
           {"counters", [] { fake_fail("cuDevicePrimaryCtxRetain", 46, 0); }, "CUDA_ERROR_DEVICE_UNAVAILABLE (46)", ""},
           {"cuda:0", [] { fake_set("nvml_mig", 1); }, ", in MIG mode", "may be missing"},
           {"kernel times", [] { fake_fail("cuptiSubscribe", 39, 0); }, "another client holds CUPTI's callbacks", ""},
           {"NVML", [] { use("ROOFPROF_NVML_LIB", "none/libnvidia-ml.so.1"); }, "none/libnvidia-ml.so.1", "clocks"}}) {
    fake_reset();
    happens();
    const std::vector<Examined> all = doctor();
    const auto of = std::ranges::find(all, what, &Examined::what);
    ASSERT_NE(of, all.end());
    EXPECT_SAYS(found, of->found);
    EXPECT_SAYS(advice, of->advice);
    for (const char* held : {"subscriber", "primary_context", "profiler", "host_object", "range_profiler"}) {
      EXPECT_EQ(fake_live(held), 0) << held;
    }
  }
}

TEST_F(InAFreshProcess, DoctorLooksNoFurtherThanItCan) {
  const auto look = [](const char* variable, const std::string& library, const std::string& what) {
    use(variable, library);
    const std::vector<Examined> all = doctor();
    const auto found = std::ranges::find(all, what, &Examined::what);
    say(found == all.end() ? "not looked at" : found->found + " -> " + found->advice);
  };
  EXPECT_EXIT(look("ROOFPROF_CUDA_LIB", "/nowhere/libcuda.so.1", "driver"), Exits(0),
              "ROOFPROF_CUDA_LIB cannot be loaded .*-> unset it");
  EXPECT_EXIT(look("ROOFPROF_CUDA_LIB", "/nowhere/libcuda.so.1", "CUPTI"), Exits(0), "not looked at");
  EXPECT_EXIT(look("ROOFPROF_CUPTI_LIB", "/nowhere/libcupti.so.13", "CUPTI"), Exits(0), "-> unset it, or name a lib");
  EXPECT_EXIT(look("ROOFPROF_CUPTI_LIB", cupti("without_counters"), "counters"), Exits(0),
              "lacks what counters need: cuptiProfilerInitialize");
}

}  // namespace
}  // namespace roofprof::cupti
