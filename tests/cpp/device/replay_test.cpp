#include "device/replay/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace roofprof {
namespace {

std::string data_file(const std::string& name) { return std::string(ROOFPROF_TEST_DATA) + "/data/device/" + name; }

KernelRecord kernel(LaunchId launch) {
  KernelRecord record;
  record.launch = launch;
  record.start_ns = 10;
  record.end_ns = 20;
  return record;
}

// Returns a kernel under the number of the call.
class Scripted final : public DeviceCollector {
 public:
  void synchronize() override {}
  void start_tracing(Recorded) override { ++calls_; }
  LaunchMarker* marker() override { return nullptr; }
  DeviceTrace stop_tracing() override {
    DeviceTrace trace;
    trace.names = {"k"};
    trace.records = {kernel(calls_)};
    return trace;
  }
  CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) override {
    CounterTrace trace;
    trace.ranges = request.ranges;
    trace.passes = 2;
    for (int pass = 0; pass < 2; ++pass) body(nullptr);
    trace.records.push_back({++calls_, {}});
    return trace;
  }

 private:
  LaunchId calls_ = 0;
};

class Recorded : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // Tests may run side by side, each in a process of its own.
  const std::string path_ = ::testing::TempDir() + "/roofprof_recorded_" + std::to_string(getpid()) + ".json";
};

TEST_F(Recorded, WhatWasReturnedComesBack) {
  RecordedData returned;
  {
    const auto recording = recording_collector(std::make_unique<Scripted>(), path_);
    for (int run = 0; run < 3; ++run) {
      recording->start_tracing();
      returned.traces.push_back(recording->stop_tracing());
    }
    returned.counters.push_back(recording->count({}, [](LaunchMarker*) {}));
    EXPECT_EQ(returned.traces[2].records[0].launch, 3U);
  }
  EXPECT_EQ(read_recorded_file(path_), returned);

  const auto replaying = replaying_collector(path_);
  for (int run = 0; run < 7; ++run) {
    EXPECT_EQ(replaying->marker(), nullptr);
    replaying->start_tracing();
    ASSERT_NE(replaying->marker(), nullptr);
    replaying->marker()->push(1, LaunchLevel::op);
    replaying->marker()->pop(LaunchLevel::op);
    DeviceTrace trace = replaying->stop_tracing();
    ASSERT_FALSE(trace.notes.empty());
    EXPECT_EQ(trace.notes.back().text, "recorded data of " + path_ + ", replayed: no device ran");
    trace.notes.pop_back();
    EXPECT_EQ(trace, returned.traces[static_cast<std::size_t>(run) % 3]);
  }
  int bodies = 0;
  EXPECT_EQ(replaying->count({}, [&](LaunchMarker*) { ++bodies; }).records, returned.counters[0].records);
  EXPECT_EQ(bodies, 2) << "as many times as there were passes";
}

TEST_F(Recorded, TheBodysErrorComesThrough) {
  const auto replaying = replaying_collector(data_file("hand_made.json"));
  const CounterRequest modules{.ranges = CounterRanges::modules};
  EXPECT_THROW(replaying->count(modules, [](LaunchMarker*) { throw std::domain_error("the user's"); }),
               std::domain_error);
  EXPECT_EQ(replaying->count(modules, [](LaunchMarker* marker) { EXPECT_NE(marker, nullptr); }).chip, "GH100");
}

TEST_F(Recorded, WhatIsNotThereIsSaid) {
  const auto said = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const CollectorError& error) {
      return error.what();
    }
    return "(nothing was thrown)";
  };
  EXPECT_EQ(said([&] { replaying_collector(path_); }),
            "there is no device data to read: cannot read '" + path_ + "': No such file or directory");
  std::ofstream(path_) << "something else\n";
  EXPECT_EQ(said([&] { replaying_collector(path_); }),
            path_ + " is no recorded device data: it is not JSON (line 1, column 1: a value is expected here)");
  write_recorded_file({}, path_);
  const auto empty = replaying_collector(path_);
  EXPECT_EQ(said([&] { empty->start_tracing(); }), "no kernel times were recorded in " + path_);
  EXPECT_EQ(said([&] { empty->count({}, [](LaunchMarker*) {}); }), "no counters were recorded in " + path_);
  const auto modules = replaying_collector(data_file("hand_made.json"));
  EXPECT_EQ(said([&] { modules->count({}, [](LaunchMarker*) {}); }),
            "no counters of kernels were recorded in " + data_file("hand_made.json"));
  EXPECT_EQ(said([&] { modules->stop_tracing(); }), "no recorded trace is being replayed: start one first");
  modules->start_tracing();
  EXPECT_EQ(said([&] { modules->start_tracing(); }), "a recorded trace is being replayed already: end it first");
}

TEST_F(Recorded, AFileThatCannotBeWrittenIsANote) {
  const auto recording =
      recording_collector(std::make_unique<Scripted>(), ::testing::TempDir() + "/no/such/folder/data.json");
  recording->start_tracing();
  const DeviceTrace trace = recording->stop_tracing();
  EXPECT_EQ(trace.records.size(), 1U);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_NE(trace.notes[0].text.find("was not recorded: cannot write"), std::string::npos);
}

TEST_F(Recorded, TheEnvironmentAsksForIt) {
  setenv("ROOFPROF_REPLAY_DEVICE", data_file("hand_made.json").c_str(), 1);
  const auto collector = make_collector("cuda:0");
  EXPECT_EQ(make_collector("cpu"), nullptr);
  unsetenv("ROOFPROF_REPLAY_DEVICE");
  collector->start_tracing();
  EXPECT_EQ(collector->stop_tracing().records.size(), 3U);
}

}  // namespace
}  // namespace roofprof
