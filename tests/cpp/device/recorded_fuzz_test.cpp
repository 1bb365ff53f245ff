// Device data that was damaged: each file is refused by a sentence, or is data that is fit for use.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "device/recorded_samples.h"
#include "support/damage.h"

namespace roofprof {
namespace {

void expect_consistent(const RecordedData& data) {
  for (const DeviceTrace& trace : data.traces) {
    EXPECT_TRUE(trace.end_ns == 0 || trace.start_ns <= trace.end_ns);
    EXPECT_GE(std::min({trace.dropped, trace.incomplete, trace.foreign}), 0);
    for (const KernelRecord& record : trace.records) {
      EXPECT_LT(record.name, trace.names.size());
      EXPECT_LE(record.start_ns, record.end_ns);
      EXPECT_GE(record.bytes, 0);
      EXPECT_LT(static_cast<std::size_t>(record.kind), kKernelKindNames.size());
      EXPECT_LT(static_cast<std::size_t>(record.from), kMemoryNames.size());
      EXPECT_LT(static_cast<std::size_t>(record.to), kMemoryNames.size());
    }
  }
  for (const CounterTrace& trace : data.counters) {
    EXPECT_GE(std::min(trace.dropped, trace.passes), 0);
    EXPECT_LT(static_cast<std::size_t>(trace.ranges), 2U);
    for (const CounterSource& source : trace.sources)
      EXPECT_LT(static_cast<std::size_t>(source.counter), kCounterCount);
    for (const CounterRecord& record : trace.records) {
      for (const auto& value : record.values) EXPECT_TRUE(!value || std::isfinite(*value));
    }
  }
}

// True where it was read.
bool read_or_refused(const std::string& text) {
  try {
    const RecordedData data = recorded_from_json(text);
    expect_consistent(data);
    EXPECT_EQ(recorded_from_json(to_json(data)), data);
    return true;
  } catch (const RecordedDataError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("the text is no recorded device data: ")) << message;
    EXPECT_LT(message.size(), 300U) << message;
    EXPECT_TRUE(std::ranges::all_of(message, [](unsigned char c) { return c >= 0x20 && c < 0x7f; })) << message;
    return false;
  }
}

std::vector<std::string> valid_files() {
  std::ifstream file(std::string(ROOFPROF_TEST_DATA) + "/data/device/hand_made.json");
  std::ostringstream hand_made;
  hand_made << file.rdbuf();
  return {to_json(sample_data()), hand_made.str(), to_json({})};
}

TEST(RecordedFuzz, DamagedFilesAreRefusedOrFitForUse) {
  constexpr unsigned kRounds = 4'000;
  int read = 0;
  int refused = 0;
  for (const std::string& valid : valid_files()) {
    ASSERT_TRUE(read_or_refused(valid)) << valid;
    for (unsigned round = 0; round < kRounds; ++round) {
      testing::Damage damage(round, "\n");
      std::string text = valid;
      for (std::size_t times = 1 + damage.below(4); times > 0; --times) damage.apply(text);
      ++(read_or_refused(text) ? read : refused);
      if (HasFailure()) FAIL() << "round " << round << " of:\n" << text;
    }
  }
  // Both ways are walked: were all refused, or all read, there would be nothing in this test.
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 3'000);
}

TEST(RecordedFuzz, NoFileThatWasCutOffIsRead) {
  for (const std::string& valid : valid_files()) {
    // But for the last line's end, every byte is needed.
    for (std::size_t bytes = 0; bytes + 1 < valid.size(); ++bytes) {
      ASSERT_FALSE(read_or_refused(valid.substr(0, bytes))) << bytes;
    }
  }
}

}  // namespace
}  // namespace roofprof
