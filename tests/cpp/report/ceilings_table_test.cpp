#include "report/ceilings_table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace roofprof {
namespace {

Ceilings measured() {
  Ceilings roofs;
  roofs.device = "a GPU, cuda:0";
  roofs.compute.push_back({DType::fp32, 78.65e12, {"measured", "convolution", "2024-02-29", 0.01}});
  roofs.compute.push_back({DType::fp64, 1.2e12, {"measured", "at::mm", "2024-02-29", 0.01}});
  roofs.memory.push_back({"DRAM", 0.92e12, 0, {"measured", "copy", "2024-02-29", 0.02}});
  roofs.memory.push_back({"host link", 25e9, 0, {"measured", "pinned to device", "2024-02-29", 0.02}});
  return roofs;
}

Ceilings published() {
  Ceilings roofs;
  roofs.device = "RTX 4090";
  roofs.compute.push_back({DType::fp32, 82.6e12, {"published", "whitepaper", "", {}}});
  roofs.compute.push_back({DType::int8, 660.6e12, {"published", "whitepaper", "", {}}});
  roofs.memory.push_back({"DRAM", 1.008e12, 0, {"published", "whitepaper", "", {}}});
  return roofs;
}

std::string line_of(const std::string& table, const std::string& roof) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(roof + " ")) return line;
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CeilingsTable, EachRoofHasALineWithWhereItComesFrom) {
  const std::string table = ceilings_table(measured(), 160);
  EXPECT_TRUE(has(line_of(table, "fp32"), "78.7 T")) << table;
  EXPECT_TRUE(has(line_of(table, "host link"), "pinned to device")) << table;
  EXPECT_FALSE(has(table, "published"));
  EXPECT_EQ(ceilings_table(Ceilings{}), "no roofs\n");
  Ceilings of_busy = measured();
  of_busy.busy_share = 0.43;
  EXPECT_TRUE(has(ceilings_table(of_busy, 160), "other programs used 43.0% of the processors meanwhile"));
}

// 78.65 of 82.6 and 0.92 of 1.008: the worked example's card.
TEST(CeilingsTable, StandsBesideThePublishedValuesWithTheShareOfThem) {
  const Ceilings theirs = published();
  const std::string table = ceilings_table(measured(), 160, &theirs);
  EXPECT_TRUE(has(line_of(table, "fp32"), "82.6 T")) << table;
  EXPECT_TRUE(has(line_of(table, "fp32"), "95.2%")) << table;
  EXPECT_TRUE(has(line_of(table, "DRAM"), "91.3%")) << table;
  EXPECT_TRUE(has(line_of(table, "fp64"), "n/a")) << table;    // not published
  EXPECT_TRUE(has(line_of(table, "int8"), "661 T")) << table;  // published alone
  EXPECT_TRUE(has(line_of(table, "int8"), "n/a")) << table;
  EXPECT_TRUE(has(table, "of the published value of RTX 4090")) << table;
  EXPECT_TRUE(has(table, "published peaks are for boost clocks")) << table;
  EXPECT_TRUE(ceilings_table(Ceilings{}, 160, &theirs).starts_with("RTX 4090\n"));
}

TEST(CeilingsTable, ACurveHasALineForEachDoubledWorkingSet) {
  Ceilings roofs = measured();
  EXPECT_FALSE(has(ceilings_table(roofs, 160), "working set"));
  roofs.curve.points = {{16'000, 400e9, 500e9, 450e9, 230e9, 460e9, 0.25},
                        {23'000, 1e9, 1e9, 1e9, 1e9, 1e9, 0.25},
                        {32'000, 300e9, 200e9, 150e9, 100e9, 50e9, 0.25}};
  roofs.curve.provenance.spread = 0.25;
  const std::string table = ceilings_table(roofs, 160);
  EXPECT_TRUE(has(table, "16.0 kB  400 GB/s  500 GB/s  450 GB/s  230 GB/s   460 GB/s   25.0%")) << table;
  EXPECT_TRUE(has(table, "32.0 kB")) << table;
  EXPECT_FALSE(has(table, "23.0 kB")) << table;
}

TEST(CeilingsTable, SaysWhatGaveThePeaksAndHowMuchLowerTheSustainedRatesAre) {
  Ceilings roofs = measured();
  EXPECT_EQ(sustained_text(roofs) + fastest_text(roofs), "");
  roofs.compute[0].operations_per_second = 80e12;
  roofs.compute[0].sustained = SustainedRate{60e12, 1.02, 1'410e6, 690};
  roofs.compute[1].sustained = SustainedRate{1.2e12, 1, 0, 0};
  const std::string expected = "over 1 s: fp32 60.0 TFLOP/s, 25.0% lower, at 1410 MHz and 690 W; fp64 1.20 TFLOP/s";
  EXPECT_EQ(sustained_text(roofs), expected);
  EXPECT_TRUE(has(ceilings_table(roofs, 160), expected));
  roofs.compute[0].fastest = FastestWork{"at::mm 64x64x64 (MxKxN), right transposed", "sgemm", ""};
  roofs.compute[1].fastest = FastestWork{"convolution", "", "torch.profiler is active"};
  EXPECT_EQ(fastest_text(roofs),
            "fp32: at::mm 64x64x64 (MxKxN), right transposed by sgemm; fp64: convolution; kernels of fp64: n/a because "
            "torch.profiler is active");
}

}  // namespace
}  // namespace roofprof
