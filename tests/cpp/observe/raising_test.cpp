// What raises, and what is muted: afterwards everything is seen again, by us and by others.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "observe/in_flight.h"
#include "observe/observed.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

using namespace testing;

struct RaisesInBackward : torch::autograd::Function<RaisesInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& x) {
    return at::mul(x, 2);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& gradients) {
    at::neg(gradients.front());
    throw std::domain_error("the user's own");
  }
};

// Somebody else's observer: how many ops it is shown in the body.
std::atomic<int> records{0};

template <class Body>
int records_of(Body&& body) {
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        ++records;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  const int before = records;
  body();
  at::removeCallback(handle);
  return records - before;
}

struct Linear {
  at::Tensor input = at::rand({4, 16});
  at::Tensor weight = at::rand({8, 16});
  at::Tensor wrong = at::rand({8, 5});
  void operator()() const { at::linear(input, weight); }
  void raise() const { EXPECT_THROW(at::linear(input, wrong), c10::Error); }
};

TEST(Muting, EndsWithAnOpThatRaises) {
  const Linear linear;
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  linear();  // how much is inside is known from now on
  EXPECT_EQ(records_of(linear), 1) << "what is inside is muted";
  EXPECT_EQ(records_of([&] { linear.raise(); }), 1);
  EXPECT_TRUE(at::isRecordFunctionEnabled());
  EXPECT_EQ(records_of([&] { at::neg(linear.input); }), 1);
  const auto pass = session->stop();
  EXPECT_EQ(find(pass, "aten::neg", kOutside)->calls, 1);
  EXPECT_EQ(find(pass, "aten::linear", kOutside)->calls, 2) << "the one that raised did no work";
}

TEST(Muting, IsLeftOutWhereOthersLookOn) {
  const Linear linear;
  const int plain = records_of(linear);
  ASSERT_GT(plain, 2);
  const auto twice = [&] {
    linear();
    linear();
  };
  EXPECT_EQ(records_of([&] { observe_in_model(twice); }), 2 * plain);
}

TEST(Raising, InABackwardLeavesTheScopesAsTheyWere) {
  const auto x = at::ones({10}).set_requires_grad(true);
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  session->frames.enter(kLayer, &x);
  const auto y = RaisesInBackward::apply(x);
  session->frames.leave(&x);
  EXPECT_THROW(y.sum().backward(), std::domain_error);
  EXPECT_EQ(thread_state().frames.size(), 1U);
  EXPECT_EQ(thread_state().backward.nodes, 0);
  at::exp(x);
  const auto pass = session->stop();
  EXPECT_EQ(find(pass, "aten::neg", kLayer, Phase::backward)->calls, 1);
  EXPECT_EQ(find(pass, "aten::exp", kOutside, Phase::forward)->calls, 1);
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

TEST(Nesting, IsRefusedInOneSentenceAndChangesNothing) {
  const auto refusal = [](Session& session) -> std::string {
    try {
      session.start(kOutside);
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  };
  auto outer = std::make_shared<Session>();
  auto inner = std::make_shared<Session>();
  outer->start(kOutside);
  EXPECT_EQ(refusal(*inner),
            "roofprof: this thread is already inside a profiler's block or run; profilers do not nest, so end that one "
            "first");
  EXPECT_FALSE(inner->active());
  std::string elsewhere;
  std::thread([&] { elsewhere = refusal(*outer); }).join();
  EXPECT_EQ(elsewhere, "roofprof: this profiler is already running; end its block or run first");
  EXPECT_FALSE(inner->frames.enter(kModel, &inner)) << "it has no pass";
  at::neg(at::ones({5}));
  EXPECT_EQ(find(outer->stop(), "aten::neg", kOutside)->calls, 1);
  inner->start(kOutside);
  inner->stop();
}

// Notes what both count while exceptions unwind the stack, one inside of the other.
struct Notes {
  const InFlight& in_flight;
  std::vector<std::pair<int, unsigned>>& noted;
  int deeper;

  ~Notes() {
    note();
    if (deeper > 0) raise(in_flight, noted, deeper - 1);
  }
  void note() const { noted.emplace_back(std::uncaught_exceptions(), in_flight.count()); }
  static void raise(const InFlight& in_flight, std::vector<std::pair<int, unsigned>>& noted, int deeper) {
    try {
      const Notes notes{in_flight, noted, deeper};
      throw std::runtime_error("unwinds");
    } catch (const std::runtime_error&) {
      noted.emplace_back(std::uncaught_exceptions(), in_flight.count());
    }
  }
};

TEST(InFlight, CountsAsTheStandardLibraryDoes) {
  const InFlight in_flight;
  std::vector<std::pair<int, unsigned>> noted;
  Notes::raise(in_flight, noted, 2);
  EXPECT_EQ(noted, (std::vector<std::pair<int, unsigned>>{{1, 1}, {2, 2}, {3, 3}, {2, 2}, {1, 1}, {0, 0}}));
}

}  // namespace
}  // namespace roofprof::observe
