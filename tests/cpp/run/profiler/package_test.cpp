// The C++ API on AOTInductor packages, which Python makes.

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdlib>
#include <string>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using testing::quick;
using torch::inductor::AOTIModelPackageLoader;

class PackageProfiler : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::string(ROOFPROF_TEST_PYTHON).empty()) return;
    const std::string write = std::string(ROOFPROF_TEST_PYTHON) + " " + ROOFPROF_TEST_DATA +
                              "/cpp/support/packages.py " + ::testing::TempDir() + " > /dev/null 2> " +
                              ::testing::TempDir() + "packages.log";
    status = std::system(write.c_str());  // NOLINT(concurrency-mt-unsafe)
  }
  void SetUp() override {
    if (status == kNoPython) GTEST_SKIP() << "there is no Python with roofprof, which makes the packages";
    ASSERT_EQ(status, 0) << "see packages.log in " << ::testing::TempDir();
  }
  static std::string file(const std::string& name) { return ::testing::TempDir() + name; }

  static constexpr int kNoPython = 77 << 8;
  static inline int status = kNoPython;
  const at::NoGradGuard no_grad;
};

TEST_F(PackageProfiler, HasTheProgramsRowsAndThePackagesTime) {
  AOTIModelPackageLoader package(file("counted.pt2"));
  RooflineProfiler prof(package, quick());
  const std::vector<at::Tensor> inputs{testing::input()};
  for (const Report& report : {prof.run(inputs), prof.run({testing::input()})}) {
    EXPECT_EQ(report.row("0").macs, testing::kLinearMacs);
    EXPECT_EQ(report.row("2").macs, 4 * 8 * 8);
    EXPECT_EQ(report.total().macs, testing::kLinearMacs + 4 * 8 * 8);
    EXPECT_EQ(report.row("").type, "Sequential");
    EXPECT_EQ(report.row("").params, 16 * 8 + 8 + 8 * 8 + 8);
    EXPECT_FALSE(report.row("0").time_ns);
    EXPECT_GT(report.row("").time_ns, 0);
    EXPECT_EQ(report.row("").self.time_ns, report.total().time_ns);
    EXPECT_EQ(report.row("").input_shapes, (std::vector<std::vector<std::int64_t>>{{4, 16}}));
    EXPECT_FALSE(report.total().incomplete);
    EXPECT_TRUE(testing::says(report, "counts from the program that it was exported from"));
  }
  EXPECT_EQ(roofprof::count(package, inputs).total().macs, testing::kLinearMacs + 4 * 8 * 8);
}

TEST_F(PackageProfiler, WithoutCountsItHasItsTimeAndConstants) {
  AOTIModelPackageLoader package(file("plain.pt2"));
  RooflineProfiler prof(package, quick());
  const Report report = prof.run({testing::input()});
  EXPECT_TRUE(report.total().incomplete);
  EXPECT_GT(report.total().time_ns, 0);
  EXPECT_GE(report.row("").params, 16 * 8);
  EXPECT_TRUE(testing::says(report, "export it with roofprof.package_metadata"));
}

TEST_F(PackageProfiler, ThrowsWhatThePackageThrows) {
  AOTIModelPackageLoader package(file("counted.pt2"));
  RooflineProfiler prof(package, quick());
  EXPECT_THROW(prof.run({testing::input(), testing::input()}), c10::Error);
  EXPECT_TRUE(prof.report().partial());
}

}  // namespace
}  // namespace roofprof
