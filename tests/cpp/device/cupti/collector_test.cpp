// The collector as the profiler uses it: found by the device's name, kernel times and counters one at a time.
#include "device/interface/collector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "device/cupti/traced.h"
#include "device/replay/replay.h"

namespace roofprof::cupti {
namespace {

class Collecting : public Traced {};

TEST_F(Collecting, TimesAndCountersOfOneDevice) {
  const auto collector = make_collector("cuda:0");
  ASSERT_NE(collector, nullptr);
  const auto model = [](LaunchMarker* marker) {
    FakeLaunch kernel{};
    kernel.name = "_Z4axpyPf";
    kernel.duration_ns = 700;
    kernel.dram_read_bytes = 4096;
    kernel.dram_write_bytes = 1024;
    if (marker != nullptr) marker->push(3, LaunchLevel::op);
    fake_launch(&kernel);
    if (marker != nullptr) marker->pop(LaunchLevel::op);
  };
  model(nullptr);

  EXPECT_EQ(collector->marker(), nullptr);
  collector->start_tracing();
  model(collector->marker());
  const DeviceTrace trace = collector->stop_tracing();
  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"axpy(float*)", 3}}));
  EXPECT_EQ(only(trace).end_ns - only(trace).start_ns, 700);

  const CounterTrace counters = collector->count({.expected_launches = 1}, model);
  ASSERT_EQ(counters.records.size(), 1U);
  EXPECT_EQ(counters.records[0].values[static_cast<std::size_t>(Counter::dram_bytes)], 5120.0);
}

TEST_F(Collecting, OnlyOneAtATime) {
  const auto first = make_collector("cuda:0");
  const auto second = make_collector("cuda:0");
  fake_kernel("makes_a_context", 0, 7, 10);
  const auto refused = [](auto&& call) {
    const std::string message = message_of<CollectorError>(call);
    EXPECT_NE(message.find("another measurement of roofprof's is under way"), std::string::npos) << message;
  };
  first->start_tracing();
  refused([&] { second->start_tracing(); });
  refused([&] { second->count({}, [](LaunchMarker*) {}); });
  refused([&] { first->count({}, [](LaunchMarker*) {}); });
  fake_kernel("goes_on", 0, 7, 10);
  EXPECT_EQ(first->stop_tracing().records.size(), 1U);

  second->start_tracing();
  second->stop_tracing();
  first->count({}, [&](LaunchMarker*) {
    fake_kernel("k", 0, 7, 10);
    refused([&] { second->start_tracing(); });
    refused([&] { first->count({}, [](LaunchMarker*) {}); });
  });
  second->start_tracing();
  second->stop_tracing();
}

TEST_F(Collecting, IsUsableAfterAFailure) {
  const auto collector = make_collector("cuda:0");
  fake_kernel("makes_a_context", 0, 7, 10);
  fake_fail("cuptiActivityEnable", CUPTI_ERROR_NOT_COMPATIBLE, 2);
  EXPECT_THROW(collector->start_tracing(), CollectorError);
  fake_fail("cuptiActivityEnable", 0, 0);
  EXPECT_THROW(collector->count({}, [](LaunchMarker*) { throw std::domain_error("the user's"); }), std::domain_error);
  fake_set("permitted", 0);
  EXPECT_THROW(collector->count({}, [](LaunchMarker*) {}), CollectorError);
  fake_set("permitted", 1);
  EXPECT_THROW(collector->stop_tracing(), CollectorError);

  collector->start_tracing();
  fake_kernel("k", 0, 7, 10);
  EXPECT_EQ(collector->stop_tracing().records.size(), 1U);
}

TEST_F(Collecting, OneThatGoesGivesTheDeviceBack) {
  make_collector("cuda:0")->start_tracing();
  const auto next = make_collector("cuda:0");
  next->start_tracing();
  fake_kernel("k", 0, 7, 10);
  EXPECT_EQ(next->stop_tracing().records.size(), 1U);
}

TEST_F(Collecting, OtherDevicesHaveNone) {
  EXPECT_EQ(make_collector("cpu"), nullptr);
  EXPECT_EQ(fake_calls("cupti*"), 0);
}

TEST_F(Collecting, IsRecordedOnRequest) {
  const std::string path = testing::TempDir() + "/roofprof_collector_" + std::to_string(getpid()) + ".json";
  setenv("ROOFPROF_RECORD_DEVICE", path.c_str(), 1);
  const auto collector = make_collector("cuda:0");
  unsetenv("ROOFPROF_RECORD_DEVICE");
  collector->start_tracing();
  {
    const Under op(collector->marker(), 3);
    fake_kernel("_Z4axpyPf", 0, 7, 700);
  }
  RecordedData expected;
  expected.traces.push_back(collector->stop_tracing());
  expected.counters.push_back(collector->count({}, [](LaunchMarker*) { fake_kernel("_Z4axpyPf", 0, 7, 700); }));
  ASSERT_EQ(expected.traces[0].records.size(), 1U);
  ASSERT_EQ(expected.counters[0].records.size(), 1U);
  EXPECT_EQ(read_recorded_file(path), expected);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace roofprof::cupti
