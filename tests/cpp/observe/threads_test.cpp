// Sessions and threads: each sees its own, whatever the others do at the same time. Under the thread sanitizer these
// tests are what it looks at.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "observe/declared_work.h"
#include "observe/observed.h"
#include "observe/regions.h"

namespace roofprof::observe {
namespace {

using namespace testing;

constexpr int kThreads = 4;

void on_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (auto& thread : threads) thread.join();
}

std::int64_t calls_of(const Pass& pass, const std::string& name) {
  std::int64_t calls = 0;
  for (const auto& op : pass.ops) calls += op.op == name ? op.calls : 0;
  return calls;
}

TEST(Threads, EachWithASessionOfItsOwnCountsItsOwn) {
  constexpr int kPasses = 20;
  std::array<std::int64_t, kThreads> wrong{};
  std::barrier together(kThreads);
  on_threads(kThreads, [&](int thread) {
    auto session = std::make_shared<Session>();
    const auto weight = at::ones({thread + 2, 3}).set_requires_grad(true);
    const auto input = at::ones({5, 3});
    for (int pass = 0; pass < kPasses; ++pass) {
      together.arrive_and_wait();
      session->start(kOutside);
      session->frames.enter(kLayer, &weight);
      auto out = at::linear(input, weight);
      session->frames.leave(&weight);
      out.sum().backward();
      const auto seen = session->stop();
      const auto macs = 5 * 3 * (thread + 2);
      const auto* forward = find(seen, "aten::linear", kLayer);
      const auto* backward = find(seen, "aten::mm", kLayer, Phase::backward);
      const bool right = forward != nullptr && forward->calls == 1 && forward->work.macs == macs &&
                         backward != nullptr && backward->calls == 1 && backward->work.macs == macs;
      wrong[static_cast<std::size_t>(thread)] += right ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, (std::array<std::int64_t, kThreads>{}));
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

// Workers of the user's own that go on when the block ends: what they do then is nobody's. Their backward is of a graph
// that was made where nobody looked.
TEST(Threads, MayBeAtWorkWhenTheirSessionStopsAndStartsAgain) {
  constexpr int kRounds = 30;
  auto session = std::make_shared<Session>();
  std::atomic<bool> done{false};
  std::atomic<std::int64_t> entered{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < kThreads; ++i) {
    workers.emplace_back([&] {
      const auto tensor = at::ones({8}).set_requires_grad(true);
      while (!done) {
        const auto made_outside = at::sin(tensor);
        const bool inside = session->frames.enter(kLayer, &tensor);
        at::neg(tensor);
        made_outside.backward(at::ones({8}));
        if (inside) session->frames.leave(&tensor);
        entered += inside ? 1 : 0;
      }
    });
  }
  std::int64_t seen = 0;
  for (int round = 0; round < kRounds; ++round) {
    session->start(std::nullopt);
    const auto before = entered.load();
    while (entered - before < 10) std::this_thread::yield();
    const auto pass = session->stop();
    const auto calls = calls_of(pass, "aten::neg");
    EXPECT_GE(calls, 10 - kThreads);
    for (const auto& op : pass.ops) {
      if (op.op == "aten::neg") {
        EXPECT_EQ(op.work.flops(), 8 * op.calls);
      }
    }
    seen += calls;
  }
  done = true;
  for (auto& thread : workers) thread.join();
  // A call that a stop or a start fell into is counted in one of the passes, or in none.
  EXPECT_LE(seen, entered + kThreads * kRounds);
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

TEST(Threads, KeepNothingOfAPassThatEndedForTheNext) {
  auto session = std::make_shared<Session>();
  std::barrier turn(2);
  const auto take_turns = [&] { turn.arrive_and_wait(); };
  session->start(std::nullopt);
  std::thread worker([&] {
    const auto tensor = at::ones({8});
    session->frames.enter(kLayer, &tensor);
    take_turns();
    take_turns();  // another pass has begun
    at::neg(tensor);
    EXPECT_EQ(session->frames.leave(&tensor), std::nullopt);
    session->frames.enter(kLayer + 1, &tensor);
    at::exp(tensor);
    session->frames.leave(&tensor);
  });
  take_turns();
  session->stop();
  session->start(std::nullopt);
  take_turns();
  worker.join();
  const auto pass = session->stop();
  EXPECT_EQ(calls_of(pass, "aten::neg"), 0);
  EXPECT_EQ(calls_of(pass, "aten::exp"), 1);
  ASSERT_EQ(pass.clocks.size(), 1U);
  EXPECT_EQ(pass.clocks.front().owner.module, kLayer + 1);
}

TEST(Threads, RunTheBackwardOfAForwardElsewhere) {
  constexpr ModuleId kLayers = 3;
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  std::vector<at::Tensor> losses;
  for (int layer = 0; layer < kThreads; ++layer) {
    const auto weight = at::ones({layer + 1, 3}).set_requires_grad(true);
    session->frames.enter(kLayers + layer, &weight);
    losses.push_back(at::linear(at::ones({5, 3}), weight).sum());
    session->frames.leave(&weight);
  }
  on_threads(kThreads, [&](int layer) { losses[static_cast<std::size_t>(layer)].backward(); });
  const auto pass = session->stop();
  EXPECT_EQ(pass.unknown_backward_nodes, 0);
  for (int layer = 0; layer < kThreads; ++layer) {
    const auto* product = find(pass, "aten::mm", kLayers + layer, Phase::backward);
    ASSERT_NE(product, nullptr) << layer;
    EXPECT_EQ(product->work.macs, 5 * 3 * (layer + 1));
  }
}

TEST(Threads, OpenRegionsAndDeclareWorkAtTheSameTime) {
  constexpr int kCalls = 50;
  auto session = std::make_shared<Session>();
  session->start(std::nullopt);
  Work work;
  work.add_macs(7, DType::fp32);
  on_threads(kThreads, [&](int) {
    const int token = 0;
    session->frames.enter(kModel, &token);
    for (int i = 0; i < kCalls; ++i) {
      const int region = 0;
      open_region("part " + std::to_string(i % 5), &region);
      declare_work("kernel", work);
      close_region(&region);
    }
    session->frames.leave(&token);
  });
  const auto pass = session->stop();
  EXPECT_EQ(total_work(pass).macs, 7 * kThreads * kCalls);
  EXPECT_EQ(session->regions.all().size(), 5) << "the same region for all threads";
}

}  // namespace
}  // namespace roofprof::observe
