#include "machine/roofs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/possible.h"

namespace roofprof {
namespace {

void expect_measured(const Provenance& provenance) {
  EXPECT_EQ(provenance.source, "measured");
  EXPECT_NE(provenance.method.find("thread"), std::string::npos) << provenance.method;
  EXPECT_NE(provenance.method.find("best of"), std::string::npos) << provenance.method;
  EXPECT_EQ(provenance.date.size(), std::string("2024-02-29").size()) << provenance.date;
  // A busy machine has time for one round alone, which has no spread.
  EXPECT_EQ(!provenance.spread, std::regex_search(provenance.method, std::regex("best of 1\\b"))) << provenance.method;
  EXPECT_GE(provenance.spread.value_or(0), 0);
  EXPECT_LE(provenance.spread.value_or(0), 1);
}

// One line for each dtype that is tried, in this order, then for bandwidths and for each round, whose number follows
// time. Other lines say what was left out.
void expect_lines(const std::vector<std::string>& lines) {
  std::vector<std::string> expected;
  for (const std::string dtype : {"fp32", "fp64", "bf16", "fp16", "int8"}) {
    expected.push_back(dtype + " products and convolutions");
  }
  expected.emplace_back("bandwidth over 16 KiB to ");
  expected.emplace_back("round 1 of ");
  auto next = expected.begin();
  for (const auto& line : lines) {
    EXPECT_TRUE(line.starts_with("roofs of this machine: ")) << line;
    if (next != expected.end() && line.find(*next) != std::string::npos) ++next;
  }
  EXPECT_EQ(next, expected.end()) << *next;
}

// One test, as each takes a whole measurement of about ten seconds.
TEST(MeasuringCeilings, OfTheCpu) {
  const at::Tensor random_state = at::detail::getDefaultCPUGenerator().get_state();
  std::vector<std::string> lines;
  const auto measured = measure_ceilings("cpu", [&](std::string_view line) { lines.emplace_back(line); });
  const Ceilings& ceilings = measured.ceilings;

  EXPECT_FALSE(ceilings.device.empty());
  expect_lines(lines);
  ASSERT_FALSE(ceilings.compute.empty());
  EXPECT_EQ(ceilings.compute[0].dtype, DType::fp32);
  testing::expect_possible_fp32_rate(ceilings.compute[0].operations_per_second);
  for (const auto& peak : ceilings.compute) {
    EXPECT_GT(peak.operations_per_second, 0);
    expect_measured(peak.provenance);
  }
  EXPECT_TRUE(random_state.equal(at::detail::getDefaultCPUGenerator().get_state()));
  if (ceilings.memory.empty()) {
    EXPECT_TRUE(std::ranges::any_of(measured.notes, [](const std::string& note) {
      return note.find("could not be allocated") != std::string::npos;
    }));
    return;
  }
  for (std::size_t i = 0; i < ceilings.memory.size(); ++i) {
    const auto& level = ceilings.memory[i];
    testing::expect_possible_bandwidth(level.bytes_per_second);
    expect_measured(level.provenance);
    if (i + 1 < ceilings.memory.size()) {
      EXPECT_GT(level.capacity_bytes, 0);
    }
    if (i > 0 && level.capacity_bytes > 0) {
      EXPECT_GT(level.capacity_bytes, ceilings.memory[i - 1].capacity_bytes);
    }
  }
  ASSERT_FALSE(ceilings.curve.empty());
  EXPECT_EQ(ceilings.curve.points.front().working_set_bytes, 16384);
  for (std::size_t i = 1; i < ceilings.curve.points.size(); ++i) {
    EXPECT_GT(ceilings.curve.points[i].working_set_bytes, ceilings.curve.points[i - 1].working_set_bytes);
    EXPECT_LE(ceilings.curve.points[i].read, ceilings.curve.points[i - 1].read);
  }
  EXPECT_EQ(ceilings.memory.back().level, "DRAM");
  EXPECT_EQ(ceilings.memory.back().capacity_bytes, 0);
}

TEST(MeasureCeilings, OfAnUnknownDeviceIsRefusedInASentence) {
  for (const std::string device : {"meta", "", "cudas", "cuda:", "cuda:99"}) {
    try {
      measure_ceilings(device);
      FAIL() << device;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("\"" + device + "\""), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace roofprof
