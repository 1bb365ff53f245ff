// Reports of a device. The device is a simulated one: its figures are made up by hand, and the report says so.

#include <gtest/gtest.h>

#include "core/fields.h"
#include "report/golden.h"
#include "report/sample_device.h"

namespace roofprof {
namespace {

using testing::contains;
using testing::lines_of;
using testing::row_lines;

TableOptions by(const std::string& what) { return {.by = what}; }

TEST(SimulatedDevice, ShowsTheDevicesColumnsAt120) {
  const std::string table = testing::simulated_convnet().table();
  EXPECT_TRUE(contains(table, "cuda:0 (simulated GPU"));
  for (const char* column : {"time", "util", "DRAM ", "ratio", "DRAM AI", "DRAM B/s", "bound", "%roof", "wasted"}) {
    EXPECT_TRUE(contains(lines_of(table)[3], column)) << column;
  }
  const std::string without = testing::simulated_convnet(false).table();
  EXPECT_FALSE(contains(without, "DRAM AI"));
  EXPECT_TRUE(contains(lines_of(without)[3], " util "));
  EXPECT_TRUE(contains(testing::sample_toy().table(by("kernel")), "no kernels: nothing was traced on a device"));
}

TEST(KernelTable, LongestFirstWhateverElseIsRequested) {
  const Report report = testing::simulated_convnet();
  const auto rows = row_lines(report.table(by("kernel")));
  ASSERT_EQ(rows.size(), report.kernels().size());
  EXPECT_TRUE(contains(rows.front(), "maxwell_sgemm_128x64_nn"));
  EXPECT_TRUE(contains(rows.back(), "[memset]"));
  TableOptions options = by("kernel");
  options.limit = 2;
  EXPECT_EQ(row_lines(report.table(options)).size(), 2);
  EXPECT_TRUE(contains(report.table(options), "3 more rows after these"));
  options.limit = 1;
  options.width = 200;
  options.sort = "instances";
  EXPECT_TRUE(contains(row_lines(report.table(options))[0], "at::native::ReLU")) << report.table(options);
  options.sort = "name";
  EXPECT_TRUE(contains(row_lines(report.table(options))[0], "[memcpy pageable to device]"));
}

TEST(KernelTable, ShowsTheColumnsRequested) {
  TableOptions options = by("kernel");
  options.width = 200;
  options.columns = {"module", "op", "grid", "block", "arch", "dram", "copied", "name"};
  const auto lines = lines_of(testing::simulated_convnet().table(options));
  std::size_t last = 0;
  for (const char* column : {"module", "op", "grid", "block", "built for", "DRAM", "copied", "name"}) {
    const std::size_t at = lines[3].find(column, last);
    ASSERT_NE(at, std::string::npos) << column;
    last = at;
  }
  for (const char* cell : {"head ", "aten::linear", "8x1x1  256x1x1  sm_50", "8.83MB", "maxwell_sgemm_128x64_nn"}) {
    EXPECT_TRUE(contains(lines[5], cell)) << lines[5];
  }
}

TEST(SimulatedDevice, AnUncostedOpMakesTheRatioAnUpperLimit) {
  testing::DeviceProfileBuilder builder;
  builder.data.run.environment = {{"device", "simulated GPU"}};
  const auto layer = builder.module("layer", "Layer");
  const auto op = builder.op_index("aten::mm", layer, testing::work_of(1'000, 500));
  builder.op("my::op", layer, {}).costed = false;
  testing::RunBuilder run;
  run.kernel("gemm", run.owner(layer, "aten::mm", op), 0, 100);
  const std::string table = builder.report_of({run.run}, testing::dram_counters({250})).table();
  EXPECT_TRUE(contains(table, "<=0.500"));
  EXPECT_TRUE(contains(table, ">=4.00"));   // FLOPs per byte of DRAM
  EXPECT_FALSE(contains(table, ">=250B"));  // counters miss nothing
  EXPECT_TRUE(contains(table, "<=: an upper one"));
}

TEST(DeviceJson, HoldsEveryFieldOfKernels) {
  const Report report = testing::simulated_convnet();
  const std::string json = report.to_json();
  for_each_kernel_field([&](std::string_view name, Unit unit, auto) {
    EXPECT_TRUE(contains(json, "\"" + key_of(name, unit) + "\":")) << name;
  });
  for (const char* key : {"device_timed", "busy_ns", "compute_capability", "counter_ranges", "counter_passes",
                          "kernels", "kernel_buckets", "device_times", "module_counters", "counters"}) {
    EXPECT_TRUE(contains(json, "\n\"" + std::string(key) + "\": ")) << key;
  }
  EXPECT_TRUE(contains(json, R"("counter": "dram_bytes", "metrics": ["metric"], "formula": "metric"})"));
  EXPECT_TRUE(contains(json, R"("grid": [8, 1, 1])"));
}

TEST(DeviceCsv, HasALineForEachKernel) {
  const Report report = testing::simulated_convnet();
  const std::string csv = report.to_csv("kernel");
  EXPECT_TRUE(
      csv.starts_with("name,kind,copied,module,phase,scope,op,grid,block,device,in_graph,built_for,percent_of_time,"
                      "total_ns,instances,average_ns,median_ns,min_ns,max_ns,stddev_ns,bytes,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), static_cast<std::ptrdiff_t>(report.kernels().size() + 1));
  EXPECT_TRUE(
      contains(csv, "\r\nmaxwell_sgemm_128x64_nn,kernel,,head,forward,,aten::linear,8x1x1,256x1x1,0,false,sm_50,"));
}

}  // namespace
}  // namespace roofprof
