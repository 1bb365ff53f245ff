#pragma once
// Reads hardware counters into the figures of a report: bytes at each level, executed FLOPs.

#include <array>
#include <optional>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// A sum is known where all its parts are: never a part shown as the whole.
struct Measured {
  std::optional<std::int64_t> dram_bytes = 0;
  std::optional<std::int64_t> dram_read_bytes = 0;
  std::optional<std::int64_t> dram_write_bytes = 0;
  std::optional<std::int64_t> l2_bytes = 0;
  std::optional<std::int64_t> l1_bytes = 0;
  std::optional<std::int64_t> executed_flops = 0;

  Measured& operator+=(const Measured& other);
};

// The figures of launches that were not counted.
inline constexpr Measured kNotMeasured{{}, {}, {}, {}, {}, {}};

// Knows which counters the hardware gave.
class CounterReader {
 public:
  explicit CounterReader(const std::vector<CounterSource>& sources);

  // Returns the figures of no launch at all: 0 where there are counters, unknown where there are none.
  Measured nothing() const;
  // Rounds each value to a whole number once, so that sums are exact.
  Measured read(const CounterValues& values) const;
  // Returns the figures of all launches of a kernel; unknown where some were not counted.
  Measured read(const KernelBucket& kernel) const;
  // Returns the operations that all launches of a kernel executed, by the type that they are held against; empty where
  // some launches were not counted.
  std::optional<std::array<double, kDTypeCount>> operations(const KernelBucket& kernel) const;

 private:
  bool gives(Counter counter) const { return given_[static_cast<std::size_t>(counter)]; }

  std::array<bool, kCounterCount> given_{};
  bool all_flops_ = false;     // of every kind of operation that the chip counts
  bool int_ops_lack_ = false;  // the chip counts integer operations of tensor cores, but they were not read
};

// Returns whether the counter counts FLOPs; that of tensor cores' integer operations does not.
constexpr bool counts_flops(Counter counter) {
  return counter >= Counter::fp16_flops && counter != Counter::tensor_int8_ops;
}

}  // namespace roofprof
