// Texts as ncu prints them: both layouts, units, numbers, lines around the table, and texts that are none.
#include "ncu/output.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <string_view>

#include "ncu/counters.h"

namespace roofprof::ncu {
namespace {

constexpr std::string_view kRaw =
    "==PROF== Connected to process 7 (/usr/bin/python3)\n"
    "loss 0.5, \"fine\"\n"
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Stream\",\"Block Size\",\"Grid "
    "Size\",\"Device\",\"CC\",\"dram__bytes.sum\","
    "\"gpu__time_duration.sum\",\"sm__warps_active.avg.pct_of_peak_sustained_active\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"usecond\",\"%\"\n"
    "\"0\",\"7\",\"void f<(int)4, float>(T1, \"\"x\"\")\",\"13\",\"(256, 1, 1)\",\"(1,024, 2, "
    "1)\",\"1\",\"8.0\",\"1,234.50\","
    "\"1,002.25\",\"50\"\n"
    "==PROF== Disconnected from process 7\n";

Output read(std::string_view text, std::size_t piece = ~std::size_t{0}) {
  OutputReader reader;
  for (std::size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
    reader.feed(text.substr(at, piece));
  }
  return reader.finish();
}

double value_of(const Output& output, std::string_view metric, std::size_t kernel = 0) {
  return output.kernels[kernel].values[static_cast<std::size_t>(output.column_of(metric))];
}

TEST(NcuOutput, AKernelARow) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, kRaw.size()}) {
    const auto output = read(kRaw, piece);
    ASSERT_EQ(output.kernels.size(), 1U);
    const auto& kernel = output.kernels.front();
    EXPECT_EQ(output.names[kernel.name], "void f<(int)4, float>(T1, \"x\")");
    EXPECT_EQ(kernel.block, (std::array<std::int32_t, 3>{256, 1, 1}));
    EXPECT_EQ(kernel.device, 1);
    EXPECT_EQ(kernel.stream, 13);
    EXPECT_EQ(kernel.process, 7);
    EXPECT_EQ(output.compute_capability, "8.0");
    EXPECT_DOUBLE_EQ(value_of(output, "dram__bytes.sum"), 1'234.5e6);
    EXPECT_DOUBLE_EQ(value_of(output, "gpu__time_duration.sum"), 1'002'250);
    EXPECT_TRUE(output.rounded);
    EXPECT_EQ(output.metrics.size(), 2U);
    EXPECT_EQ(output.damaged_rows, 0);
  }
}

TEST(NcuOutput, AMetricARow) {
  const auto output = read(
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule "
      "Name\"\r\n"
      "\"0\",\"7\",\"a\",\"s\",\"dram__bytes.sum\",\"byte\",\"41,088\"\r\n"
      "\"0\",\"7\",\"a\",\"Launch Statistics\",\"Grid Size\",\"\",\"1,024\"\r\n"
      "\"0\",\"7\",\"a\",\"Launch Statistics\",\"Block Size\",\"\",\"256\"\r\n"
      "\"0\",\"7\",\"a\",\"Occupancy\",\"\",\"\",\"\",\"a rule\"\r\n"
      "\"0\",\"7\",\"a\",\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"1.5\"\r\n"
      "\"1\",\"7\",\"a\",\"s\",\"dram__bytes.sum\",\"byte\",\"n/a\"\r\n"
      "\"1\",\"8\",\"b\",\"s\",\"dram__bytes.sum\",\"byte\",\"7\"\r\n");
  ASSERT_EQ(output.kernels.size(), 3U);
  EXPECT_EQ(output.kernels[0].blocks, 1024);
  EXPECT_EQ(output.kernels[0].block_threads, 256);
  EXPECT_EQ(output.kernels[0].grid[0], 0);
  EXPECT_DOUBLE_EQ(value_of(output, "dram__bytes.sum"), 41'088);
  EXPECT_DOUBLE_EQ(value_of(output, "gpu__time_duration.sum"), 1'500);
  EXPECT_TRUE(output.kernels[1].values.empty());
  EXPECT_DOUBLE_EQ(value_of(output, "dram__bytes.sum", 2), 7);
  EXPECT_EQ(output.unread_values, 0);  // ncu said that it is not known
  EXPECT_EQ(output.column_of("lts__t_bytes.sum"), -1);
}

// One value of one metric, in that unit.
double of(const std::string& metric, const std::string& unit, const std::string& value) {
  const auto output = read("\"ID\",\"Kernel Name\",\"" + metric + "\",\"l1tex__t_bytes.sum\"\n\"\",\"\",\"" + unit +
                           "\",\"byte\"\n\"0\",\"k\",\"" + value + "\",\"7\"\n");
  return output.kernels[0].values[0];
}

TEST(NcuOutput, Units) {
  const std::string bytes = "lts__t_bytes.sum";
  for (const auto& [unit, factor] : std::vector<std::pair<std::string, double>>{{"byte", 1},
                                                                                {"B", 1},
                                                                                {"Kbyte", 1e3},
                                                                                {"KB", 1e3},
                                                                                {"Mbyte", 1e6},
                                                                                {"MB", 1e6},
                                                                                {"Gbyte", 1e9},
                                                                                {"GB", 1e9},
                                                                                {"Tbyte", 1e12},
                                                                                {"KiB", 1024}}) {
    EXPECT_DOUBLE_EQ(of(bytes, unit, "2.5"), 2.5 * factor) << unit;
  }
  const std::string time = "gpu__time_duration.sum";
  for (const auto& [unit, ns] : std::vector<std::pair<std::string, double>>{{"nsecond", 1},
                                                                            {"ns", 1},
                                                                            {"usecond", 1e3},
                                                                            {"us", 1e3},
                                                                            {"msecond", 1e6},
                                                                            {"ms", 1e6},
                                                                            {"second", 1e9},
                                                                            {"s", 1e9}}) {
    EXPECT_DOUBLE_EQ(of(time, unit, "2.5"), 2.5 * ns) << unit;
  }
  const std::string instructions = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
  for (const std::string unit : {"inst", ""}) EXPECT_DOUBLE_EQ(of(instructions, unit, "1,234,567"), 1'234'567);
  EXPECT_DOUBLE_EQ(of("sm__cycles_elapsed.avg.per_second", "cycle/nsecond", "1.41"), 1.41e9);
  EXPECT_DOUBLE_EQ(of("sm__cycles_elapsed.avg.per_second", "cycle/second", "1,410,000,000"), 1.41e9);
  EXPECT_DOUBLE_EQ(of("sm__cycles_elapsed.avg.per_second", "Ghz", "1.41"), 1.41e9);
  // A unit of another kind is not guessed at.
  EXPECT_TRUE(std::isnan(of(bytes, "sector", "5")));
  EXPECT_TRUE(std::isnan(of(bytes, "", "5")));
  EXPECT_TRUE(std::isnan(of(time, "cycle", "5")));
  EXPECT_TRUE(std::isnan(of(time, "ns", "-5")));
  EXPECT_TRUE(std::isnan(of(time, "ns", "(!) n/a")));
}

TEST(NcuOutput, OtherDecimalPointsAreRefused) {
  for (const std::string value : {"1.234,5", "12,5", "1.234.567", "1,23,456", "1234,5"}) {
    EXPECT_THROW(of("lts__t_bytes.sum", "byte", value), NcuError) << value;
  }
  EXPECT_DOUBLE_EQ(of("lts__t_bytes.sum", "byte", "12,345.5"), 12'345.5);
}

TEST(NcuOutput, RowsOfAnotherLengthAreLeftOut) {
  std::string text(kRaw);
  text += "\"1\",\"7\",\"g\"\n";
  text += "\"2\",\"7\",\"cut\"\n";
  EXPECT_EQ(read(text).damaged_rows, 2);
  EXPECT_EQ(read(text).kernels.size(), 1U);
}

TEST(NcuOutput, ATextThatEndsInARowIsRefused) {
  const auto row = kRaw.find("\"0\",\"7\"");
  for (const auto cut : {row + 3, row + 20, kRaw.find("1,002.25") + 4, kRaw.find("\"50\"") + 2}) {
    try {
      read(kRaw.substr(0, cut));
      FAIL() << cut;
    } catch (const NcuError& error) {
      EXPECT_STREQ(error.what(), "it is cut off: its last row is not whole");
    }
  }
  EXPECT_EQ(read(kRaw.substr(0, kRaw.find("\"50\"") + 4)).kernels.size(), 1U);  // without the line's end alone
}

TEST(NcuOutput, DamagedTextsEndInASentence) {
  std::mt19937 random(7);
  const std::string text(kRaw);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text.substr(0, random() % (text.size() + 1));
    for (unsigned change = random() % 4; change > 0 && !damaged.empty(); --change) {
      damaged[random() % damaged.size()] = "\",\n\0(9=.x"[random() % 9];
    }
    try {
      const auto output = read(damaged, 1 + random() % 50);
      counters_of(output);
    } catch (const NcuError& error) {
      EXPECT_FALSE(std::string_view(error.what()).empty());
    }
  }
}

}  // namespace
}  // namespace roofprof::ncu
