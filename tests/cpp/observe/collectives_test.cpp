// Collectives of a C++ program (c10d), over a backend that takes as long as the test says.

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
enum class Tells : std::uint8_t { by_future, when_asked, fails, raises };

class SlowWork : public c10d::Work {
 public:
  SlowWork(std::chrono::milliseconds takes, Tells tells)
      : tells_(tells),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
    worker_ = std::thread([this, takes] {
      std::this_thread::sleep_for(takes);
      if (tells_ == Tells::fails) {
        future_->setError(std::make_exception_ptr(std::runtime_error("a rank died")));
      } else {
        future_->markCompleted(c10::IValue(std::vector<at::Tensor>{}));
      }
      finish();
    });
  }
  ~SlowWork() override { worker_.join(); }
  SlowWork(const SlowWork&) = delete;
  SlowWork& operator=(const SlowWork&) = delete;

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (tells_ == Tells::when_asked) return c10d::Work::getFuture();  // it throws
    return future_;
  }

 private:
  Tells tells_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::thread worker_;
};

class SlowBackend : public c10d::Backend {
 public:
  SlowBackend(int ranks, std::chrono::milliseconds takes, Tells tells)
      : c10d::Backend(0, ranks), takes_(takes), tells_(tells) {}

  const std::string getBackendName() const override { return "slow"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& /*tensors*/,
                                           const c10d::AllreduceOptions& /*options*/) override {
    if (tells_ == Tells::raises) throw std::runtime_error("no such rank");
    return c10::make_intrusive<SlowWork>(takes_, tells_);
  }

 private:
  std::chrono::milliseconds takes_;
  Tells tells_;
};

c10::intrusive_ptr<c10d::ProcessGroup> group_of(int ranks, std::chrono::milliseconds takes, Tells tells) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(0, ranks);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                    c10::make_intrusive<SlowBackend>(ranks, takes, tells));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName("test");
  return group;
}

CollectiveData collectives_of(const Pass& pass) {
  std::vector<OpKey> keys;
  for (const auto& op : pass.ops) keys.push_back(op.key);
  return collective_data(pass, &pass, keys);
}

constexpr std::int64_t kMillisecond = 1'000'000;

TEST(Collectives, AreCountedAndTimedUntilTheirFutureIsDone) {
  const auto group = group_of(4, 40ms, Tells::by_future);
  auto values = std::vector{torch::ones({256})};
  const auto pass = observe_in_model([&] {
    for (int i = 0; i < 2; ++i) group->allreduce(values)->wait();
  });
  const auto data = collectives_of(pass);
  ASSERT_EQ(data.collectives.size(), 1);
  EXPECT_EQ(data.groups.at(0), (ProcessGroup{.name = "test", .backend = "slow", .ranks = 4}));
  EXPECT_EQ(data.collectives[0].calls, 2);
  EXPECT_EQ(data.collectives[0].timed_calls, 2);
  EXPECT_GE(data.collectives[0].time_ns, 2 * 40 * kMillisecond);
  EXPECT_EQ(data.collectives[0].exposed_ns, data.collectives[0].time_ns);
  EXPECT_EQ(pass.ops.at(static_cast<std::size_t>(pass.collectives.counts.at(0).op)).work.read_bytes, 2 * 1024);
  EXPECT_EQ(data.calls.at(0).sequence, 0);
  EXPECT_EQ(data.calls.at(1).sequence, 1);
}

TEST(Collectives, WhatIsComputedMeanwhileHidesThem) {
  const auto group = group_of(2, 200ms, Tells::by_future);
  auto values = std::vector{torch::ones({256})};
  const auto square = torch::rand({256, 256});
  const auto pass = observe_in_model([&] {
    const auto work = group->allreduce(values);
    const auto until = std::chrono::steady_clock::now() + 100ms;
    while (std::chrono::steady_clock::now() < until) torch::mm(square, square);
    work->wait();
  });
  const auto collective = collectives_of(pass).collectives.at(0);
  EXPECT_TRUE(collective.exposed_known);
  EXPECT_GT(collective.exposed_ns, 50 * kMillisecond);
  EXPECT_LT(collective.exposed_ns, collective.time_ns - 50 * kMillisecond);
}

TEST(Collectives, WorkWithoutAFutureIsAskedWhenTheNextOpBegins) {
  const auto group = group_of(2, 30ms, Tells::when_asked);
  auto values = std::vector{torch::ones({256})};
  const auto pass = observe_in_model([&] {
    group->allreduce(values)->wait();  // and released
    torch::add(values[0], values[0]);
    group->allreduce(values)->wait();
  });
  const auto data = collectives_of(pass);
  EXPECT_EQ(data.collectives.at(0).timed_calls, 2);
  EXPECT_GE(data.collectives[0].time_ns, 2 * 30 * kMillisecond);
}

TEST(Collectives, WhatIsUnderWayWhenAPassEndsOrFailedHasNoTime) {
  auto values = std::vector{torch::ones({256})};
  c10::intrusive_ptr<c10d::Work> work;
  const auto slow = group_of(2, 300ms, Tells::by_future);
  const auto unfinished = observe_in_model([&] { work = slow->allreduce(values); });
  EXPECT_EQ(unfinished.collectives.unfinished, 1);
  EXPECT_EQ(collectives_of(unfinished).collectives.at(0).calls, 1);
  EXPECT_EQ(collectives_of(unfinished).collectives.at(0).timed_calls, 0);
  const auto next = observe_in_model([&] { work->wait(); });  // it ends in a pass that it is not of
  EXPECT_TRUE(next.collectives.counts.empty());
  const auto failing = group_of(2, 10ms, Tells::fails);
  const auto failed = observe_in_model([&] { failing->allreduce(values)->wait(); });
  EXPECT_EQ(failed.collectives.unfinished, 1);
}

TEST(Collectives, OneThatRaisesIsNotCountedAndItsExceptionComesThrough) {
  auto values = std::vector{torch::ones({256})};
  const auto group = group_of(2, 0ms, Tells::raises);
  const auto pass = observe_in_model([&] { EXPECT_THROW(group->allreduce(values), std::runtime_error); });
  EXPECT_TRUE(pass.collectives.counts.empty());
  EXPECT_TRUE(pass.collectives.calls.empty());
}

TEST(Collectives, MoreThanThereIsRoomForAreCountedWithoutTimes) {
  auto values = std::vector{torch::ones({1})};
  const auto group = group_of(2, 0ms, Tells::by_future);
  const auto pass = observe_in_model([&] {
    for (std::int64_t i = 0; i < kCollectivesTimed + 3; ++i) group->allreduce(values)->wait();
  });
  EXPECT_EQ(pass.collectives.left_out, 3);
  const auto data = collectives_of(pass);
  EXPECT_EQ(data.collectives.at(0).calls, kCollectivesTimed + 3);
  EXPECT_EQ(data.collectives[0].timed_calls, kCollectivesTimed);
}

}  // namespace
}  // namespace roofprof::observe
