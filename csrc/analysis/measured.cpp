#include "analysis/measured.h"

#include <algorithm>

#include "core/counted_bytes.h"

namespace roofprof {

namespace {

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& part) {
  sum = sum && part ? std::optional(saturating_add(*sum, *part)) : std::nullopt;
}

std::optional<double> sum_of(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace

Measured& Measured::operator+=(const Measured& other) {
  add(dram_bytes, other.dram_bytes);
  add(dram_read_bytes, other.dram_read_bytes);
  add(dram_write_bytes, other.dram_write_bytes);
  add(l2_bytes, other.l2_bytes);
  add(l1_bytes, other.l1_bytes);
  add(executed_flops, other.executed_flops);
  return *this;
}

CounterReader::CounterReader(const std::vector<CounterSource>& sources) {
  bool some_missing = false;
  for (const auto& source : sources) {
    const bool given = source.missing.empty();
    given_[static_cast<std::size_t>(source.counter)] = given;
    if (source.counter == Counter::tensor_int8_ops) int_ops_lack_ = !given && !source.metrics.empty();
    if (!counts_flops(source.counter)) continue;
    all_flops_ = all_flops_ || given;
    // A chip that has no such counter has no such operation.
    some_missing = some_missing || (!given && !source.metrics.empty());
  }
  all_flops_ = all_flops_ && !some_missing;
}

Measured CounterReader::nothing() const {
  const auto zero_if = [](bool given) { return given ? std::optional<std::int64_t>(0) : std::nullopt; };
  const bool dram = gives(Counter::dram_bytes) || (gives(Counter::dram_read_bytes) && gives(Counter::dram_write_bytes));
  return {.dram_bytes = zero_if(dram),
          .dram_read_bytes = zero_if(gives(Counter::dram_read_bytes)),
          .dram_write_bytes = zero_if(gives(Counter::dram_write_bytes)),
          .l2_bytes = zero_if(gives(Counter::l2_bytes)),
          .l1_bytes = zero_if(gives(Counter::l1_bytes)),
          .executed_flops = zero_if(all_flops_)};
}

Measured CounterReader::read(const CounterValues& values) const {
  const auto value = [&](Counter counter) { return values[static_cast<std::size_t>(counter)]; };
  Measured measured = nothing();
  if (measured.dram_bytes) {
    measured.dram_bytes =
        rounded(gives(Counter::dram_bytes) ? value(Counter::dram_bytes)
                                           : sum_of(value(Counter::dram_read_bytes), value(Counter::dram_write_bytes)));
  }
  if (measured.dram_read_bytes) measured.dram_read_bytes = rounded(value(Counter::dram_read_bytes));
  if (measured.dram_write_bytes) measured.dram_write_bytes = rounded(value(Counter::dram_write_bytes));
  if (measured.l2_bytes) measured.l2_bytes = rounded(value(Counter::l2_bytes));
  if (measured.l1_bytes) measured.l1_bytes = rounded(value(Counter::l1_bytes));
  if (measured.executed_flops) {
    std::optional<double> flops = 0;
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      if (given_[i] && counts_flops(static_cast<Counter>(i))) flops = sum_of(flops, values[i]);
    }
    measured.executed_flops = rounded(flops);
  }
  return measured;
}

namespace {

// Returns the type whose peak holds what the counter counts; other: it does not count operations.
DType dtype_of(Counter counter) {
  switch (counter) {
    case Counter::fp16_flops:
    case Counter::tensor_fp16_flops:
      return DType::fp16;
    case Counter::fp32_flops:
      return DType::fp32;
    case Counter::fp64_flops:
    case Counter::tensor_fp64_flops:
      return DType::fp64;
    case Counter::tensor_bf16_flops:
      return DType::bf16;
    case Counter::tensor_tf32_flops:
      return DType::tf32;
    case Counter::tensor_fp8_flops:
      return DType::fp8;
    case Counter::tensor_fp4_flops:
      return DType::fp4;
    case Counter::tensor_int8_ops:
      return DType::int8;
    default:
      return DType::other;
  }
}

}  // namespace

std::optional<std::array<double, kDTypeCount>> CounterReader::operations(const KernelBucket& kernel) const {
  if (!read(kernel).executed_flops || kernel.kind != KernelKind::kernel || int_ops_lack_) return std::nullopt;
  std::array<double, kDTypeCount> operations{};
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto dtype = dtype_of(static_cast<Counter>(i));
    if (!given_[i] || dtype == DType::other) continue;
    if (!kernel.counters[i]) return std::nullopt;
    operations[static_cast<std::size_t>(dtype)] += *kernel.counters[i];
  }
  return operations;
}

Measured CounterReader::read(const KernelBucket& kernel) const {
  if (kernel.kind != KernelKind::kernel) return nothing();
  return kernel.counted == kernel.instances ? read(kernel.counters) : kNotMeasured;
}

}  // namespace roofprof
