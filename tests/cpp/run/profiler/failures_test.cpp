// Exceptions, threads, nesting and lifetimes: nothing is left behind, and every report is exact.

#include <ATen/native/Resize.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <torch/autograd.h>
#include <torch/nn.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "quick.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using at::Tensor;
using testing::input;
using testing::kLinearMacs;
using testing::quick;
using testing::says;

// An exception type of the user's, which is no std::exception.
struct Stop {
  int code;
};

// Nobody observes, nobody mutes, no scope is open.
void expect_nothing_left() {
  EXPECT_FALSE(at::hasGlobalCallbacks());
  EXPECT_FALSE(at::hasThreadLocalCallbacks());
  EXPECT_TRUE(at::isRecordFunctionEnabled());
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs);
}

struct Inner : torch::nn::Module {
  explicit Inner(std::function<void()> fail) : fail(std::move(fail)) {}
  Tensor forward(const Tensor& x) {
    ROOFPROF_SCOPE("inside");
    const Tensor y = linear(x);
    fail();
    return y + 1;
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(16, 8));
  std::function<void()> fail;
};

struct Outer : torch::nn::Module {
  explicit Outer(std::function<void()> fail)
      : inner(register_module("inner", std::make_shared<Inner>(std::move(fail)))) {}
  Tensor forward(const Tensor& x) { return inner->forward(x).relu(); }
  std::shared_ptr<Inner> inner;
};

// What ran before the failure: the linear layer, and neither the sum nor the ReLU.
void expect_partial(const Report& report) {
  EXPECT_TRUE(report.partial());
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_EQ(report.total().flops, 2 * kLinearMacs + 4 * 8);  // and the bias
}

// Of a model's call: one that did not end has no time.
void expect_partial_call(const Report& report) {
  expect_partial(report);
  EXPECT_FALSE(report.total().time_ns.has_value());
}

TEST(Raising, HandsOnTheVeryObjectThatWasThrown) {
  const auto thrown = std::make_exception_ptr(Stop{7});
  Outer model([&] { std::rethrow_exception(thrown); });
  RooflineProfiler prof(model, quick());
  std::exception_ptr caught;
  try {
    prof.run(input());
  } catch (const Stop&) {
    caught = std::current_exception();
  }
  EXPECT_EQ(caught, thrown);
  expect_nothing_left();
  expect_partial_call(prof.report());
}

// Batch statistics are put back after each further call, and the graph of the earlier one refers to them.
TEST(State, LeavesTheBackwardOfAnEarlierCallAlone) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::BatchNorm1d(8));
  const auto loss = model->forward(input()).sum();
  RooflineProfiler prof(model, quick());
  prof.run(input());
  EXPECT_NO_THROW(loss.backward());
}

struct Raises : torch::autograd::Function<Raises> {
  static Tensor forward(torch::autograd::AutogradContext* /*context*/, const Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 torch::autograd::variable_list /*gradients*/) {
    throw std::runtime_error("no way back");
  }
};

TEST(Raising, InsideABackwardLeavesNothingEither) {
  torch::nn::Linear first(16, 8);
  torch::nn::Linear second(8, 2);
  RooflineProfiler prof(first, quick());
  EXPECT_THROW(prof.run([&] { second->forward(Raises::apply(first->forward(input()))).sum().backward(); }),
               std::runtime_error);
  expect_nothing_left();
  EXPECT_TRUE(prof.report().partial());
  // Forward of both; backward of the second: weight and input. The first one's never ran.
  EXPECT_EQ(prof.report().total().macs, kLinearMacs + 3 * (4 * 8 * 2));
}

TEST(Raising, OfWhatIsNoExceptionInALaterCallIsReportedToo) {
  int calls = 0;
  Outer model([&] {
    if (++calls == 4) throw Stop{4};
    if (calls == 7) throw 7;
  });
  RooflineProfiler prof(model, quick());
  const Report first = prof.run(input());
  expect_nothing_left();
  EXPECT_FALSE(first.partial());
  EXPECT_EQ(first.total().macs, kLinearMacs);
  EXPECT_TRUE(
      says(first, "timing stopped after 0 repeats: a further call raised roofprof::(anonymous namespace)::Stop"));
  const Report second = prof.run(input());
  EXPECT_EQ(second.total().macs, kLinearMacs);
  EXPECT_TRUE(says(second, "timing stopped after 0 repeats: a further call raised int"));
}

TEST(Raising, AThreadThatIsEndedInALaterCallEnds) {
  int calls = 0;
  Outer model([&] {
    if (++calls == 3) pthread_exit(nullptr);
  });
  RooflineProfiler prof(model, quick());
  bool returned = false;
  std::thread([&] {
    prof.run(input());
    returned = true;
  }).join();
  EXPECT_FALSE(returned);
  EXPECT_EQ(calls, 3);
  expect_nothing_left();
}

// ---- several at once

// ---- lifetimes

TEST(Lifetime, AProfilerMayGoInItsOwnRun) {
  torch::nn::Linear model(16, 8);
  auto prof = std::make_unique<RooflineProfiler<torch::nn::Linear>>(model, quick());
  const auto x = input();
  const Report report = prof->run([&] {
    model->forward(x);
    prof.reset();
    model->forward(x);
  });
  EXPECT_EQ(report.total().macs, 2 * kLinearMacs);
  expect_nothing_left();
  // In a repeated call, with the last handle of the model.
  std::unique_ptr<RooflineProfiler<std::shared_ptr<Outer>>> last;
  last = std::make_unique<RooflineProfiler<std::shared_ptr<Outer>>>(std::make_shared<Outer>([&] { last.reset(); }),
                                                                    quick());
  EXPECT_EQ(last->run(x).run_times_ns().size(), 3U);
  expect_nothing_left();
}

struct FreesItsWeight : torch::nn::Module {
  FreesItsWeight() { register_module("linear", linear); }
  Tensor forward(const Tensor& x) {
    Tensor result = linear(x);
    at::native::resize_bytes_nocuda(linear->weight.storage(), 0);
    return result;
  }
  torch::nn::Linear linear{16, 8};
};

TEST(FreedMemory, ByTheFirstCallEndsTheTimingBeforeItBegins) {
  FreesItsWeight model;
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(input());
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_TRUE(says(report, "further ones would find 1 tensor without the memory that it freed"));
}

}  // namespace
}  // namespace roofprof
