// What raises, and what is muted: afterwards everything is seen again, by us and by others.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "observe/observed.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

using namespace testing;

at::Tensor doubles_then_raises(const at::Tensor& x) {
  at::mul(x, 2);
  throw std::domain_error("the user's own");
}

TORCH_LIBRARY(raising_test, library) { library.def("doubles_then_raises(Tensor x) -> Tensor", doubles_then_raises); }

at::Tensor call_doubles_then_raises(const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("raising_test::doubles_then_raises", "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

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

// Somebody else's observer: how many ops it was shown.
std::atomic<int> records{0};

at::RecordFunctionCallback counting_records() {
  return at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
           ++records;
           return nullptr;
         })
      .scopes({at::RecordScope::FUNCTION});
}

template <class Body>
int records_of(Body&& body) {
  const int before = records;
  body();
  return records - before;
}

// A global callback of its own while it lives.
class OtherObserver {
 public:
  OtherObserver() : handle_(at::addGlobalCallback(counting_records())) {}
  ~OtherObserver() { at::removeCallback(handle_); }
  OtherObserver(const OtherObserver&) = delete;
  OtherObserver& operator=(const OtherObserver&) = delete;

 private:
  at::CallbackHandle handle_;
};

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
  {
    const OtherObserver other;
    EXPECT_EQ(records_of(linear), 1) << "what is inside is muted";
    EXPECT_EQ(records_of([&] { linear.raise(); }), 1);
    EXPECT_TRUE(at::isRecordFunctionEnabled());
    EXPECT_EQ(records_of([&] { at::neg(linear.input); }), 1);
  }
  const auto pass = session->stop();
  EXPECT_EQ(find(pass, "aten::neg", kOutside)->calls, 1);
  EXPECT_EQ(find(pass, "aten::linear", kOutside)->calls, 2) << "the one that raised did no work";
}

TEST(Muting, IsLeftOutWhereOthersLookOn) {
  const Linear linear;
  const OtherObserver other;
  const int plain = records_of(linear);
  ASSERT_GT(plain, 2);
  observe_in_model([&] {
    linear();
    EXPECT_EQ(records_of(linear), plain);
  });
}

TEST(Muting, IsLeftOutWhereOthersLookOnOnThisThread) {
  const Linear linear;
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  linear();
  const auto handle = at::addThreadLocalCallback(counting_records());
  const int observed = records_of(linear);
  session->stop();
  EXPECT_EQ(observed, records_of(linear));
  at::removeCallback(handle);
  EXPECT_GT(observed, 2);
}

TEST(Raising, KeepsWhatAnOpHadDoneBefore) {
  const auto x = at::rand({10});
  const auto pass = observe_in_model([&] {
    EXPECT_THROW(call_doubles_then_raises(x), std::domain_error);
    EXPECT_TRUE(thread_state().ops.empty());
    at::neg(x);
  });
  EXPECT_EQ(find(pass, "raising_test::doubles_then_raises"), nullptr);
  EXPECT_EQ(find(pass, "aten::mul")->calls, 1);
  EXPECT_EQ(find(pass, "aten::neg")->calls, 1);
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

TEST(Nesting, EndsWithThePassThatLeftItsScopesOpen) {
  auto ended = std::make_shared<Session>();
  ended->start(std::nullopt);
  std::thread([&] {
    auto other = std::make_shared<Session>();
    ended->frames.enter(kLayer, &ended);
    EXPECT_THROW(other->start(kOutside), std::logic_error);
    std::thread([&] { ended->stop(); }).join();
    other->start(kOutside);
    at::neg(at::ones({5}));
    EXPECT_EQ(ended->frames.leave(&ended), std::nullopt);
    EXPECT_EQ(find(other->stop(), "aten::neg", kOutside)->calls, 1);
  }).join();
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

}  // namespace
}  // namespace roofprof::observe
