// Collectives of a C++ program (c10d), over a backend that ends calls when the test says.

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <future>
#include <thread>

#include "join/collectives.h"
#include "observed.h"

namespace roofprof::observe {
namespace {

using namespace std::chrono_literals;
using testing::observe_in_model;

// Whether a Work tells its end by a future, by isCompleted(), or not at all.
enum class Tells : std::uint8_t { by_future, on_request, fails };

// Calls end after the time that the test says, or when it opens the gate.
using Gate = std::shared_future<void>;

class GatedWork : public c10d::Work {
 public:
  GatedWork(Tells tells, std::chrono::milliseconds takes, Gate gate)
      : tells_(tells),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
    worker_ = std::thread([this, takes, gate = std::move(gate)] {
      if (gate.valid()) gate.wait();
      std::this_thread::sleep_for(takes);
      if (tells_ == Tells::fails) {
        future_->setError(std::make_exception_ptr(std::runtime_error("a rank died")));
      } else {
        future_->markCompleted(c10::IValue(std::vector<at::Tensor>{}));
      }
      finish();
    });
  }
  ~GatedWork() override { worker_.join(); }
  GatedWork(const GatedWork&) = delete;
  GatedWork& operator=(const GatedWork&) = delete;

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (tells_ == Tells::on_request) return c10d::Work::getFuture();  // it throws
    return future_;
  }

 private:
  Tells tells_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::thread worker_;
};

class GatedBackend : public c10d::Backend {
 public:
  GatedBackend(int ranks, Tells tells, std::chrono::milliseconds takes, Gate gate)
      : c10d::Backend(0, ranks), tells_(tells), takes_(takes), gate_(std::move(gate)) {}

  const std::string getBackendName() const override { return "gated"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& /*tensors*/,
                                           const c10d::AllreduceOptions& /*options*/) override {
    return c10::make_intrusive<GatedWork>(tells_, takes_, gate_);
  }

 private:
  Tells tells_;
  std::chrono::milliseconds takes_;
  Gate gate_;
};

c10::intrusive_ptr<c10d::ProcessGroup> group_of(int ranks, Tells tells, std::chrono::milliseconds takes,
                                                Gate gate = {}) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(0, ranks);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                    c10::make_intrusive<GatedBackend>(ranks, tells, takes, std::move(gate)));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName("test");
  return group;
}

CollectiveData collectives_of(const Pass& pass) { return collective_data(pass, &pass, pass.ops); }

// What a call takes at least, by the observer's clock, which is not exactly the one that sleeps.
constexpr auto kTakes = 5ms;
constexpr std::int64_t kLeastNs = std::chrono::nanoseconds(kTakes).count() * 9 / 10;

TEST(Collectives, AreCountedAndTimedUntilTheirFutureIsDone) {
  const auto group = group_of(4, Tells::by_future, kTakes);
  auto values = std::vector{torch::ones({256})};
  const auto pass = observe_in_model([&] {
    for (int i = 0; i < 2; ++i) group->allreduce(values)->wait();
  });
  const auto data = collectives_of(pass);
  ASSERT_EQ(data.collectives.size(), 1);
  EXPECT_EQ(data.groups.at(0), (ProcessGroup{.name = "test", .backend = "gated", .ranks = 4}));
  EXPECT_EQ(data.collectives[0].calls, 2);
  EXPECT_EQ(data.collectives[0].timed_calls, 2);
  EXPECT_GE(data.collectives[0].time_ns, 2 * kLeastNs);
  EXPECT_EQ(data.collectives[0].exposed_ns, data.collectives[0].time_ns);
  EXPECT_EQ(pass.ops.at(static_cast<std::size_t>(pass.collectives.counts.at(0).op)).work.read_bytes, 2 * 1024);
  EXPECT_EQ(data.calls.at(0).sequence, 0);
  EXPECT_EQ(data.calls.at(1).sequence, 1);
}

// What is left of it is its time without that of the ops that ran meanwhile.
TEST(Collectives, WhatIsComputedMeanwhileHidesThem) {
  std::promise<void> gate;
  const auto group = group_of(2, Tells::by_future, 0ms, gate.get_future().share());
  auto values = std::vector{torch::ones({256})};
  const auto square = torch::rand({64, 64});
  const auto pass = observe_in_model([&] {
    torch::mm(square, square);  // before it begins
    const auto work = group->allreduce(values);
    for (int i = 0; i < 3; ++i) torch::add(square, square);
    gate.set_value();
    work->wait();
  });
  const auto collective = collectives_of(pass).collectives.at(0);
  const auto* computed = testing::find(pass, "aten::add");
  ASSERT_NE(computed, nullptr);
  ASSERT_EQ(computed->calls, 3);
  EXPECT_TRUE(collective.exposed_known);
  EXPECT_GT(computed->time_ns, 0);
  EXPECT_NEAR(static_cast<double>(collective.exposed_ns), static_cast<double>(collective.time_ns - *computed->time_ns),
              10)
      << "but for what is rounded to nanoseconds";
}

TEST(Collectives, WorkWithoutAFutureIsRequestedWhenTheNextOpBegins) {
  const auto group = group_of(2, Tells::on_request, kTakes);
  auto values = std::vector{torch::ones({256})};
  const auto pass = observe_in_model([&] {
    group->allreduce(values)->wait();  // and released
    torch::add(values[0], values[0]);
    group->allreduce(values)->wait();
  });
  const auto data = collectives_of(pass);
  EXPECT_EQ(data.collectives.at(0).timed_calls, 2);
  EXPECT_GE(data.collectives[0].time_ns, 2 * kLeastNs);
}

TEST(Collectives, WhatIsUnderWayWhenAPassEndsOrFailedHasNoTime) {
  auto values = std::vector{torch::ones({256})};
  c10::intrusive_ptr<c10d::Work> work;
  std::promise<void> gate;
  const auto slow = group_of(2, Tells::by_future, 0ms, gate.get_future().share());
  const auto unfinished = observe_in_model([&] { work = slow->allreduce(values); });
  EXPECT_EQ(unfinished.collectives.unfinished, 1);
  EXPECT_EQ(collectives_of(unfinished).collectives.at(0).calls, 1);
  EXPECT_EQ(collectives_of(unfinished).collectives.at(0).timed_calls, 0);
  const auto next = observe_in_model([&] {
    gate.set_value();
    work->wait();
  });  // it ends in a pass that it is not of
  EXPECT_TRUE(next.collectives.counts.empty());
  const auto failing = group_of(2, Tells::fails, 0ms);
  const auto failed = observe_in_model([&] { failing->allreduce(values)->wait(); });
  EXPECT_EQ(failed.collectives.unfinished, 1);
}

}  // namespace
}  // namespace roofprof::observe
