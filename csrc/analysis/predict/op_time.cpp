#include "analysis/predict/op_time.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/phrases.h"

namespace roofprof {

namespace {

// Of a kernel's output, as large ones of matrix products are computed by one multiprocessor each.
constexpr double kTile = 64;
// Of a 3 x 3 kernel, which the exponent of depthwise convolutions is about.
constexpr double kUsualArea = 9;
constexpr double kAlignment = 8;
// Products of so few rows or columns are bound by reading the matrix, and kernels for vectors read it well; from twice
// as many on kernels are the usual ones.
constexpr double kVectorSize = 16;

class CallTime {
 public:
  CallTime(const OpFeatures& features, const TargetDevice& device)
      : op_(features), device_(device), kind_(*device.parameters), class_(parameters_of(kind_, features.op)) {}

  double seconds() const {
    double seconds = 0;
    if (op_.op == OpClass::unfused_attention && kind_.bytes_per_score > 0) {
      seconds = unfused_attention();
    } else {
      const bool reads_permuted = op_.after_permutation && op_.op > OpClass::conv_depthwise;
      const double slower = reads_permuted ? kind_.permuted : 1;
      seconds = together(compute(), memory(op_.read_bytes, op_.write_bytes, bandwidth_share()) * slower);
    }
    if (op_.op == OpClass::interpolation && !op_.after_permutation) seconds += op_.planes * kind_.plane_seconds;
    // What a view has permuted is put in order before it is multiplied; of two activations both come from such views.
    if (op_.after_permutation && op_.op == OpClass::linear) seconds += copy(op_.element_bytes * op_.input_elements);
    if (op_.after_permutation && op_.op == OpClass::batched_matmul) seconds += copy(op_.read_bytes);
    seconds += copy(op_.cast_bytes / 3, 2);
    return seconds + floor();
  }

  double floor() const {
    if (op_.fused) return 0;
    return is_convolution(op_.op) ? kind_.convolution_floor : kind_.op_floor;
  }

  bool compute_bound() const {
    const double bytes = op_.read_bytes + op_.write_bytes;
    return at_peaks() > (device_.is_gpu ? bytes / device_.dram : memory(op_.read_bytes, op_.write_bytes, 1));
  }

 private:
  double together(double compute, double memory) const {
    const auto [shorter, longer] = std::minmax(compute, memory);
    return longer <= 0 ? 0 : longer * std::pow(1 + std::pow(shorter / longer, kind_.overlap), 1 / kind_.overlap);
  }

  double misses(double bytes) const {
    const double cache = kind_.cache_share * device_.cache_bytes;
    return bytes <= 0 ? 0 : bytes / (bytes + cache);
  }

  // 1: a product of few rows or columns; 0: of many.
  double is_of_vectors() const {
    const bool product = op_.op == OpClass::linear || op_.op == OpClass::batched_matmul;
    if (!product || op_.rows <= 0 || op_.width <= 0) return 0;
    return std::clamp(2 - std::min(op_.rows, op_.width) / kVectorSize, 0.0, 1.0);
  }

  double bandwidth_share() const {
    return std::lerp(class_.of_bandwidth, parameters_of(kind_, OpClass::elementwise).of_bandwidth, is_of_vectors());
  }

  // At that share of the best bandwidth for such traffic, and never above the roof itself.
  double memory(double read, double write, double share) const {
    if (!device_.is_gpu && !device_.ceilings->curve.empty()) {
      const MemoryTraffic traffic{std::llround(read), std::llround(write),
                                  std::llround(std::min({op_.updated_bytes, read, write}))};
      const double roof = device_.ceilings->curve.bytes_per_second(traffic) * device_.bandwidth_factor;
      return (read + write) / (roof * std::min(share, 1.0));
    }
    return (read * misses(read) + write * misses(write)) / std::min(device_.dram * share, device_.dram_roof);
  }

  double copy(double bytes, double wider = 1) const {
    if (bytes <= 0) return 0;
    const OpClass as = wider > 1 ? OpClass::elementwise : OpClass::copy;
    return memory(bytes * wider, bytes, parameters_of(kind_, as).of_bandwidth);
  }

  // The share of the class's best that these sizes leave.
  double utilization() const {
    if (op_.depth <= 0 || op_.width <= 0 || op_.rows <= 0) return 1;
    const HalfSizes& half = is_convolution(op_.op) ? kind_.convolution : kind_.product;
    double share = op_.depth / (op_.depth + half.depth) * op_.width / (op_.width + half.width);
    const bool unaligned = std::fmod(op_.depth, kAlignment) != 0 || std::fmod(op_.width, kAlignment) != 0;
    if (unaligned && op_.op != OpClass::conv_stem) share *= kind_.unaligned;
    if (device_.multiprocessors > 0) {
      const double tiles = std::ceil(op_.rows / kTile) * std::ceil(op_.width / kTile) * std::max(op_.batch, 1.0);
      const double waves = tiles / device_.multiprocessors;
      share *= waves / std::ceil(waves);
    }
    return std::lerp(share, 1.0, is_of_vectors());
  }

  // Of the operations in each type at its own peak.
  double at_peaks() const {
    double seconds = 0;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (op_.operations[i] <= 0 || (op_.macs <= 0 && !is_floating(dtype))) continue;
      const auto peak = peak_for(device_, dtype);
      if (!peak && op_.macs <= 0) continue;  // bytes bound such ops
      if (!peak) {
        throw std::invalid_argument("the roofs of '" + shown(device_.ceilings->device) + "' have no peak for " +
                                    std::string(name_of(dtype)) + ", in which the model computes");
      }
      seconds += op_.operations[i] / *peak;
    }
    return seconds;
  }

  double compute() const {
    if (class_.of_peak <= 0) return op_.fused ? at_peaks() : 0;  // nothing else may be left of a fused op
    if (op_.op == OpClass::conv_depthwise) {
      double operations = 0;
      for (const double count : op_.operations) operations += count;
      const double area = op_.kernel_area > 0 ? op_.kernel_area : kUsualArea;
      return operations / (vector_peak() * class_.of_peak) * std::pow(area / kUsualArea, kind_.depthwise_exponent);
    }
    if (!is_contraction(op_.op) && op_.macs <= 0) return 0;
    return at_peaks() / (peak_share() * utilization());
  }

  // Tensor cores are clocked above what is published on some cards; other units reach no more than their peak.
  double peak_share() const {
    const auto most = std::ranges::max_element(op_.operations) - op_.operations.begin();
    const auto dtype = static_cast<DType>(most);
    const bool vector_units = dtype == DType::fp32 || dtype == DType::fp64;
    return vector_units ? std::min(class_.of_peak, 1.0) : class_.of_peak;
  }

  double vector_peak() const {
    return device_.vector_peak > 0 ? device_.vector_peak : *std::ranges::max_element(device_.peak);
  }

  double unfused_attention() const {
    const double scores = op_.batch * op_.rows * op_.width;
    constexpr double kFp32 = 4;
    const double wider = op_.element_bytes > 0 ? kFp32 / op_.element_bytes : 1;
    const double in_fp32 = wider * (op_.read_bytes + op_.write_bytes);
    double operations = 0;
    for (const double count : op_.operations) operations += count;
    return (scores * kind_.bytes_per_score + 2 * in_fp32) / device_.dram +
           operations / (vector_peak() * class_.of_peak);
  }

  const OpFeatures& op_;
  const TargetDevice& device_;
  const KindParameters& kind_;
  const ClassParameters& class_;
};

}  // namespace

double call_seconds(const OpFeatures& features, const TargetDevice& device) {
  if (features.is_free || !features.is_known) return 0;
  return CallTime(features, device).seconds();
}

double floor_seconds(const OpFeatures& features, const TargetDevice& device) {
  return features.is_free || !features.is_known ? 0 : CallTime(features, device).floor();
}

bool is_compute_bound(const OpFeatures& features, const TargetDevice& device) {
  return !features.is_free && features.is_known && CallTime(features, device).compute_bound();
}

}  // namespace roofprof
