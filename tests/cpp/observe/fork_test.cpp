// Children of fork(), which are forked wherever a profile is: plain torch runs in them, and profiles of their own do.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "observe/observed.h"
#include "observe/own_calls.h"
#include "observe/regions.h"
#include "support/forked.h"
#include "support/one_thread.h"

namespace roofprof::observe {
namespace {

using namespace testing;
using roofprof::testing::in_child;

bool plain_torch_runs() {
  auto weight = at::ones({4, 3}).set_requires_grad(true);
  const auto out = at::linear(at::ones({2, 3}), weight);
  return out.sum().item<float>() == 2 * 4 * 3;
}

bool own_pass_counts() {
  const auto input = at::ones({2, 3});
  const auto weight = at::ones({4, 3});
  const auto pass = observe_in_model([&] {
    open_region("part", &input);
    at::linear(input, weight);
    close_region(&input);
  });
  return total_work(pass).macs == 2 * 4 * 3;
}

bool all_is_well() { return plain_torch_runs() && own_pass_counts(); }

class Forks : public ::testing::Test {
 protected:
#ifdef __SANITIZE_THREAD__
  void SetUp() override { GTEST_SKIP() << "the thread sanitizer ends children of programs with several threads"; }
#endif
  const OneThread one_thread_;  // others would be missing in the child
};

TEST_F(Forks, InABlockObserveNothingAndMayProfile) {
  auto session = std::make_shared<Session>();
  session->setup.measures_memory = true;
  session->start(kOutside);
  const auto tensor = at::ones({8});
  session->frames.enter(kLayer, &tensor);
  open_region("region", &tensor);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_child([&] {
                const bool left = session->is_of_parent() && !session->active() && all_is_well();
                close_region(&tensor);
                session->frames.leave(&tensor);
                return left && all_is_well();
              }),
              "");
  }
  at::neg(tensor);
  close_region(&tensor);
  session->frames.leave(&tensor);
  const auto pass = session->stop();
  EXPECT_EQ(total_work(pass).flops(), 8) << "the parent's goes on, and has nothing of its children's";
  EXPECT_FALSE(session->is_of_parent());
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

// Sessions start, stop, lend tables, find operators and hear of allocations while this thread forks.
TEST_F(Forks, WhileOtherThreadsProfileFindNoLockHeld) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a lock of the address sanitizer's allocator may be held at a fork (gcc 12, any program)";
#endif
  constexpr int kForks = 300;
  constexpr int kThreads = 4;
  std::atomic<bool> done{false};
  std::atomic<int> passes{0};
  std::vector<std::thread> profiling;
  for (int i = 0; i < kThreads; ++i) {
    profiling.emplace_back([&] {
      while (!done) {
        auto session = std::make_shared<Session>();
        session->setup.measures_memory = true;
        const OwnThread thread(*session);
        const OwnCall call(*session, /*of_model=*/true);
        session->start(kOutside);
        const int token = 0;
        session->frames.enter(kLayer, &token);
        open_region("part", &session);
        plain_torch_runs();
        close_region(&session);
        session->frames.leave(&token);
        session->stop();
        ++passes;
      }
    });
  }
  while (passes < kThreads) std::this_thread::yield();
  int wrong = 0;
  for (int i = 0; i < kForks && wrong == 0; ++i) {
    const auto found = in_child([] { return plain_torch_runs() && own_pass_counts(); });
    EXPECT_EQ(found, "") << "the child of fork " << i;
    wrong += found.empty() ? 0 : 1;
  }
  done = true;
  for (auto& thread : profiling) thread.join();
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

// Each backward() of a thread locks torch's list of callbacks for a moment, as asking for them does.
TEST_F(Forks, WhileAnotherThreadLocksTorchsCallbacksRunTorchAndRefuseAProfileAtMost) {
  constexpr int kForks = 200;
  std::atomic<bool> done{false};
  std::thread locking([&] {
    while (!done) at::hasGlobalCallbacks();
  });
  EXPECT_TRUE(plain_torch_runs());
  for (int i = 0; i < kForks; ++i) EXPECT_EQ(in_child(plain_torch_runs), "") << "the child of fork " << i;
  EXPECT_EQ(in_child([] {
              try {
                return own_pass_counts();
              } catch (const std::runtime_error& error) {
                const std::string text = error.what();
                return text.find("when it was forked, another thread") != std::string::npos;
              }
            }),
            "");
  done = true;
  locking.join();
}

}  // namespace
}  // namespace roofprof::observe
