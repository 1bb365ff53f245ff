#include "analysis/predict/op_time.h"

#include <algorithm>
#include <cmath>

#include "analysis/predict/attention_time.h"
#include "analysis/predict/convolution_time.h"
#include "analysis/predict/cpu_time.h"
#include "analysis/predict/product_time.h"
#include "analysis/predict/streaming_time.h"
#include "analysis/predict/vector_product_time.h"

namespace roofprof {

namespace {

double seconds_of_class(const OpFeatures& op, const TargetDevice& device) {
  switch (op.op) {
    case OpClass::linear:
    case OpClass::batched_matmul:
      return is_vector_product(op) ? vector_product_seconds(op, device) : product_seconds(op, device);
    case OpClass::attention:
    case OpClass::unfused_attention:
      return attention_seconds(op, device);
    default:
      return is_convolution(op.op) ? convolution_seconds(op, device) : streaming_seconds(op, device);
  }
}

// Returns the seconds of copies that torch makes before the op.
double copies_before(const OpFeatures& op, const TargetDevice& device) {
  double seconds = 0;
  // An operand that a view has permuted is copied into order before it is multiplied. If both are activations, both
  // come from such views.
  if (op.after_permutation && op.op == OpClass::linear) {
    seconds += ordering_seconds(op.element_bytes * op.input_elements, op.input_elements, device);
  }
  if (op.after_permutation && op.op == OpClass::batched_matmul) {
    seconds += ordering_seconds(op.read_bytes, op.read_bytes / std::max(op.element_bytes, 1.0), device);
  }
  return seconds + cast_seconds(op.cast_bytes, device);
}

Margins usual_margins(const OpFeatures& op, const TargetDevice& device) {
  if (device.is_gpu && is_product(op.op) && is_vector_product(op)) return vector_product_margins(op, device);
  const auto& of_class = device.of_class(op.op);
  return {.low = of_class.low, .high = of_class.high};
}

double least_memory_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double bytes = op.read_bytes + op.write_bytes;
  if (op.link_bytes > 0) {
    const auto* link = device.ceilings->memory_level(kHostLink);
    return link != nullptr && link->bytes_per_second > 0 ? op.link_bytes / link->bytes_per_second : 0;
  }
  if (bytes <= 0) return 0;
  if (device.is_gpu) {
    const double missed = missed_share(op, device);
    const double cache = device.cache_roof * device.bandwidth_factor;
    return bytes * (missed / device.dram_roof + (cache > 0 ? (1 - missed) / cache : 0));
  }
  const double updated = std::min({op.updated_bytes, op.read_bytes, op.write_bytes});
  const auto roof =
      device.ceilings->memory_roof({std::llround(op.read_bytes), std::llround(op.write_bytes), std::llround(updated)});
  return roof ? bytes / (roof->bytes_per_second * device.bandwidth_factor) : 0;
}

}  // namespace

double kernel_seconds(const OpFeatures& op, const TargetDevice& device) {
  if (op.is_free || !op.is_known) return 0;
  const double seconds = device.is_gpu
                             ? seconds_of_class(op, device) + copies_before(op, device) + floor_seconds(op, device)
                             : cpu_seconds(op, device);
  return std::max(seconds, least_seconds(op, device));
}

double least_seconds(const OpFeatures& op, const TargetDevice& device) {
  if (op.is_free || !op.is_known) return 0;
  double compute = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto* roof = op.operations[i] > 0 ? device.ceilings->compute_for(static_cast<DType>(i)) : nullptr;
    if (roof != nullptr)
      compute += executed_share(op) * op.operations[i] / (roof->operations_per_second * device.peak_factor);
  }
  return std::max(compute, least_memory_seconds(op, device));
}

double missed_share(const OpFeatures& op, const TargetDevice& device) {
  if (is_product(op.op) && !is_vector_product(op)) return product_misses(op, device);
  const bool attends = op.op == OpClass::attention || op.op == OpClass::unfused_attention;
  return attends ? attention_misses(op, device) : streaming_misses(op.read_bytes + op.write_bytes, device);
}

double executed_share(const OpFeatures& op) { return op.op == OpClass::attention ? std::min(op.visible, 1.0) : 1; }

Margins margins_of(const OpFeatures& op, double kernel, const TargetDevice& device) {
  Margins margins = usual_margins(op, device);
  if (kernel > 0) margins.low = std::clamp(least_seconds(op, device) / kernel, margins.low, 1.0);
  return margins;
}

double floor_seconds(const OpFeatures& op, const TargetDevice& device) {
  if (op.is_free || !op.is_known || op.fused) return 0;
  if (!device.is_gpu) return cpu_floor(op, device);
  if (op.op == OpClass::attention) return attention_floor(op, device);
  if (is_product(op.op)) return product_floor(device);
  return is_convolution(op.op) ? device.gpu->convolution.floor : device.gpu->kernel_floor;
}

bool is_compute_bound(const OpFeatures& op, const TargetDevice& device) {
  if (op.is_free || !op.is_known) return false;
  const double bytes = op.read_bytes + op.write_bytes;
  return seconds_at_peaks(op, device) > (device.is_gpu ? bytes / device.dram : cpu_memory_seconds(op, device));
}

}  // namespace roofprof
