// One session, step by step, on the simulated device, which refuses any order and any struct size but those of 13.0.
#include "device/cupti/range_session.h"

#include <array>
#include <memory>

#include "device/cupti/counted.h"

namespace roofprof::cupti {
namespace {

class Session : public Counting {
 protected:
  void SetUp() override {
    Counting::SetUp();
    api_ = open_api();
    library_.emplace(api_);
    host_.emplace(api_, "GH100");
    configuration_.emplace(*host_, std::vector<std::string>{"dram__bytes.sum"});
  }
  void TearDown() override {
    session_.reset();
    configuration_.reset();
    library_.reset();
    Counting::TearDown();
  }
  void open(RangeMode mode, RangeRooms rooms = {4, 4}) {
    session_ = std::make_unique<RangeSession>(*configuration_, context(), mode, rooms);
  }
  CUcontext context() const { return static_cast<CUcontext>(context_->get()); }
  double bytes(std::size_t range) const {
    std::array<double, 1> values{};
    EXPECT_EQ(session_->evaluate(range, values), CUPTI_SUCCESS);
    return values[0];
  }

  Api api_;
  std::optional<ProfilerLibrary> library_;
  std::optional<HostProfiler> host_;
  std::optional<Configuration> configuration_;
  std::unique_ptr<RangeSession> session_;
};

TEST_F(Session, AChipsMetricsAreKnown) {
  EXPECT_TRUE(host_->has("dram__bytes"));
  EXPECT_FALSE(host_->has("dram__bytes.sum"));
  EXPECT_FALSE(host_->has("dram__bytes_op_read"));
  EXPECT_EQ(configuration_->passes(), 1U);
  EXPECT_EQ(supported_chips(api_), (std::vector<std::string>{"GB10B", "GB202", "GH100", "TU116"}));
}

TEST_F(Session, EndsCleanlyAtAnyStep) {
  open(RangeMode::kernels);
  EXPECT_EQ(fake_live("range_profiler"), 1);
  session_.reset();
  EXPECT_EQ(fake_live("range_profiler"), 0);

  open(RangeMode::kernels);
  session_->start();
  session_.reset();
  EXPECT_EQ(fake_live("range_profiler"), 0);

  open(RangeMode::kernels);
  session_->start();
  launch(5, 0);
  EXPECT_TRUE(session_->stop());
  session_.reset();
  EXPECT_EQ(fake_live("range_profiler"), 0);
}

TEST_F(Session, RangesAreNamedAndRead) {
  open(RangeMode::modules);
  session_->start();
  EXPECT_EQ(session_->push("a"), CUPTI_SUCCESS);
  launch(5, 0);
  EXPECT_EQ(session_->pop(), CUPTI_SUCCESS);
  launch(100, 0);  // in no range
  EXPECT_TRUE(session_->stop());
  EXPECT_EQ(session_->decode(), 0U);
  ASSERT_EQ(session_->range_count(), 1U);
  EXPECT_EQ(session_->range_name(0), "a");
  EXPECT_EQ(bytes(0), 5);
}

TEST_F(Session, RoomsAreWhatIsWantedThenWhatIsNeededThenHalved) {
  for (const int refusal : {7, 8}) {
    fake_set("most_ranges_error", refusal);
    for (const auto& [most, taken] : {std::pair(0, 1150), std::pair(1149, 1000), std::pair(999, 500), {300, 250}}) {
      fake_set("most_ranges", most);
      open(RangeMode::kernels, {1150, 1000});
      EXPECT_EQ(session_->rooms(), taken) << most;
      session_.reset();
    }
    fake_set("most_ranges", 15);
    EXPECT_THROW(open(RangeMode::kernels, {1150, 1000}), CuptiError) << "it is not their number then";
    EXPECT_EQ(fake_live("range_profiler"), 0);
  }
  fake_set("most_ranges", 300);
  fake_set("most_ranges_error", CUPTI_ERROR_INVALID_PARAMETER);
  const long long before = fake_calls("cuptiRangeProfilerSetConfig");
  EXPECT_THROW(open(RangeMode::kernels, {1150, 1000}), CuptiError);
  EXPECT_EQ(fake_calls("cuptiRangeProfilerSetConfig") - before, 1) << "another refusal is none of numbers";
}

TEST_F(Session, OneAtATime) {
  open(RangeMode::kernels);
  EXPECT_THROW(RangeSession(*configuration_, context(), RangeMode::kernels, RangeRooms{4, 4}), CuptiError);
  EXPECT_THROW(counter_availability(api_, context()), CuptiError);
}

// The double is worth what it refuses.
TEST_F(Session, TheSimulatedProfilerIsStrict) {
  open(RangeMode::kernels);
  EXPECT_EQ(session_->push("a"), CUPTI_ERROR_INVALID_OPERATION);  // not among kernels
  EXPECT_THROW(session_->stop(), CuptiError);                     // was not started
  EXPECT_THROW(session_->decode(), CuptiError);                   // has no data
  session_.reset();
  open(RangeMode::modules);
  session_->start();
  EXPECT_EQ(session_->push("a"), CUPTI_SUCCESS);
  EXPECT_EQ(session_->push("b"), CUPTI_ERROR_INVALID_OPERATION);  // not inside another one
  EXPECT_THROW(session_->stop(), CuptiError);                     // with a range open
  EXPECT_EQ(session_->pop(), CUPTI_SUCCESS);
  EXPECT_EQ(session_->pop(), CUPTI_ERROR_INVALID_OPERATION);
  EXPECT_EQ(session_->push("a"), CUPTI_ERROR_INVALID_OPERATION);  // the same name
}

}  // namespace
}  // namespace roofprof::cupti
