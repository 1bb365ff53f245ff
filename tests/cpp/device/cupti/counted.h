#pragma once
// Kernels of the simulated device whose counters are known, and counters read back by name.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "device/cupti/range_counting.h"
#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {

// A kernel that reads and writes these bytes of DRAM, asks twice as many of L2 and three times as many of L1, takes
// 1,000 ns, and does one operation for each byte that it reads.
inline void launch(double read, double write = 0, unsigned device = 0) {
  fake_launch(FakeLaunch{.device = device,
                         .duration_ns = 1000,
                         .dram_read_bytes = read,
                         .dram_write_bytes = write,
                         .l2_bytes = 2 * (read + write),
                         .l1_bytes = 3 * (read + write),
                         .flops = read});
}
inline void one_kernel(LaunchMarker* /*marker*/) { launch(5); }

inline std::optional<double> value(const CounterRecord& record, Counter counter) {
  return record.values[static_cast<std::size_t>(counter)];
}

// Why a counter is missing.
inline std::string missing(const CounterTrace& trace, Counter counter) {
  const auto found = std::ranges::find(trace.sources, counter, &CounterSource::counter);
  return found != trace.sources.end() ? found->missing : "(was not asked for)";
}

// DRAM bytes by module.
using Bytes = std::map<LaunchId, std::optional<double>>;
inline Bytes bytes(const CounterTrace& trace) {
  Bytes found;
  for (const CounterRecord& record : trace.records) found[record.range] = value(record, Counter::dram_bytes);
  return found;
}

inline std::string all_notes(const CounterTrace& trace) {
  std::string text;
  for (const Note& note : trace.notes) text += note.code + ": " + note.text + '\n';
  return text;
}

// Device 0 is current, as it is where torch has launched something; what was taken is given back afterwards.
class Counting : public WithFakes {
 protected:
  void SetUp() override {
    WithFakes::SetUp();
    context_.emplace(cuda::driver(), 0);
  }
  void TearDown() override {
    expect_nothing_left();
    EXPECT_EQ(fake_live("disabled_while_counting"), disabled_while_counting_);
    context_.reset();
    EXPECT_EQ(fake_live("primary_context"), 0);
    WithFakes::TearDown();
  }
  static void expect_nothing_left() {
    for (const char* what : {"host_object", "range_profiler", "profiler"}) EXPECT_EQ(fake_live(what), 0) << what;
  }
  static std::string count_message() {
    return message_of<CollectorError>([] { count_ranges({}, one_kernel); });
  }

  std::optional<cuda::PrimaryContext> context_;
  int disabled_while_counting_ = 0;
};

}  // namespace roofprof::cupti
