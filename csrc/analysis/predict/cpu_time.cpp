#include "analysis/predict/cpu_time.h"

#include <algorithm>
#include <cmath>

namespace roofprof {

namespace {

double cpu_share_of_sizes(const OpFeatures& op, const TargetDevice& device) {
  if (op.depth <= 0 || op.width <= 0 || op.rows <= 0) return 1;
  const auto& half = is_convolution(op.op) ? device.cpu->convolution : device.cpu->product;
  const double share = op.depth / (op.depth + half.depth) * op.width / (op.width + half.width);
  return std::lerp(share, 1.0, share_of_vectors(op));
}

double compute_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double of_peak = device.of_class(op.op).of_peak;
  if (of_peak <= 0) return op.fused ? seconds_at_peaks(op, device) : 0;  // nothing else may be left of a fused op
  if (op.op == OpClass::conv_depthwise) return operations_of(op) / (vector_peak(device) * of_peak);
  if (!is_contraction(op.op) && op.macs <= 0) return 0;
  return seconds_at_peaks(op, device) / (of_peak * cpu_share_of_sizes(op, device));
}

double cached(double bytes, const TargetDevice& device) {
  return bytes <= 0 ? 0 : bytes * bytes / (bytes + device.cpu->cache_share * device.cache_bytes);
}

// Returns the seconds of that traffic at a share of the measured bandwidth, or of main memory's.
double traffic(double read, double write, double updated, double share, const TargetDevice& device) {
  const auto& curve = device.ceilings->curve;
  if (curve.empty()) {
    return (cached(read, device) + cached(write, device)) / dram_bandwidth(share, device);
  }
  const MemoryTraffic traffic{std::llround(read), std::llround(write), std::llround(std::min({updated, read, write}))};
  return (read + write) / (curve.bytes_per_second(traffic) * device.bandwidth_factor * std::min(share, 1.0));
}

// A product's operand that a view has permuted is copied into order before it is multiplied.
double cpu_copies(const OpFeatures& op, const TargetDevice& device) {
  if (!op.after_permutation) return 0;
  const double bytes = op.op == OpClass::linear           ? op.element_bytes * op.input_elements
                       : op.op == OpClass::batched_matmul ? op.read_bytes
                                                          : 0;
  return bytes <= 0 ? 0 : traffic(bytes, bytes, op.updated_bytes, device.of_class(OpClass::copy).of_bandwidth, device);
}

}  // namespace

double cpu_memory_seconds(const OpFeatures& op, const TargetDevice& device) {
  return traffic(op.read_bytes, op.write_bytes, op.updated_bytes, 1, device);
}

double cpu_floor(const OpFeatures& op, const TargetDevice& device) {
  return is_convolution(op.op) ? device.cpu->convolution_floor : device.cpu->op_floor;
}

double cpu_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double share = std::lerp(device.of_class(op.op).of_bandwidth,
                                 device.of_class(OpClass::elementwise).of_bandwidth, share_of_vectors(op));
  const double memory = traffic(op.read_bytes, op.write_bytes, op.updated_bytes, share, device);
  return together(compute_seconds(op, device), memory, device.cpu->overlap) + cpu_copies(op, device) +
         (op.fused ? 0 : cpu_floor(op, device));
}

}  // namespace roofprof
