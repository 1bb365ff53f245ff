#include "device/doctor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "device/interface/collector.h"
#include "device/nvidia/driver.h"

namespace roofprof::cuda {
namespace {

// Texts as drivers write them.
constexpr const char* kOpenModule =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U16)\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
constexpr const char* kClosedModule =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n";

TEST(KernelModuleVersion, IsFoundInBothKindsOfModule) {
  EXPECT_EQ(kernel_module_version(kOpenModule), "580.65.06");
  EXPECT_EQ(kernel_module_version(kClosedModule), "550.54.14");
  EXPECT_EQ(kernel_module_version("GCC version: 12.2.0\n"), "");
  EXPECT_EQ(kernel_module_version(""), "");
}

TEST(CountersNeedAdmin, IsReadFromTheParameters) {
  EXPECT_EQ(counters_need_admin("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nPreserve: 0\n"), true);
  EXPECT_EQ(counters_need_admin("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n"), false);
  EXPECT_EQ(counters_need_admin("ResmanDebugLevel: 4294967295\n"), std::nullopt);
}

// CAP_SYS_ADMIN is bit 21 of the effective capabilities, CAP_PERFMON bit 38, which drivers know from 565 on.
TEST(MayProfile, WithSysAdminAndWithPerfmonOfNewDrivers) {
  constexpr const char* kOld = "550.54.14";
  constexpr const char* kNew = "565.57.01";
  for (const auto* version : {kOld, kNew, ""}) {
    EXPECT_TRUE(may_profile("Name:\tbash\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n", version));     // root
    EXPECT_FALSE(may_profile("CapPrm:\t000001ffffffffff\nCapEff:\t00000000a80425fb\n", version));  // root in docker
    EXPECT_TRUE(may_profile("CapEff:\t0000000000200000\n", version));
    EXPECT_FALSE(may_profile("", version));
    EXPECT_EQ(may_profile("CapEff:\t0000004000000000\n", version), version == kNew);
  }
}

TEST(OtherProfilers, AreReportedByTheirEnvironment) {
  const std::vector<std::pair<const char*, const char*>> variables = {
      {"CUDA_INJECTION64_PATH", "a library that the driver loads (CUDA_INJECTION64_PATH=/opt/libtool.so)"},
      {"NSYS_PROFILING_SESSION_ID", "Nsight Systems (NSYS_PROFILING_SESSION_ID is set)"},
      {"NV_NSIGHT_INJECTION_PORT_BASE", "Nsight Compute (NV_NSIGHT_INJECTION_PORT_BASE is set)"}};
  for (const auto& [variable, words] : variables) {
    EXPECT_TRUE(profilers_in_environment().empty());
    setenv(variable, "/opt/libtool.so", 1);
    EXPECT_EQ(profilers_in_environment(), std::vector<std::string>{words});
    unsetenv(variable);
  }
  // A profiler is named once, by what is its own.
  setenv("CUDA_INJECTION64_PATH", "/opt/libtool.so", 1);
  setenv("NSYS_PROFILING_SESSION_ID", "4711", 1);
  EXPECT_EQ(profilers_in_environment(), std::vector<std::string>{variables[1].second});
  unsetenv("CUDA_INJECTION64_PATH");
  unsetenv("NSYS_PROFILING_SESSION_ID");
}

#ifndef ROOFPROF_FAKES  // which are built where there are CUPTI's headers

TEST(WithoutCuptisHeaders, ItIsReported) {
  try {
    make_collector("cuda:0");
    FAIL() << "a collector was made";
  } catch (const CollectorError& error) {
    EXPECT_TRUE(error.found().starts_with("this roofprof was built without kernel times and counters of GPUs: "))
        << error.found();
    EXPECT_NE(error.advice().find("ROOFPROF_CUPTI_INCLUDE_DIR"), std::string::npos) << error.advice();
  }
  const auto findings = doctor();
  EXPECT_EQ(findings.front().what, "this build");
  EXPECT_TRUE(findings.front().found.starts_with("has no kernel times and counters of GPUs: "))
      << findings.front().found;
  EXPECT_NE(findings.front().advice.find("ROOFPROF_CUPTI_INCLUDE_DIR"), std::string::npos);
}

#endif

}  // namespace
}  // namespace roofprof::cuda
