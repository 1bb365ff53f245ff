// Traces by hand, read as a C++ program reads them: their operators cost what torch's own meta kernels say.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "kineto/trace_builder.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

using testing::TraceText;

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kFloat = 4;  // bytes
// [64, 128] x [128, 32]
constexpr std::int64_t kMacs = std::int64_t{64} * 128 * 32;
constexpr std::int64_t kProductBytes = kFloat * (64 * 128 + 128 * 32 + 64 * 32);
constexpr std::int64_t kSum = std::int64_t{64} * 32;  // elements of [64, 32] + [64, 32]
constexpr const char* kProductArgs = R"("Input Dims": [[64, 128], [128, 32]], "Input type": ["float", "float"])";
constexpr const char* kSumArgs =
    R"("Input Dims": [[64, 32], [64, 32], []], "Input type": ["float", "float", "Scalar"], )"
    R"("Concrete Inputs": ["", "", "1"])";

class FromTrace : public ::testing::Test {
 protected:
  ~FromTrace() override { std::remove(path_.c_str()); }

  std::string written(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  // What Report::from_trace says of a file with that text, without the file's name; which it begins with.
  std::string refusal(const std::string& text) const {
    try {
      Report::from_trace(written(text));
    } catch (const std::runtime_error& problem) {
      const std::string message = problem.what();
      EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message.substr(std::min(path_.size() + 2, message.size()));
    }
    return "";
  }

 private:
  const std::string path_ = ::testing::TempDir() + "from_trace." + std::to_string(::getpid()) + ".json";
};

// A model that multiplies in a module of its own and adds outside of it.
TraceText of_a_net() {
  return TraceText()
      .module("Net_0", 0, 100)
      .module("Linear_0", 10, 40)
      .event("cpu_op", "aten::mm", 20, 25, kProductArgs)
      .event("cpu_op", "aten::add", 60, 10, kSumArgs);
}

TEST_F(FromTrace, OpsOfACpuCostWhatTheirShapesSay) {
  const auto report = Report::from_trace(written(of_a_net().text()));
  const auto& linear = report.row("Linear_0");
  EXPECT_EQ(linear.type, "Linear");
  EXPECT_EQ(linear.macs, kMacs);
  EXPECT_EQ(linear.flops, 2 * kMacs);
  EXPECT_EQ(linear.bytes, kProductBytes);
  EXPECT_EQ(linear.time_ns, 40 * kUs);
  EXPECT_EQ(linear.op_time_ns, 25 * kUs);
  EXPECT_EQ(report.row("").self.flops, kSum);
  EXPECT_EQ(report.row("").self.bytes, 3 * kFloat * kSum);
  EXPECT_EQ(report.total().macs, kMacs);
  EXPECT_EQ(report.total().flops, 2 * kMacs + kSum);
  EXPECT_EQ(report.total().time_ns, 100 * kUs);
  EXPECT_FALSE(report.total().incomplete);
  // Nobody publishes a CPU's roofs, and nothing is made up in their place.
  EXPECT_FALSE(report.total().percent_of_roof.has_value());
  EXPECT_NE(testing::note_of(report.coverage().notes, "no-roof"), "");
  EXPECT_NE(report.table().find("Linear_0"), std::string::npos);
}

TEST_F(FromTrace, KernelsOfAGpuGoToTheOpsThatLaunchedThem) {
  auto text = of_a_net();
  text.launch(1, 30).launch(2, 35).launch(3, 65);
  text.kernel("gemm", 1, 50, 30).kernel("gemm", 2, 90, 12).kernel("add", 3, 110, 7);
  const auto path = written(text.text());
  const auto report = Report::from_trace(path);
  EXPECT_EQ(report.row("Linear_0").time_ns, 42 * kUs);
  EXPECT_EQ(report.row("").self.time_ns, 7 * kUs);
  EXPECT_EQ(report.by_operator().at("aten::mm").time_ns, 42 * kUs);
  // The roofs are those of the card that the trace names, or those that are given.
  const auto h100 = Ceilings::published("H100 SXM");
  ASSERT_FALSE(report.ceilings().compute.empty());
  EXPECT_EQ(report.ceilings().compute.front().operations_per_second, h100.compute.front().operations_per_second);
  ASSERT_TRUE(report.total().percent_of_roof.has_value());
  const auto a100 = Ceilings::published("A100 SXM 80GB");
  const auto held = Report::from_trace(path, a100);
  EXPECT_EQ(held.ceilings().memory.back().bytes_per_second, a100.memory.back().bytes_per_second);
  EXPECT_GT(held.total().percent_of_roof.value_or(0), *report.total().percent_of_roof);
}

// torch knows the shapes of convolutions in Python alone, and those of other libraries' operators not at all.
TEST_F(FromTrace, WhatHasNoCostHereIsMarkedAndNamed) {
  auto text = of_a_net();
  text.module("Conv2d_0", 75, 8)
      .event("cpu_op", "aten::conv2d", 76, 6,
             R"("Input Dims": [[1, 3, 8, 8], [4, 3, 3, 3]], "Input type": ["float", "float"])")
      .event("cpu_op", "elsewhere::norm", 90, 5, R"("Input Dims": [[64, 32]], "Input type": ["float"])");
  const auto report = Report::from_trace(written(text.text()));
  EXPECT_TRUE(report.total().incomplete);
  EXPECT_TRUE(report.row("Conv2d_0").incomplete);
  EXPECT_FALSE(report.row("Linear_0").incomplete);
  EXPECT_EQ(report.total().macs, kMacs);
  EXPECT_EQ(report.row("Conv2d_0").op_time_ns, 6 * kUs);
  const auto table = report.table({.width = 400});
  EXPECT_NE(table.find("aten::conv2d"), std::string::npos) << table;
  EXPECT_NE(table.find("elsewhere::norm"), std::string::npos) << table;
}

TEST_F(FromTrace, DamagedFilesAreRefusedInOneSentence) {
  EXPECT_NE(refusal("").find("it is empty"), std::string::npos);
  EXPECT_NE(refusal("\x1f\x8b\x08 packed").find("packed by gzip: unpack it first"), std::string::npos);
  EXPECT_NE(refusal(Report::from_trace(written(of_a_net().text())).to_json()).find("a report of roofprof"),
            std::string::npos);
  try {
    Report::from_trace("absent.json");
    ADD_FAILURE() << "there is no such file";
  } catch (const std::runtime_error& problem) {
    EXPECT_STREQ(problem.what(), "absent.json: it cannot be read");
  }
}

}  // namespace
}  // namespace roofprof
