// Sessions on real ops: what is counted, where it is put, what is left behind.

#include "observe/session.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "observe/observed.h"

namespace roofprof::observe {
namespace {

using namespace testing;

TEST(Session, CountsTheOutermostOpWithACostOnly) {
  const auto input = at::rand({4, 16});
  const auto weight = at::rand({8, 16});
  const auto bias = at::rand({8});
  const auto pass = observe_in_model([&] { at::linear(input, weight, bias); });
  const auto* linear = find(pass, "aten::linear");
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->calls, 1);
  EXPECT_EQ(linear->work.macs, 4 * 16 * 8);
  EXPECT_EQ(linear->work.flops(), 2 * 4 * 16 * 8 + 4 * 8);
  EXPECT_EQ(linear->work.bytes(), 4 * (4 * 16 + 8 * 16 + 8 + 4 * 8));
  EXPECT_EQ(find(pass, "aten::addmm"), nullptr);
  EXPECT_EQ(find(pass, "aten::t"), nullptr);
}

TEST(Session, LooksThroughWhatHasNoCost) {
  const auto input = at::rand({3, 4, 5});
  const auto pass = observe_in_model([&] { at::einsum("bij,bkj->bik", {input, input}); });
  EXPECT_EQ(find(pass, "aten::einsum"), nullptr);
  EXPECT_EQ(total_work(pass).macs, 3 * 4 * 4 * 5);
}

TEST(Session, KeepsShapesApartAndSumsCalls) {
  const auto small = at::rand({10});
  const auto large = at::rand({20});
  const auto pass = observe_in_model([&] {
    for (int i = 0; i < 3; ++i) at::add(small, small);
    at::add(large, large);
  });
  std::map<std::string, std::int64_t> calls;
  for (const auto& op : pass.ops) calls[shapes_text(op.shapes)] += op.calls;
  EXPECT_EQ(calls, (std::map<std::string, std::int64_t>{{"10, 10", 3}, {"20, 20", 1}}));
  EXPECT_EQ(total_work(pass).flops(), 3 * 10 + 20);
}

TEST(Session, KeepsTheSizesOfEveryTensor) {
  const auto x = at::rand({8, 4});
  const std::vector<at::Tensor> list(40, at::rand({2, 3}));
  const auto nested = at::_nested_tensor_from_tensor_list({at::rand({2, 3}), at::rand({4, 3})});
  const auto sparse = at::ones({3, 5}).to_sparse();
  const auto pass = observe_in_model([&] {
    at::where(x > 0, x, at::zeros({}));
    at::cat(list);
    at::relu(nested);
    at::neg(sparse);
    at::rand({7});
  });
  const auto taken_by = [&](const std::string& op) { return find(pass, op)->shapes; };
  EXPECT_EQ(taken_by("aten::where"), (OpShapes{{{8, 4}, {8, 4}, {}}}));
  EXPECT_EQ(taken_by("aten::cat"), (OpShapes{std::vector<Shape>(40, {2, 3})}));
  EXPECT_EQ(taken_by("aten::relu"), (OpShapes{{{2, kUnknownSize, 3}}}));
  EXPECT_EQ(taken_by("aten::neg"), (OpShapes{{{3, 5}}}));
  EXPECT_EQ(taken_by("aten::rand"), OpShapes());
}

TEST(Session, ReadsARepeatedInputOnce) {
  const auto a = at::rand({100});
  const auto b = at::rand({100});
  const auto pass = observe_in_model([&] {
    at::add(a, a);
    at::add(a, b);
  });
  EXPECT_EQ(total_work(pass).read_bytes, 4 * (100 + 200));
}

TEST(Session, SharesABucketWhenShapesAreMany) {
  std::int64_t elements = 0;
  const auto pass = observe_in_model([&] {
    for (int n = 1; n <= 500; ++n) {
      at::neg(at::empty({n}));
      elements += n;
    }
  });
  std::size_t buckets = 0;
  std::int64_t calls = 0;
  std::int64_t flops = 0;
  for (const auto& op : pass.ops) {
    if (op.op != "aten::neg") continue;
    ++buckets;
    calls += op.calls;
    flops += op.work.flops();
  }
  EXPECT_EQ(buckets, BucketTable::kMaxShapes + 1);
  EXPECT_EQ(calls, 500);
  EXPECT_EQ(flops, elements);
}

TEST(Session, TellsCallsWithTheSameInputsApartByTheirResults) {
  const auto image = at::rand({1, 2, 8, 8});
  const auto weight = at::rand({3, 2, 3, 3});
  const auto pass = observe_in_model([&] {
    at::conv2d(image, weight, {}, 1);
    at::conv2d(image, weight, {}, 2);
    at::conv2d(image, weight, {}, 1, 1);
  });
  EXPECT_EQ(total_work(pass).macs, 2 * 3 * 9 * (6 * 6 + 3 * 3 + 8 * 8));
}

TEST(Session, CostsEachCallWhereResultsDependOnValues) {
  const auto mostly_zero = at::zeros({100}).index_put_({at::arange(0, 7)}, at::ones({7}));
  const auto pass = observe_in_model([&] {
    at::nonzero(mostly_zero);
    at::nonzero(at::ones({100}));
  });
  std::int64_t written = 0;
  for (const auto& op : pass.ops) {
    if (op.op == "aten::nonzero") written += op.work.write_bytes;
  }
  EXPECT_EQ(written, 8 * (7 + 100));
}

TEST(Session, AClosureStandsOutsideOfTheStepThatRunsIt) {
  const auto tensor = at::rand({10});
  auto session = std::make_shared<Session>();
  int optimizer = 0;
  int closure = 0;
  session->start(kOutside);
  session->frames.enter_optimizer(&optimizer);
  at::neg(tensor);
  session->frames.enter_closure(&closure);
  at::exp(tensor);
  session->frames.leave(&closure);
  at::neg(tensor);
  session->frames.leave(&optimizer);
  const auto pass = session->stop();
  EXPECT_EQ(find(pass, "aten::neg", kOptimizer, Phase::optimizer)->calls, 2);
  EXPECT_EQ(find(pass, "aten::exp", kOutside, Phase::forward)->calls, 1);
}

TEST(Session, PutsBackwardWhereItsForwardRan) {
  const auto weight = at::rand({8, 16}).set_requires_grad(true);
  const auto input = at::rand({4, 16});
  constexpr ModuleId kFirst = 3;
  constexpr ModuleId kSecond = 4;
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  session->frames.enter(kFirst, &weight);
  auto hidden = at::linear(input, weight);
  session->frames.leave(&weight);
  session->frames.enter(kSecond, &weight);
  auto output = at::sigmoid(hidden);
  session->frames.leave(&weight);
  output.sum().backward();
  const auto pass = session->stop();

  const auto* grad_weight = find(pass, "aten::mm", kFirst, Phase::backward);
  ASSERT_NE(grad_weight, nullptr);
  EXPECT_EQ(grad_weight->work.macs, 4 * 16 * 8);
  EXPECT_NE(find(pass, "aten::sigmoid_backward", kSecond, Phase::backward), nullptr);
  EXPECT_NE(find(pass, "aten::sum", kOutside, Phase::forward), nullptr);
}

TEST(Session, FollowsThreadsWithAnOpenScopeOnly) {
  const auto tensor = at::rand({50});
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  std::thread stranger([&] { at::add(tensor, tensor); });
  std::thread replica([&] {
    session->frames.enter(kModel, &tensor);
    at::mul(tensor, tensor);
    session->frames.leave(&tensor);
  });
  stranger.join();
  replica.join();
  const auto pass = session->stop();
  EXPECT_EQ(find(pass, "aten::add", kOutside), nullptr);
  EXPECT_NE(find(pass, "aten::mul"), nullptr);
  EXPECT_EQ(total_work(pass).flops(), 50);
}

TEST(Session, ManyShortThreadsAddUp) {
  const auto tensor = at::rand({10});
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  for (int i = 0; i < 300; ++i) {
    std::thread([&] {
      session->frames.enter(kModel, &tensor);
      at::add(tensor, tensor);
      session->frames.leave(&tensor);
    }).join();
  }
  EXPECT_EQ(total_work(session->stop()).flops(), 300 * 10);
}

TEST(Session, ClosesWhatAnExceptionLeftOpen) {
  auto session = std::make_shared<Session>();
  int outer = 0;
  int inner = 0;
  session->start(kOutside);
  session->frames.enter(3, &outer);
  session->frames.enter(4, &inner);
  EXPECT_THROW(at::add(at::rand({2}), at::rand({3})), c10::Error);
  EXPECT_EQ(session->frames.leave(&outer), 3);
  at::neg(at::rand({5}));
  const auto pass = session->stop();
  EXPECT_NE(find(pass, "aten::neg", kOutside), nullptr);
  EXPECT_EQ(find(pass, "aten::add", 4), nullptr) << "an op that raised did no work";
}

TEST(Session, LeavesNoCallbackBehind) {
  ASSERT_FALSE(at::hasGlobalCallbacks());
  auto first = std::make_shared<Session>();
  first->start(kOutside);
  EXPECT_TRUE(at::hasGlobalCallbacks());
  first->stop();
  EXPECT_FALSE(at::hasGlobalCallbacks());
  EXPECT_TRUE(at::isRecordFunctionEnabled());
}

TEST(Session, RefusesToNest) {
  const auto tensor = at::rand({5});
  auto outer = std::make_shared<Session>();
  auto inner = std::make_shared<Session>();
  outer->start(kOutside);
  EXPECT_THROW(inner->start(kOutside), std::logic_error);
  EXPECT_THROW(outer->start(kOutside), std::logic_error);
  at::neg(tensor);
  EXPECT_EQ(total_work(outer->stop()).flops(), 5);
}

TEST(Session, TwoSessionsOnTwoThreadsDoNotMix) {
  const auto work = [](std::int64_t elements, std::int64_t calls) {
    auto session = std::make_shared<Session>();
    session->start(kOutside);
    const auto tensor = at::zeros({elements});
    for (int i = 0; i < calls; ++i) at::neg(tensor);
    const auto pass = session->stop();
    return find(pass, "aten::neg", kOutside)->work.flops();
  };
  std::int64_t other = 0;
  std::thread thread([&] { other = work(7, 500); });
  EXPECT_EQ(work(11, 400), 11 * 400);
  thread.join();
  EXPECT_EQ(other, 7 * 500);
}

TEST(Session, PassesOfTheSameWorkAreEqual) {
  const auto tensor = at::rand({10});
  auto session = std::make_shared<Session>();
  const auto run = [&](int calls) {
    session->start(kOutside);
    for (int i = 0; i < calls; ++i) at::neg(tensor);
    return session->stop();
  };
  const auto first = run(3);
  const auto second = run(3);
  const auto third = run(4);
  EXPECT_TRUE(same_work(first, second));
  EXPECT_FALSE(same_work(first, third));
}

TEST(Session, TimesScopesAndOpsConsistently) {
  auto session = std::make_shared<Session>();
  int token = 0;
  session->start(kOutside);
  session->frames.enter(kModel, &token);
  const auto tensor = at::rand({1 << 16});
  for (int i = 0; i < 20; ++i) at::exp(tensor);
  session->frames.leave(&token);
  const auto pass = session->stop();
  std::int64_t scopes = 0;
  std::int64_t in_model = 0;
  for (const auto& clock : pass.clocks) {
    scopes += clock.self_ns;
    if (clock.owner.module == kModel) in_model = clock.self_ns;
  }
  std::int64_t ops = 0;
  for (const auto& op : pass.ops) ops += *op.time_ns;
  EXPECT_GT(ops, 0);
  EXPECT_LE(ops, in_model);
  EXPECT_LE(scopes, pass.wall_ns + 1000);
}

}  // namespace
}  // namespace roofprof::observe
