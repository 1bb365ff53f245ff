// Batch and instance normalisation, whose forward is compiled into the program.

#include <gtest/gtest.h>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;

using Ops = std::map<std::string, std::map<std::string, std::int64_t>>;

template <class Norm>
void check_norm(Norm norm, const at::Tensor& x, const char* op, std::int64_t counted_batches) {
  torch::nn::Sequential model(norm, ReLU(), norm);
  const Report report = profiled(model, x);
  auto ops = ops_by_module(report);
  // "2" is a second name of the first one under the same parent: one row.
  EXPECT_EQ(ops.size(), 2U) << op;
  EXPECT_EQ(report.row("0").calls, 2) << op;
  EXPECT_EQ(ops["0"][op], 2);
  EXPECT_EQ(ops["0"]["aten::add_"], counted_batches);
  EXPECT_EQ(ops["1"], (std::map<std::string, std::int64_t>{{"aten::relu", 1}})) << op;
}

TEST(Norms, HaveTheirOpsInTraining) {
  check_norm(BatchNorm1d(4), torch::rand({3, 4}), "aten::batch_norm", 2);
  check_norm(BatchNorm2d(4), torch::rand({3, 4, 2, 2}), "aten::batch_norm", 2);
  check_norm(BatchNorm3d(4), torch::rand({3, 4, 2, 2, 2}), "aten::batch_norm", 2);
  check_norm(InstanceNorm1d(4), torch::rand({3, 4, 5}), "aten::instance_norm", 0);
  check_norm(InstanceNorm2d(4), torch::rand({3, 4, 2, 2}), "aten::instance_norm", 0);
  check_norm(InstanceNorm3d(4), torch::rand({3, 4, 2, 2, 2}), "aten::instance_norm", 0);
}

TEST(Norms, EndWhereTheirOperatorRaises) {
  torch::nn::Sequential model(BatchNorm1d(4), ReLU());
  const auto one_value_each = torch::rand({1, 4});
  const auto x = torch::rand({3, 4});
  const Report report = profiled(model, [&] {
    EXPECT_ANY_THROW(model->forward(one_value_each));    // after the check, before the operator
    EXPECT_ANY_THROW(model->forward(torch::rand({2})));  // in the check
    model->forward(x);
  });
  EXPECT_EQ(report.row("0").calls, 2);  // the one that its check refused did not begin
  auto ops = ops_by_module(report);
  EXPECT_EQ(ops["0"]["aten::batch_norm"], 1);
  EXPECT_EQ(ops["1"], (std::map<std::string, std::int64_t>{{"aten::relu", 1}}));
}

TEST(Norms, TheirBackwardIsTheirs) {
  torch::nn::Sequential model(Linear(4, 4), BatchNorm1d(4), Linear(4, 4));
  const auto x = torch::rand({3, 4});
  const Report report = profiled(model, [&] { model->forward(x).sum().backward(); });
  std::map<std::string, std::int64_t> backward;
  for (const auto& row : report.group(std::vector<std::string>{"module", "op", "phase"})) {
    if (row.keys[1] == "aten::native_batch_norm_backward") backward[row.keys[0]] += row.calls;
  }
  EXPECT_EQ(backward, (std::map<std::string, std::int64_t>{{"1", 1}}));
}

}  // namespace
}  // namespace roofprof::testing
