#pragma once
// The work of one op or of a sum of ops: multiply-accumulates, operations by dtype, compulsory bytes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "roofprof/dtype.h"

namespace roofprof {

// Counts saturate at the largest int64 instead of wrapping; Report notes where that happened.
constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

[[nodiscard]] constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

[[nodiscard]] constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kSaturated : product;
}

struct Work {
  // Multiply-accumulates of contractions, dense, of every dtype.
  std::int64_t macs = 0;
  // The same with causal attention counted exactly; equal to macs everywhere else.
  std::int64_t causal_macs = 0;
  // Operations by compute dtype: 2 x MACs + the rest. Floating dtypes are FLOPs, the others integer operations.
  std::array<std::int64_t, kDTypeCount> operations{};
  // Compulsory traffic: every distinct input once, every output once.
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  // The part of both that is written where it was read (x += 1), so that memory holds it once.
  std::int64_t updated_bytes = 0;
  // Elements of the first tensor argument and of the first result. Conventions of other tools count by them.
  std::int64_t input_elements = 0;
  std::int64_t output_elements = 0;
  // True if the counts are lower limits: a part of the work is not known.
  bool lower_limit = false;

  constexpr std::int64_t& operations_in(DType dtype) { return operations[static_cast<std::size_t>(dtype)]; }
  [[nodiscard]] constexpr std::int64_t operations_in(DType dtype) const {
    return operations[static_cast<std::size_t>(dtype)];
  }
  [[nodiscard]] constexpr std::int64_t bytes() const { return saturating_add(read_bytes, write_bytes); }
  [[nodiscard]] constexpr std::int64_t flops() const { return sum_where(true); }
  [[nodiscard]] constexpr std::int64_t int_ops() const { return sum_where(false); }

  [[nodiscard]] constexpr bool has_negative_count() const {
    const auto is_negative = [](std::int64_t count) { return count < 0; };
    return std::ranges::any_of(std::array{macs, causal_macs, read_bytes, write_bytes, updated_bytes}, is_negative) ||
           std::ranges::any_of(operations, is_negative);
  }

  // Adds multiply-accumulates in that dtype, with the two operations of each.
  constexpr void add_macs(std::int64_t count, DType dtype) {
    macs = saturating_add(macs, count);
    causal_macs = saturating_add(causal_macs, count);
    operations_in(dtype) = saturating_add(operations_in(dtype), saturating_multiply(2, count));
  }

  constexpr Work& operator+=(const Work& other) {
    macs = saturating_add(macs, other.macs);
    causal_macs = saturating_add(causal_macs, other.causal_macs);
    for (std::size_t i = 0; i < kDTypeCount; ++i) operations[i] = saturating_add(operations[i], other.operations[i]);
    read_bytes = saturating_add(read_bytes, other.read_bytes);
    write_bytes = saturating_add(write_bytes, other.write_bytes);
    updated_bytes = saturating_add(updated_bytes, other.updated_bytes);
    input_elements = saturating_add(input_elements, other.input_elements);
    output_elements = saturating_add(output_elements, other.output_elements);
    lower_limit = lower_limit || other.lower_limit;
    return *this;
  }

  // Returns this work done `times` times over.
  [[nodiscard]] constexpr Work times(std::int64_t times) const {
    Work result = *this;
    result.macs = saturating_multiply(macs, times);
    result.causal_macs = saturating_multiply(causal_macs, times);
    for (auto& count : result.operations) count = saturating_multiply(count, times);
    result.read_bytes = saturating_multiply(read_bytes, times);
    result.write_bytes = saturating_multiply(write_bytes, times);
    result.updated_bytes = saturating_multiply(updated_bytes, times);
    result.input_elements = saturating_multiply(input_elements, times);
    result.output_elements = saturating_multiply(output_elements, times);
    return result;
  }

  constexpr bool operator==(const Work&) const = default;

 private:
  constexpr std::int64_t sum_where(bool floating) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      if (is_floating(static_cast<DType>(i)) == floating) sum = saturating_add(sum, operations[i]);
    }
    return sum;
  }
};

}  // namespace roofprof
