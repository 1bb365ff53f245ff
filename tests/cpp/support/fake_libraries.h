#pragma once
// Points roofprof at the fake libraries. Nothing of NVIDIA's is opened by a test that begins so.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fake_control.h"

namespace roofprof {

// A fake library by the folder of its kind: "all", "without_counters", ...; tests/fakes/CMakeLists.txt lists them.
inline std::string fake_library(const std::string& folder, const std::string& file) {
  return std::string(ROOFPROF_FAKES) + "/" + folder + "/" + file;
}

class WithFakes : public ::testing::Test {
 protected:
  void SetUp() override {
    use("ROOFPROF_CUDA_LIB", fake_library("all", "libcuda.so.1"));
    use("ROOFPROF_CUPTI_LIB", fake_library("all", "libcupti.so.13"));
    // There is none of the kind unless a test says so: the machine's own must not answer.
    use("ROOFPROF_NVML_LIB", fake_library("none", "libnvidia-ml.so.1"));
    fake_reset();
  }
  void TearDown() override {
    EXPECT_EQ(fake_ungated_calls(), 0) << "CUPTI was called before the driver was known to work";
  }

  static void use(const char* variable, const std::string& library) { setenv(variable, library.c_str(), 1); }
};

// The notes of a trace, or of one with counters: a line each.
template <class Trace>
std::string all_notes(const Trace& trace) {
  std::string text;
  for (const auto& note : trace.notes) text += note.code + ": " + note.text + '\n';
  return text;
}

// EXPECT_SAYS("cuInit", message): the part is in it.
#define EXPECT_SAYS(part, text) EXPECT_PRED_FORMAT2(::testing::IsSubstring, part, text)

// The message of the error that the call ends with.
template <class Error, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace roofprof
