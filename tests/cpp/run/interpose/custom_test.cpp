// Modules of the user's own: exact with ROOFPROF_SCOPE(*this), inferred without.

#include <gtest/gtest.h>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;

// Multiplies by a weight of its own and through a Linear, and adds both.
struct SilentImpl : Module {
  SilentImpl() {
    weight = register_parameter("weight", torch::rand({4, 4}));
    linear = register_module("linear", Linear(4, 4));
  }
  torch::Tensor forward(const torch::Tensor& x) { return x.matmul(weight) + linear(x).relu(); }
  torch::Tensor weight;
  Linear linear = nullptr;
};
TORCH_MODULE(Silent);

struct TellingImpl : SilentImpl {
  torch::Tensor forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(*this);
    return SilentImpl::forward(x);
  }
};
TORCH_MODULE(Telling);

template <class Inner>
struct Net : Module {
  Net() {
    inner = this->register_module("inner", Inner());
    head = this->register_module("head", Linear(4, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(inner->forward(x)); }
  Inner inner = nullptr;
  Linear head = nullptr;
};

const Macs kMacs = {{"inner", 3 * 4 * 4}, {"inner.linear", 3 * 4 * 4}, {"head", 3 * 4 * 2}};

TEST(Custom, AModuleThatTellsIsExact) {
  const auto model = std::make_shared<Net<Telling>>();
  const Report report = profiled(model, torch::rand({3, 4}));
  EXPECT_EQ(macs_by_module(report), kMacs);
  EXPECT_EQ(report.row("inner").calls, 1);
  const auto ops = ops_by_module(report);
  EXPECT_FALSE(ops.contains(""));
  EXPECT_TRUE(ops.at("inner").contains("aten::relu"));
  for (const auto& row : report.rows()) EXPECT_FALSE(row.inferred) << row.path;
  EXPECT_EQ(report.table().find("~"), std::string::npos);
}

TEST(Custom, OneThatDoesNotIsInferred) {
  const auto model = std::make_shared<Net<Silent>>();
  const Report report = profiled(model, torch::rand({3, 4}));
  EXPECT_EQ(macs_by_module(report), kMacs);  // the product takes a parameter of its own
  const auto ops = ops_by_module(report);
  // What takes none stands in the innermost scope, the model's.
  EXPECT_EQ(ops.at(""), (std::map<std::string, std::int64_t>{{"aten::add", 1}, {"aten::relu", 1}}));
  EXPECT_EQ(report.row("inner").calls, std::nullopt);
  EXPECT_EQ(report.row("inner.linear").calls, 1);
  EXPECT_TRUE(report.row("").inferred);
  EXPECT_TRUE(report.row("inner").inferred);
  EXPECT_FALSE(report.row("inner.linear").inferred);
  EXPECT_FALSE(report.row("head").inferred);
  EXPECT_NE(report.table().find("~inner"), std::string::npos);
  EXPECT_EQ(report.table().find("ATTENTION"), std::string::npos);
}

TEST(Custom, ViewsOfParametersCountAsThemAndTiedOnesAsNobodys) {
  struct Tied : Module {
    Tied() {
      embedding = register_module("embedding", Embedding(5, 4));
      scale = register_parameter("scale", torch::rand({4, 4}));
    }
    torch::Tensor forward(const torch::Tensor& x) {
      return embedding(x).matmul(scale.t()).matmul(embedding->weight.t());
    }
    Embedding embedding = nullptr;
    torch::Tensor scale;
  };
  Sequential model{std::make_shared<Tied>()};
  const Report report = profiled(model, torch::tensor({1, 2, 3}));
  // Embedding's calls are seen: what takes its weight outside of them is no call of it.
  EXPECT_EQ(macs_by_module(report), (Macs{{"0", 3 * 4 * 4}, {"", 3 * 4 * 5}}));
}

TEST(Custom, BackwardFollowsTheOwnerOfTheForward) {
  const auto model = std::make_shared<Net<Silent>>();
  const auto x = torch::rand({3, 4}, torch::requires_grad());
  const Report report = profiled(model, [&] { model->forward(x).sum().backward(); });
  Macs twice = kMacs;
  for (auto& [path, macs] : twice) macs *= 2;
  EXPECT_EQ(macs_by_module(report, "backward"), twice);
}

}  // namespace
}  // namespace roofprof::testing
