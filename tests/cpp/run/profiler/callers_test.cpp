// A model that others call while it is profiled: a run has its own calls alone, with all that they do on other threads.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

#include "quick.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using at::Tensor;
using testing::quick;
using testing::says;
using torch::nn::Linear;

// Two layers of 1,280 MACs each for ten rows.
constexpr std::int64_t kRows = 10;
constexpr std::int64_t kLayer = kRows * 16 * 8;
constexpr std::int64_t kMacs = 2 * kLayer;
Tensor rows() { return at::rand({kRows, 16}); }

const Note* note_of(const Report& report, const std::string& code) {
  for (const auto& note : report.coverage().notes) {
    if (note.code == code) return &note;
  }
  return nullptr;
}

// One call, whose figures are exact, and nothing is said of it but that others call the model as well.
void expect_one_call(const Report& report, std::int64_t macs = kMacs) {
  EXPECT_EQ(report.total().macs, macs);
  EXPECT_EQ(note_of(report, "first-call"), nullptr);
  EXPECT_EQ(note_of(report, "timing-stopped"), nullptr);
  EXPECT_EQ(note_of(report, "forward-not-known"), nullptr);
}

// A thread that calls again and again, from before a run to its end.
class Caller {
 public:
  explicit Caller(const std::function<void()>& call)
      : thread_([this, call] {
          while (!done_) {
            call();
            ++calls_;
          }
        }) {
    while (calls_ == 0) std::this_thread::yield();
  }
  ~Caller() {
    done_ = true;
    thread_.join();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::atomic<int> calls_{0};
  std::thread thread_;
};

struct UnmarkedImpl : torch::nn::Module {
  Tensor forward(const Tensor& x) { return second(first(x).relu()) + 1; }
  Linear first = register_module("first", Linear(16, 8));
  Linear second = register_module("second", Linear(8, 16));
};
TORCH_MODULE(Unmarked);

struct MarkedImpl : UnmarkedImpl {
  Tensor forward(const Tensor& x) {
    ROOFPROF_SCOPE(*this);
    return UnmarkedImpl::forward(x);
  }
};
TORCH_MODULE(Marked);

torch::nn::Sequential sequential() { return torch::nn::Sequential(Linear(16, 8), torch::nn::ReLU(), Linear(8, 16)); }

template <class Model>
void others_are_left_out(Model model, const std::function<void(const Tensor&)>& call) {
  const auto x = rows();
  const Caller one([&] { call(x); });
  const Caller other([&] { call(rows()); });
  for (int run = 0; run < 50; ++run) {
    RooflineProfiler prof(model, quick());
    expect_one_call(prof.run(x));
  }
}

TEST(CallsOfOthers, OfASequentialAreLeftOut) {
  auto model = sequential();
  others_are_left_out(model, [&](const Tensor& x) { model->forward(x); });
}

TEST(CallsOfOthers, OfAModelWithMarksAreLeftOut) {
  Marked model;
  others_are_left_out(model, [&](const Tensor& x) { model->forward(x); });
}

TEST(CallsOfOthers, AreLeftOutWithTheirBackward) {
  Marked model;
  others_are_left_out(
      model, [&](const Tensor& x) { torch::autograd::grad({model->forward(x).sum()}, {model->first->weight}); });
}

TEST(CallsOfOthers, OfTorchScriptAreLeftOut) {
  torch::jit::Module model("Model");
  model.register_parameter("first", torch::rand({8, 16}), false);
  model.register_parameter("second", torch::rand({16, 8}), false);
  model.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        return torch.linear(torch.relu(torch.linear(x, self.first)), self.second)
  )");
  others_are_left_out(model, [&](const Tensor& x) { model.forward({x}); });
}

// Lets somebody else make so many calls of the model in the middle of the call that is counted.
struct Interrupted : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    const auto y = first(x);
    if (interrupt) std::exchange(interrupt, nullptr)();
    return second(y.relu());
  }
  std::function<void()> interrupt;
  Linear first = register_module("first", Linear(16, 8));
  Linear second = register_module("second", Linear(8, 16));
};

// A thread that was there before does what it is told.
class Worker {
 public:
  Worker() = default;
  ~Worker() {
    task_ = nullptr;
    given_.release();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void run(const std::function<void()>& task) {
    task_ = &task;
    given_.release();
    done_.acquire();
  }

 private:
  const std::function<void()>* task_ = nullptr;
  std::binary_semaphore given_{0}, done_{0};
  std::thread thread_{[this] {
    while (given_.acquire(), task_ != nullptr) {
      (*task_)();
      done_.release();
    }
  }};
};

TEST(CallsOfOthers, AreNumbered) {
  Interrupted model;
  const auto x = rows();
  Worker server;
  model.interrupt = [&] {
    server.run([&] {
      for (int call = 0; call < 3; ++call) model.forward(x);
    });
  };
  const Report report = RooflineProfiler(model, quick()).run(x);
  expect_one_call(report);
  EXPECT_EQ(report.row("first").calls, 1);
  EXPECT_EQ(report.row("second").calls, 1);
  ASSERT_NE(note_of(report, "other-calls"), nullptr);
  EXPECT_TRUE(says(report, "called 3 times"));
  model.interrupt = nullptr;
  EXPECT_EQ(note_of(RooflineProfiler(model, quick()).run(x), "other-calls"), nullptr);
}

template <class Model>
void blocks_leave_others_out(Model model, const std::function<void(const Tensor&)>& call) {
  const auto x = rows();
  const Caller one([&] { call(rows()); });
  const Caller other([&] { call(rows()); });
  RooflineProfiler prof(model, quick());
  for (int round = 0; round < 20; ++round) {
    {
      const Block block(prof);
      call(x);
    }
    expect_one_call(prof.report());
    expect_one_call(prof.run([&] { call(x); }));
    expect_one_call(prof.run_steps(1, [&] { call(x); }));
  }
}

TEST(CallsOfOthers, AreLeftOutOfBlocks) {
  auto several = sequential();
  blocks_leave_others_out(several, [&](const Tensor& x) { several->forward(x); });
  Marked marked;
  blocks_leave_others_out(marked, [&](const Tensor& x) { marked->forward(x); });
}

// A thread that was there before is another's, and what the block starts is the block's.
TEST(CallsOfOthers, CountInABlockThatIsOfAllThreads) {
  Unmarked model;
  const auto x = rows();
  Worker server;
  const auto both = [&] {
    model->forward(x);
    server.run([&] { model->forward(x); });
  };
  auto options = quick();
  const Report own = RooflineProfiler(model, options).run(both);
  EXPECT_EQ(own.total().macs, kMacs);
  ASSERT_NE(note_of(own, "other-calls"), nullptr);
  EXPECT_TRUE(says(own, "called once"));
  options.threads = Threads::all;
  const Report all = RooflineProfiler(model, options).run(both);
  EXPECT_EQ(all.total().macs, 2 * kMacs);
  EXPECT_EQ(note_of(all, "other-calls"), nullptr);
}

TEST(OwnThreads, ThatABlockStartsCount) {
  Unmarked model;
  const auto x = rows();
  RooflineProfiler prof(model, quick());
  {
    const Block block(prof);
    std::thread([&] { std::thread([&] { model->forward(x); }).join(); }).join();
    std::async(std::launch::async, [&] { model->forward(x); }).wait();
    std::promise<void> done;
    at::launch([&] {
      model->forward(x);
      done.set_value();
    });
    done.get_future().wait();
    (model->forward(x).sum() + 1).item<float>();
  }
  const Report report = prof.report();
  EXPECT_EQ(report.row("first").macs, 4 * kLayer);
  EXPECT_EQ(note_of(report, "other-calls"), nullptr);
  std::thread([&] { model->forward(x); }).join();  // after it, a thread is nobody's
  EXPECT_EQ(prof.run(x).total().macs, kMacs);
}

// ---- profiles of one model at the same time

template <class Model>
void profile_at_once(Model model, std::int64_t macs = kMacs) {
  constexpr int kThreads = 4;
  constexpr int kRuns = 50;
  std::latch together(kThreads);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      RooflineProfiler prof(model, quick());
      const auto x = rows();
      together.arrive_and_wait();
      for (int run = 0; run < kRuns; ++run) {
        const Report report = prof.run(x);
        const bool exact = report.total().macs == macs && note_of(report, "first-call") == nullptr &&
                           note_of(report, "timing-stopped") == nullptr &&
                           note_of(report, "ops-on-other-threads") == nullptr;
        wrong += exact ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

struct ThreadedImpl : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    auto other = std::async(std::launch::async, [&] { return left(x); });
    return right(x) + other.get();
  }
  Linear left = register_module("left", Linear(16, 8));
  Linear right = register_module("right", Linear(16, 8));
};
TORCH_MODULE(Threaded);

TEST(ProfilesAtOnce, OfAModelThatStartsThreadsAreExact) { profile_at_once(Threaded()); }

// ---- the model's own threads

struct PooledImpl : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    Tensor y;
    on_pool([&] { y = left(x); });
    return right(x) + y;
  }
  std::function<void(const std::function<void()>&)> on_pool;
  Linear left = register_module("left", Linear(16, 8));
  Linear right = register_module("right", Linear(16, 8));
};
TORCH_MODULE(Pooled);

struct MarkedPoolImpl : PooledImpl {
  Tensor forward(const Tensor& x) {
    ROOFPROF_SCOPE(*this);
    return PooledImpl::forward(x);
  }
};
TORCH_MODULE(MarkedPool);

TEST(OwnThreads, OfAPoolOfItsOwnCountWhereTheForwardIsMarked) {
  Worker worker;
  const auto on_pool = [&](const std::function<void()>& task) { worker.run(task); };
  MarkedPool marked;
  marked->on_pool = on_pool;
  expect_one_call(RooflineProfiler(marked, quick()).run(rows()));

  Pooled unmarked;
  unmarked->on_pool = on_pool;
  const Report report = RooflineProfiler(unmarked, quick()).run(rows());
  expect_one_call(report, kLayer);
  ASSERT_NE(note_of(report, "other-calls"), nullptr);
  EXPECT_TRUE(says(report, "ROOFPROF_SCOPE(*this)"));
}

}  // namespace
}  // namespace roofprof
