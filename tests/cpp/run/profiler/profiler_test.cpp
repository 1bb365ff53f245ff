// The C++ API on real torch::nn models.

#include "roofprof/profiler.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <sstream>

#include "quick.h"

namespace roofprof {
namespace {

// Roofs by hand: nothing is measured in these tests.
using testing::kLinearMacs;
using testing::quick;

TEST(RooflineProfiler, TakesAHolder) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(torch::rand({4, 16}));
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_EQ(report.total().params, 16 * 8 + 8);
  EXPECT_EQ(report.run_times_ns().size(), 3U);
  EXPECT_EQ(report.bare_times_ns().size(), 3U);
  ASSERT_TRUE(report.total().lower_bound_time_ns.has_value());
}

TEST(RooflineProfiler, TakesAModuleAndASharedPointer) {
  const auto pointer = std::make_shared<torch::nn::LinearImpl>(16, 8);
  RooflineProfiler by_pointer(pointer, quick());
  EXPECT_EQ(by_pointer.run(torch::rand({4, 16})).total().macs, kLinearMacs);
  RooflineProfiler by_reference(*pointer, quick());
  EXPECT_EQ(by_reference.run(torch::rand({4, 16})).total().macs, kLinearMacs);
}

TEST(RooflineProfiler, RunsAClosureOnce) {
  torch::nn::Linear model(16, 8);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  RooflineProfiler prof(model, quick());
  int runs = 0;
  const Report report = prof.run([&] {
    ++runs;
    model->forward(torch::rand({4, 16})).sum().backward();
    optimizer.step();
  });
  EXPECT_EQ(runs, 1);
  // The input needs no gradient, so the backward is one product.
  EXPECT_EQ(report.total().macs, 2 * kLinearMacs);
}

TEST(RooflineProfiler, LeavesTheModelAsOneCallDoes) {
  torch::manual_seed(7);
  torch::nn::Sequential model(torch::nn::BatchNorm1d(16), torch::nn::Dropout());
  const auto input = torch::rand({4, 16});
  const auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(model->clone());
  torch::manual_seed(11);
  twin->forward(input);
  const auto expected = torch::rand({3});

  torch::manual_seed(11);
  RooflineProfiler prof(model, quick());
  prof.run(input);
  EXPECT_TRUE(torch::equal(torch::rand({3}), expected));
  const auto buffers = model->buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) EXPECT_TRUE(torch::equal(buffers[i], twin->buffers()[i]));
}

TEST(RooflineProfiler, HandsOnExceptionsAndKeepsWhatRan) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::Linear(99, 1));
  RooflineProfiler prof(model, quick());
  EXPECT_THROW(prof.report(), std::logic_error);
  EXPECT_THROW(prof.run(torch::rand({4, 16})), c10::Error);
  EXPECT_FALSE(at::hasGlobalCallbacks());
  const Report report = prof.report();
  EXPECT_TRUE(report.partial());
  EXPECT_EQ(report.total().macs, kLinearMacs);
}

TEST(RooflineProfiler, PrintsAndWrites) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(torch::rand({4, 16}));
  std::ostringstream out;
  out << report;
  EXPECT_NE(out.str().find("MACs"), std::string::npos);
  EXPECT_NE(report.to_json().find("\"schema_version\""), std::string::npos);
}

// tests/python/report/test_cpp_report.py runs this and compares the file with Python's report of the same model.
TEST(RooflineProfiler, WritesTheReportThatPythonComparesWithItsOwn) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(torch::rand({4, 16}));
  EXPECT_EQ(report.total().macs, 4 * 16 * 8 + 4 * 8 * 2);
  if (const char* path = std::getenv("ROOFPROF_WRITE_REPORT")) report.write_json(path);
}

}  // namespace
}  // namespace roofprof
