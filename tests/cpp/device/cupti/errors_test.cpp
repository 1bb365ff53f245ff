#include <cupti_result.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "device/cupti/api.h"

namespace roofprof::cupti {
namespace {

// "NAME = 35," of the header that this was built with.
std::map<int, std::string> codes_of_the_header() {
  std::map<int, std::string> codes;
  std::ifstream header(std::string(ROOFPROF_CUPTI_INCLUDE) + "/cupti_result.h");
  static const std::regex line(R"(^\s*(CUPTI_\w+)\s*=\s*(\d+),)");
  std::smatch parts;
  for (std::string text; std::getline(header, text);) {
    if (std::regex_search(text, parts, line)) codes[std::stoi(parts[2])] = parts[1];
  }
  return codes;
}

TEST(CuptiErrors, EveryCodeOfTheHeaderHasItsName) {
  const auto codes = codes_of_the_header();
  ASSERT_GE(codes.size(), 48U);  // 0 to 46 and 999 in 13.0
  for (const auto& [code, name] : codes) EXPECT_EQ(error_name(code), name) << code;
  EXPECT_EQ(error_name(4711), "an error that roofprof does not know");
}

std::string sentence(int code) { return CuptiError("cuptiAny", code).what(); }

TEST(CuptiErrors, AllAreOneSentenceWithAnAdvice) {
  for (const auto& [code, name] : codes_of_the_header()) {
    if (code == CUPTI_SUCCESS) continue;
    const CuptiError error("cuptiAny", code);
    EXPECT_EQ(error.code(), code);
    EXPECT_FALSE(error.advice().empty()) << name;
    EXPECT_NE(error.found().find("(cuptiAny: " + name + ", " + std::to_string(code) + ")"), std::string::npos);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_FALSE(text.ends_with('.')) << text;
  }
}

struct Said {
  int code;
  std::vector<std::string> parts;
};

class CuptiErrorSays : public testing::TestWithParam<Said> {};

TEST_P(CuptiErrorSays, WhatItMeansAndWhatToDo) {
  for (const std::string& part : GetParam().parts) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, part, sentence(GetParam().code));
  }
}

// By the codes that users meet, as numbers: what NVIDIA's guide and header say of each.
INSTANTIATE_TEST_SUITE_P(
    ByCode, CuptiErrorSays,
    testing::Values(
        Said{1, {"refuses what it was asked", "roofprof doctor"}}, Said{15, {"libnvperf_host.so"}},
        Said{26, {"somebody else uses the device's counters", "dcgmi profiling --pause"}},
        Said{27, {"does not support it", "counters=\"off\""}}, Said{33, {"virtual GPU"}},
        Said{35, {"no permission", "NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN", "565", "CAP_PERFMON"}},
        Said{36, {"CUPTI's old profiling functions"}}, Said{38, {"CUPTI of CUDA 13"}},
        Said{39, {"another profiler is at work", "nsys", "ncu", "cuda-gdb", "torch.profiler"}},
        Said{40, {"hypervisor", "NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN", "565", "CAP_PERFMON"}},
        Said{41, {"confidential computing"}}, Said{42, {"mining"}}, Said{43, {"MIG"}}, Said{44, {"SLI"}},
        Said{45, {"WSL"}}, Said{46, {"do not support this chip", "7.5"}},
        Said{999, {"without saying why", "roofprof doctor"}}, Said{4711, {"does not know", "4711"}}),
    [](const auto& info) { return "Code" + std::to_string(info.param.code); });

// ---- parameter structs: sizes as found by asking a library of 13.0, which refuses the larger ones of 13.2

template <class Params>
void expect_size(std::size_t bytes) {
  const auto given = params<Params>();
  EXPECT_EQ(given.structSize, bytes);
  const auto* raw = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t at = sizeof(given.structSize); at < sizeof given; ++at) EXPECT_EQ(raw[at], 0) << at;
}

TEST(CuptiParams, HaveTheSizesOf13_0) {
  expect_size<CUpti_Profiler_Host_Initialize_Params>(48);
  expect_size<CUpti_Profiler_Host_GetMetricProperties_Params>(60);
  expect_size<CUpti_Profiler_GetCounterAvailability_Params>(40);
  expect_size<CUpti_RangeProfiler_SetConfig_Params>(90);
  expect_size<CUpti_RangeProfiler_Enable_Params>(32);
  expect_size<CUpti_RangeProfiler_Stop_Params>(41);
  if (CUPTI_API_VERSION < 130100) {
    EXPECT_EQ(params<CUpti_Profiler_DeviceSupported_Params>().structSize,
              static_cast<std::size_t>(CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE));
  }
}

}  // namespace
}  // namespace roofprof::cupti
