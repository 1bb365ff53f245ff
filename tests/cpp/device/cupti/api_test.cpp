#include "device/cupti/api.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {
namespace {

class Loading : public WithFakes {
 protected:
  static std::string opening() {
    return message_of<CollectorError>([] { open_api(); });
  }
};

TEST_F(Loading, TheLibraryAskedForComesFirst) {
  const Api found = open_api();
  EXPECT_EQ(found.version, 130202U);
  EXPECT_EQ(version_text(found.version), "13.2.2");
  EXPECT_EQ(found.how, "ROOFPROF_CUPTI_LIB");
  EXPECT_EQ(found.path, fake_library("all", "libcupti.so.13"));
  EXPECT_TRUE(found.simulated);
}

TEST_F(Loading, ALibraryThatIsNotThereIsNamed) {
  use("ROOFPROF_CUPTI_LIB", "/nowhere/libcupti.so.13");
  EXPECT_SAYS("ROOFPROF_CUPTI_LIB cannot be loaded (/nowhere/libcupti.so.13: ", opening());
  EXPECT_EQ(fake_calls("cupti*"), 0);
}

TEST_F(Loading, ARealLibraryIsNotCalledBehindASimulatedDriver) {
  use("ROOFPROF_CUPTI_LIB", "libdl.so.2");
  EXPECT_SAYS("of the driver and CUPTI one is simulated and the other is not: ", opening());
}

TEST_F(Loading, ALibraryOfCuda12IsTooOld) {
  fake_set("cupti_version", 26);
  EXPECT_SAYS("libcupti.so.13 is too old: it is that of CUDA 12 or older (API version 26), and 13.0 is the oldest",
              opening());
  EXPECT_SAYS("a torch that was built for CUDA 13", opening());
  EXPECT_EQ(fake_calls("cuptiSubscribe"), 0);
  fake_set("cupti_version", 130000);
  EXPECT_EQ(open_api().version, 130000U);
}

TEST_F(Loading, AVersionThatIsNotToldIsAnError) {
  fake_fail("cuptiGetVersion", 999, 0);
  EXPECT_SAYS("(cuptiGetVersion: CUPTI_ERROR_UNKNOWN, 999)", opening());
}

TEST_F(Loading, AMissingFunctionThatAllNeedIsNamed) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_timestamp", "libcupti.so.13"));
  EXPECT_SAYS("CUPTI 13.2.2 (" + fake_library("without_timestamp", "libcupti.so.13") +
                  ") lacks what profilers need: cuptiGetTimestamp: ",
              opening());
}

TEST_F(Loading, CountersHaveTheLibrariesThatLieBesideCupti) {
  require_counters(open_api());
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(loaded, nullptr) << name;
    EXPECT_NE(dlsym(loaded, "roofprof_fake_nvperf"), nullptr) << name << " is not the one beside CUPTI";
  }
}

TEST_F(Loading, WithoutCountersKernelTimesWork) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_counters", "libcupti.so.13"));
  const Api found = open_api();
  EXPECT_EQ(found.cuptiRangeProfilerEnable, nullptr);
  const std::string said = message_of<CollectorError>([&] { require_counters(found); });
  EXPECT_SAYS("lacks what counters need: cuptiProfilerInitialize, ", said);
  EXPECT_SAYS(", cuptiDeviceGetChipName, ", said);
  EXPECT_EQ(said.find("cuptiActivity"), std::string::npos);
}

TEST_F(Loading, WithoutActivityCountersAreNotBlamed) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_activity", "libcupti.so.13"));
  const Api found = open_api();
  const std::string said = message_of<CollectorError>([&] { require_activity(found); });
  EXPECT_SAYS("lacks what kernel times need: cuptiActivityRegisterCallbacks, cuptiActivityEnable, ", said);
  EXPECT_EQ(said.find("cuptiProfiler"), std::string::npos);
}

// What a process has loaded cannot be undone: these run in processes of their own.
class InAFreshProcess : public Loading {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Loading::SetUp();
    unsetenv("ROOFPROF_CUPTI_LIB");
    unsetenv("LD_LIBRARY_PATH");
  }
  void TearDown() override {
    unsetenv("LD_LIBRARY_PATH");
    Loading::TearDown();
  }

  [[noreturn]] static void say(const std::string& text) {
    std::cerr << text;
    std::exit(fake_ungated_calls() == 0 ? 0 : 1);
  }
  [[noreturn]] static void say_how_it_was_found() {
    const Api found = open_api();
    say(found.how + ": " + found.path);
  }
};
using Exits = testing::ExitedWithCode;

TEST_F(InAFreshProcess, TheCopyThatIsLoadedComesBeforeTheSearchPath) {
  setenv("LD_LIBRARY_PATH", fake_library("without_activity", "").c_str(), 1);
  EXPECT_EXIT(
      {
        dlopen(fake_library("without_counters", "libcupti.so.13").c_str(), RTLD_NOW);
        say_how_it_was_found();
      },
      Exits(0), "already loaded: .*/without_counters/libcupti.so.13");
}

TEST_F(InAFreshProcess, ElseItIsLookedForByItsName) {
  setenv("LD_LIBRARY_PATH", fake_library("all", "").c_str(), 1);
  EXPECT_EXIT(say_how_it_was_found(), Exits(0), "search path: .*/all/+libcupti.so.13");
}

TEST_F(InAFreshProcess, TheOneThatWorkedIsKept) {
  use("ROOFPROF_CUPTI_LIB", fake_library("all", "libcupti.so.13"));
  EXPECT_EXIT(
      {
        fake_set("cupti_version", 26);
        const std::string too_old = message_of<CollectorError>([] { api(); });
        fake_set("cupti_version", 130001);
        const Api& first = api();
        use("ROOFPROF_CUPTI_LIB", "/nowhere/libcupti.so.13");
        say(too_old + "; " + version_text(first.version) + (&api() == &first ? ", kept" : ", opened again"));
      },
      Exits(0), "too old.*; 13\\.0\\.1, kept");
}

TEST_F(InAFreshProcess, NoneAtAllIsSaid) {
  EXPECT_EXIT(
      {
        if (dlopen("libcupti.so.13", RTLD_NOW) != nullptr) say("the system has one");
        say(opening());
      },
      Exits(0),
      "there is no CUPTI here \\(libcupti.so.13\\): use a torch that was built for CUDA 13|the system has one");
}

TEST_F(InAFreshProcess, OneOfCuda12IsSaidToBeTooOld) {
  EXPECT_EXIT(
      {
        if (dlopen("libcupti.so.13", RTLD_NOW) != nullptr) say("the system has one");
        dlopen(fake_library("older", "libcupti.so.12").c_str(), RTLD_NOW);
        say(opening());
      },
      Exits(0),
      "the CUPTI in this process is too old \\(libcupti.so.12; 13.0 is the oldest that works\\)|the system has one");
}

TEST_F(InAFreshProcess, NothingOfCuptiIsCalledWithoutADriver) {
  use("ROOFPROF_CUPTI_LIB", fake_library("all", "libcupti.so.13"));
  const auto opened_without_driver = [](int init_code, int devices) {
    fake_fail("cuInit", init_code, 0);
    fake_set("devices", devices);
    const std::string said = opening();
    if (fake_calls("cupti*") != 0) say("CUPTI was called");
    if (dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD) != nullptr) say("CUPTI was loaded");
    say(said);
  };
  EXPECT_EXIT(opened_without_driver(34, 1), Exits(0), "is the CUDA toolkit's stub, not a driver");
  EXPECT_EXIT(opened_without_driver(0, 0), Exits(0), "shows no device");
  EXPECT_EXIT(opened_without_driver(803, 1), Exits(0), "does not start");
}

// ---- calls

TEST_F(Loading, ACheckedCallThatFailsNamesItselfAndItsCode) {
  const Api found = open_api();
  std::uint64_t time = 0;
  ROOFPROF_CUPTI(found, cuptiGetTimestamp, &time);
  EXPECT_EQ(time, static_cast<std::uint64_t>(fake_now()));

  fake_fail("cuptiGetTimestamp", 15, 0);
  try {
    ROOFPROF_CUPTI(found, cuptiGetTimestamp, &time);
    FAIL() << "nothing was thrown";
  } catch (const CuptiError& error) {
    EXPECT_EQ(error.code(), 15);
    EXPECT_EQ(error.found(), "CUPTI does not start (cuptiGetTimestamp: CUPTI_ERROR_NOT_INITIALIZED, 15)");
  }
}

TEST_F(Loading, ACheckedCallOfAMissingFunctionIsAnErrorToo) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_timestamp", "libcupti.so.13"));
  Api empty;
  std::uint64_t time = 0;
  EXPECT_SAYS("this CUPTI lacks the function (cuptiGetTimestamp: CUPTI_ERROR_API_NOT_IMPLEMENTED, 11)",
              message_of<CuptiError>([&] { ROOFPROF_CUPTI(empty, cuptiGetTimestamp, &time); }));
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

TEST_F(Loading, OpenedAThousandTimesItIsLoadedOnce) {
  open_api();
  const std::size_t before = mappings();
  for (int cycle = 0; cycle < 1000; ++cycle) open_api();
  EXPECT_LE(mappings(), before + 2);  // the heap may grow by a mapping
}

}  // namespace
}  // namespace roofprof::cupti
