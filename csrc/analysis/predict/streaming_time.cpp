#include "analysis/predict/streaming_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace roofprof {

namespace {

constexpr double kInstructionsPerClock = 128;  // thread instructions that a multiprocessor starts

// The work of a kernel on the rows of a norm or a softmax, each row in a block of threads.
struct RowKernel {
  double instructions = 0;  // of threads, of all rows
  double rereads = 0;       // how many times more it reads each row
  double threads = 0;       // of a block
};

// torch's layer norm: four warps go through a row in steps of 512 elements, once for its mean and variance and once for
// the result.
RowKernel norm_kernel(const OpFeatures& op, const StreamingParameters& numbers) {
  constexpr double kThreads = 128;
  constexpr double kElements = 4 * kThreads;
  const double steps = std::ceil(op.width / kElements);
  return {op.rows * steps * kElements * numbers.norm_instructions, 1, kThreads};
}

// torch's softmax: up to 1024 elements a warp keeps a row, filled up to a power of two, in registers. A block goes
// through longer rows three times: in whole steps of 16 bytes a thread, and what is left in steps of one element, each
// of which takes as long as four.
RowKernel softmax_kernel(const OpFeatures& op, const StreamingParameters& numbers) {
  constexpr double kShort = 1024;
  constexpr double kMostThreads = 512;
  constexpr double kStepBytes = 16;
  constexpr double kLeastThreads = 32;
  if (op.width <= kShort) {
    const auto filled = static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(op.width)));
    return {op.rows * filled * numbers.short_softmax_instructions, 0, kLeastThreads};
  }
  const double vector = op.element_bytes > 0 ? kStepBytes / op.element_bytes : 4;
  const auto half = static_cast<std::uint64_t>(std::ceil(op.width / vector / 2));
  const double threads = std::clamp(static_cast<double>(std::bit_ceil(half)), kLeastThreads, kMostThreads);
  const double steps = std::floor(op.width / (threads * vector));
  const double left = std::ceil((op.width - steps * threads * vector) / threads);
  return {op.rows * threads * (steps * vector + left * 4) * numbers.long_softmax_instructions, 2, threads};
}

double instruction_seconds(double instructions, const TargetDevice& device) {
  return instructions / (kInstructionsPerClock * device.cycles);
}

// Returns the share of a row that is no longer in the caches when its block reads it again. All rows that are at work
// at the same time share them.
double missed_again(const OpFeatures& op, const RowKernel& kernel, const TargetDevice& device) {
  if (device.multiprocessors <= 0) return 0;
  const auto& architecture = architecture_of(device);
  const double rows = std::min(op.rows, device.multiprocessors * architecture.threads / kernel.threads);
  const double caches = device.multiprocessors * architecture.l1_bytes + device.cache_bytes / architecture.l2_parts;
  return miss_share(rows * op.read_bytes / op.rows, device.gpu->streaming.row_share * caches);
}

double row_seconds(const OpFeatures& op, double share, const TargetDevice& device) {
  const auto& numbers = device.gpu->streaming;
  const auto kernel = op.op == OpClass::softmax ? softmax_kernel(op, numbers) : norm_kernel(op, numbers);
  double memory = traffic_seconds(op.read_bytes, op.write_bytes, share, device);
  if (kernel.rereads > 0) {
    memory += op.read_bytes * kernel.rereads * missed_again(op, kernel, device) / dram_bandwidth(share, device);
  }
  if (op.after_permutation) memory *= numbers.permuted;
  return together(instruction_seconds(kernel.instructions, device), memory, device.gpu->overlap);
}

}  // namespace

double streaming_seconds(const OpFeatures& op, const TargetDevice& device) {
  const auto& of_class = device.of_class(op.op);
  // The kernel of a compiled chain reads the rows of the ops in it.
  if (op.width > 0 && !op.in_chain) return row_seconds(op, of_class.of_bandwidth, device);
  double compute = 0;
  if (of_class.of_peak <= 0) {
    if (op.fused) compute = seconds_at_peaks(op, device);  // nothing else may be left of a fused op
  } else if (op.macs > 0) {
    compute = seconds_at_peaks(op, device) / of_class.of_peak;
  }
  const auto& numbers = device.gpu->streaming;
  if (op.indexed_elements > 0 && !op.in_chain) {
    const bool joins = op.op == OpClass::concatenation;
    const double each = joins ? numbers.concatenation_instructions : numbers.index_instructions;
    compute = std::max(compute, instruction_seconds(op.indexed_elements * each, device));
  }
  double memory = traffic_seconds(op.read_bytes, op.write_bytes, of_class.of_bandwidth, device);
  // Other norms have one kernel for the statistics and one for the result.
  if (op.op == OpClass::row_norm && !op.in_chain)
    memory += traffic_seconds(op.read_bytes, 0, of_class.of_bandwidth, device);
  if (op.after_permutation) memory *= numbers.permuted;
  double seconds = together(compute, memory, device.gpu->overlap);
  if (op.op == OpClass::interpolation && !op.after_permutation) seconds += op.planes * numbers.plane_seconds;
  return seconds;
}

double ordering_seconds(double bytes, double elements, const TargetDevice& device) {
  const double instructions = elements * device.gpu->streaming.index_instructions;
  return together(instruction_seconds(instructions, device),
                  traffic_seconds(bytes, bytes, device.of_class(OpClass::copy).of_bandwidth, device),
                  device.gpu->overlap);
}

double cast_seconds(double bytes, const TargetDevice& device) {
  return traffic_seconds(bytes * 2 / 3, bytes / 3, device.of_class(OpClass::elementwise).of_bandwidth, device);
}

}  // namespace roofprof
