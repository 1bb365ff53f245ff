// What a device did, kept in a file and read back: what an H100 recorded, what was written by hand from the description
// of the format in replay.h, and both damaged.
#include "device/replay/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/damage.h"

namespace roofprof {
namespace {

const std::string kHandMade = std::string(ROOFPROF_TEST_DATA) + "/data/device/hand_made.json";
const std::string kH100 = std::string(ROOFPROF_TEST_DATA) + "/data/gpu/h100/device_data.txt";

template <class Error, class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// ---- the file

TEST(RecordedData, AHandMadeFileIsReadAsDescribed) {
  const RecordedData data = read_recorded_file(kHandMade);
  ASSERT_EQ(data.traces.size(), 1U);
  ASSERT_EQ(data.counters.size(), 1U);
  const DeviceTrace& trace = data.traces[0];
  EXPECT_EQ(std::pair(trace.start_ns, trace.end_ns), (std::pair<std::int64_t, std::int64_t>(1000000, 1010000)));
  EXPECT_EQ(trace.dropped, 1);
  EXPECT_EQ(trace.incomplete, 2);
  EXPECT_EQ(trace.foreign, 3);
  EXPECT_EQ(trace.notes,
            (std::vector<Note>{make_note("graph-launches", "made by hand"), make_note("replayed", "two\nlines")}));
  EXPECT_EQ(trace.names, (std::vector<std::string>{"void axpy<float>(float*, float*, int)",
                                                   "[CUDA memcpy Host-to-Device]", "[CUDA memset]"}));
  ASSERT_EQ(trace.records.size(), 3U);
  const KernelRecord kernel{.kind = KernelKind::kernel,
                            .from = Memory::unknown,
                            .to = Memory::unknown,
                            .name = 0,
                            .device = 0,
                            .to_device = 0,
                            .stream = 7,
                            .correlation = 12,
                            .graph_node = 99,
                            .launch = 3,
                            .start_ns = 1001000,
                            .end_ns = 1004500,
                            .grid = {1024, 1, 1},
                            .block = {256, 1, 1},
                            .bytes = 0};
  EXPECT_EQ(trace.records[0], kernel);
  const KernelRecord& copy = trace.records[1];
  EXPECT_EQ(copy.kind, KernelKind::copy);
  EXPECT_EQ(std::pair(copy.from, copy.to), std::pair(Memory::pinned, Memory::device));
  EXPECT_EQ(copy.bytes, 4194304);
  EXPECT_EQ(trace.records[2].kind, KernelKind::fill);
  EXPECT_EQ(trace.records[2].device, 1U);

  const CounterTrace& counters = data.counters[0];
  EXPECT_EQ(counters.chip, "GH100");
  EXPECT_EQ(counters.ranges, CounterRanges::modules);
  EXPECT_EQ(counters.dropped, 4);
  EXPECT_EQ(counters.passes, 2);
  ASSERT_EQ(counters.sources.size(), 2U);
  EXPECT_EQ(counters.sources[0], (CounterSource{Counter::dram_bytes,
                                                {"dram__bytes_read.sum", "dram__bytes_write.sum"},
                                                "dram__bytes_read.sum + dram__bytes_write.sum",
                                                ""}));
  EXPECT_EQ(counters.sources[1], (CounterSource{Counter::tensor_fp4_flops, {}, "", "this chip has no such unit"}));
  ASSERT_EQ(counters.records.size(), 2U);
  EXPECT_EQ(counters.records[0].range, 3U);
  EXPECT_EQ(counters.records[0].values[static_cast<std::size_t>(Counter::dram_bytes)], 8388608.0);
  EXPECT_EQ(counters.records[0].values[static_cast<std::size_t>(Counter::time_ns)], 3500.25);
  EXPECT_EQ(counters.records[1].values, CounterValues{});
}

// A program may have set a locale that puts dots between thousands.
TEST(RecordedData, ReadsBackAsItWasInEveryLocale) {
  struct Dots : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  RecordedData empty;
  empty.traces.resize(2);
  empty.counters.resize(3);
  for (const RecordedData& data : {read_recorded_file(kHandMade), read_recorded_file(kH100), empty, RecordedData{}}) {
    const std::string expected = to_json(data);
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Dots));
    const std::string dotted = to_json(data);
    const RecordedData read = recorded_from_json(expected);
    std::locale::global(before);
    EXPECT_EQ(dotted, expected);
    EXPECT_EQ(read, data);
  }
}

// Changes a part of the hand-made file.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = text_of(kHandMade);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(RecordedData, WhatIsNoDeviceDataIsRefusedInASentence) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "its outermost value is not an object"},
      {"{\"a\": 1}", "it lacks the key 'roofprof_device_data'"},
      {changed("\"kernel\", 0", "\"kernel\", 3"), "traces[0].records[0] has a name that is not in the trace's list"},
      {changed("1004500", "1000"), "traces[0].records[0] ends before it starts"},
      {changed(", \"unknown\", 0]", "]"), "'traces[0].records.rows[0]' is shorter than 'columns'"},
      {changed("1004500", "99999999999999999999"),
       "'traces[0].records.rows[0][9]' is 99999999999999999999, which is out of range"},
      {changed("4194304", "-4"), "traces[0].records[1] has a negative number of bytes"},
      {changed("\"kernel\", 0", "\"shader\", 0"), "'traces[0].records.rows[0][0]' cannot be 'shader'"},
      {changed("\"dropped\": 1", "\"dropped\": -1"), "traces[0] lost a negative number of records"},
      {changed("graph-launches", "nonesuch"), "traces[0] has a note with the code 'nonesuch', which no note has"},
      {changed("\"passes\": 2", "\"passes\": -1"), "counters[0] has a negative number of dropped ranges or passes"},
      {changed("{\"dram_bytes\"", "{\"dream_bytes\""),
       "'counters[0].records[0].values.dream_bytes' is unknown: there is no counter 'dream_bytes'"},
  };
  for (const auto& [text, problem] : cases) {
    const std::string message = refusal<RecordedDataError>([&text = text] { recorded_from_json(text); });
    EXPECT_TRUE(message.starts_with("the text is no recorded device data: ")) << message;
    EXPECT_TRUE(message.ends_with(problem)) << message;
  }
}

TEST(RecordedFuzz, DamagedFilesAreRefusedOrReadBackAsTheyAre) {
  int read = 0;
  int refused = 0;
  for (const std::string& valid : {text_of(kHandMade), to_json(read_recorded_file(kH100))}) {
    for (unsigned round = 0; round < 4'000; ++round) {
      testing::Damage damage(round, "\n");
      std::string text = valid;
      for (std::size_t times = 1 + damage.below(4); times > 0; --times) damage.apply(text);
      RecordedData data;
      const std::string message = refusal<RecordedDataError>([&] { data = recorded_from_json(text); });
      const bool was_read = message == "(nothing was thrown)";
      ++(was_read ? read : refused);
      if (was_read) {
        ASSERT_EQ(recorded_from_json(to_json(data)), data) << "round " << round;
      } else {
        ASSERT_TRUE(message.starts_with("the text is no recorded device data: ") && message.size() < 300U) << message;
      }
    }
  }
  // Both ways are walked: were all refused, or all read, there would be nothing in this test.
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 2'000);
}

// ---- replayed

// Returns a kernel under the number of the call.
class Scripted final : public DeviceCollector {
 public:
  void synchronize() override {}
  void start_tracing(Recorded) override { ++calls_; }
  LaunchMarker* marker() override { return nullptr; }
  DeviceTrace stop_tracing() override {
    DeviceTrace trace;
    trace.names = {"k"};
    trace.records.push_back({.launch = calls_, .start_ns = 10, .end_ns = 20});
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

class Replay : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  template <class Call>
  static void refuses(const Call& call, const std::string& words) {
    EXPECT_EQ(refusal<CollectorError>(call), words);
  }

  // Tests may run side by side, each in a process of its own.
  const std::string path_ = ::testing::TempDir() + "/roofprof_recorded_" + std::to_string(getpid()) + ".json";
};

TEST_F(Replay, WhatWasReturnedComesBack) {
  RecordedData returned;
  const auto recording = recording_collector(std::make_unique<Scripted>(), path_);
  for (int run = 0; run < 3; ++run) {
    recording->start_tracing();
    returned.traces.push_back(recording->stop_tracing());
  }
  returned.counters.push_back(recording->count({}, [](LaunchMarker*) {}));
  EXPECT_EQ(returned.traces[2].records[0].launch, 3U);
  EXPECT_EQ(read_recorded_file(path_), returned);

  const auto replaying = replaying_collector(path_);
  for (std::size_t run = 0; run < 7; ++run) {
    EXPECT_EQ(replaying->marker(), nullptr);
    replaying->start_tracing();
    replaying->marker()->push(1, LaunchLevel::op);
    replaying->marker()->pop(LaunchLevel::op);
    DeviceTrace trace = replaying->stop_tracing();
    ASSERT_FALSE(trace.notes.empty());
    EXPECT_EQ(trace.notes.back().text, "recorded data of " + path_ + ", replayed: no device ran");
    trace.notes.pop_back();
    EXPECT_EQ(trace, returned.traces[run % 3]);
  }
  int bodies = 0;
  EXPECT_EQ(replaying->count({}, [&](LaunchMarker*) { ++bodies; }).records, returned.counters[0].records);
  EXPECT_EQ(bodies, 2) << "as many times as there were passes";
}

TEST_F(Replay, AnH100sKernelsAreThoseOfTheDay) {
  setenv("ROOFPROF_REPLAY_DEVICE", kH100.c_str(), 1);
  const auto collector = make_collector("cuda:0");
  EXPECT_EQ(make_collector("cpu"), nullptr);
  unsetenv("ROOFPROF_REPLAY_DEVICE");
  collector->start_tracing();
  const DeviceTrace trace = collector->stop_tracing();
  const CounterTrace counters = collector->count({}, [](LaunchMarker*) {});
  ASSERT_EQ(trace.records.size(), 3U);
  ASSERT_EQ(counters.records.size(), 3U);
  EXPECT_EQ(counters.chip, "GH100");
  for (std::size_t i = 0; i < 3; ++i) {  // a = b + 3c, a = 2b, a = 1 on arrays of 2 GiB
    const double bytes = static_cast<double>(3 - i) * static_cast<double>(std::int64_t{2} << 30);
    const auto of = [&](Counter counter) { return *counters.records[i].values[static_cast<std::size_t>(counter)]; };
    EXPECT_NEAR(of(Counter::dram_bytes) / bytes, 1, 0.05);
    EXPECT_EQ(of(Counter::l1_bytes), bytes);
    const double rate = bytes / static_cast<double>(trace.records[i].end_ns - trace.records[i].start_ns);  // GB/s
    EXPECT_GT(rate, 0.8 * 3350);
    EXPECT_LT(rate, 3350);  // the published one
    EXPECT_TRUE(i == 0 || trace.records[i - 1].end_ns <= trace.records[i].start_ns);
    EXPECT_TRUE(trace.names.at(trace.records[i].name).starts_with("void at::native::vectorized_elementwise_kernel<4"));
  }
}

TEST_F(Replay, WhatIsNotThereIsReported) {
  refuses([&] { replaying_collector(path_); },
          "there is no device data to read: cannot read '" + path_ + "': No such file or directory");
  std::ofstream(path_) << "something else\n";
  refuses([&] { replaying_collector(path_); },
          path_ + " is no recorded device data: it is not JSON (line 1, column 1: a value is expected here)");
  write_recorded_file({}, path_);
  const auto empty = replaying_collector(path_);
  refuses([&] { empty->start_tracing(); }, "no kernel times were recorded in " + path_);
  refuses([&] { empty->count({}, [](LaunchMarker*) {}); }, "no counters were recorded in " + path_);
  const auto modules = replaying_collector(kHandMade);
  refuses([&] { modules->count({}, [](LaunchMarker*) {}); }, "no counters of kernels were recorded in " + kHandMade);
  refuses([&] { modules->stop_tracing(); }, "no recorded trace is being replayed: start one first");
  modules->start_tracing();
  refuses([&] { modules->start_tracing(); }, "a recorded trace is being replayed already: end it first");
  EXPECT_THROW(
      modules->count({.ranges = CounterRanges::modules}, [](LaunchMarker*) { throw std::domain_error("the user's"); }),
      std::domain_error);

  const std::string nowhere = ::testing::TempDir() + "/no/such/folder/data.json";
  EXPECT_THROW(write_recorded_file({}, nowhere), RecordedDataError);
  const auto recording = recording_collector(std::make_unique<Scripted>(), nowhere);
  recording->start_tracing();
  const DeviceTrace trace = recording->stop_tracing();
  EXPECT_EQ(trace.records.size(), 1U);
  EXPECT_NE(trace.notes.at(0).text.find("was not recorded: cannot write"), std::string::npos);
}

}  // namespace
}  // namespace roofprof
