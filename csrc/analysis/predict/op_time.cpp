#include "analysis/predict/op_time.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/phrases.h"

namespace roofprof {

namespace {

// Dynamic power goes with clock x voltage^2, and near the limit voltage rises with the clock: power ~ clock^2.5.
constexpr double kPowerExponent = 2.5;
constexpr double kPicojoule = 1e-12;

bool is_narrow(DType dtype) {
  return dtype == DType::fp16 || dtype == DType::bf16 || dtype == DType::fp8 || dtype == DType::fp4;
}

const AchievedShare* share_of(const Ceilings& ceilings, const PredictionParameters& parameters) {
  const auto found =
      std::ranges::find(parameters.achieved, ceilings.facts.compute_capability, &AchievedShare::compute_capability);
  return found == parameters.achieved.end() ? nullptr : &*found;
}

bool is_published(const Provenance& provenance) { return provenance.source == "published"; }

// The share of the published clock that the power limit leaves while tensor cores work: twice the rate takes twice the
// energy, but fp8 and fp4 take a half and a quarter of fp16's for each operation.
double clock_share(const AchievedShare& share, const Ceilings& ceilings) {
  const auto* fp16 = ceilings.compute_for(DType::fp16);
  if (fp16 == nullptr || share.picojoules_per_flop <= 0 || ceilings.facts.tdp_watts <= 0) return 1;
  const double full = share.picojoules_per_flop * kPicojoule * fp16->operations_per_second;
  return std::min(1.0, std::pow(ceilings.facts.tdp_watts / full, 1 / kPowerExponent));
}

const MemoryCeiling* main_memory(const Ceilings& ceilings) {
  if (const auto* dram = ceilings.memory_level("DRAM")) return dram;
  const MemoryCeiling* largest = nullptr;
  for (const auto& level : ceilings.memory) {
    if (level.level != kHostLink) largest = &level;
  }
  return largest;
}

// The largest level below main memory.
double cache_bytes(const Ceilings& ceilings) {
  auto bytes = ceilings.facts.l2_bytes;
  for (const auto& level : ceilings.memory) bytes = std::max(bytes, level.capacity_bytes);
  return static_cast<double>(bytes);
}

bool is_cpu(const Ceilings& ceilings) { return !ceilings.curve.empty() || ceilings.memory_level("L3") != nullptr; }

void set_peaks(TargetDevice& device, const AchievedShare* share, double factor) {
  for (const auto& peak : device.ceilings->compute) {
    double achieved = peak.operations_per_second * factor;
    if (share != nullptr && is_published(peak.provenance)) {
      const bool tensor = is_narrow(peak.dtype) || peak.dtype == DType::tf32 || peak.dtype == DType::int8;
      if (tensor) achieved *= share->tensor * clock_share(*share, *device.ceilings);
    }
    device.peak[static_cast<std::size_t>(peak.dtype)] = achieved;
  }
  device.vector_peak = peak_for(device, DType::fp32).value_or(0);
}

// Cards of which no rate of the tensor cores, or none of the others, is published.
void add_missing_peaks(TargetDevice& device, const AchievedShare* share) {
  const auto at = [&](DType dtype) -> double& { return device.peak[static_cast<std::size_t>(dtype)]; };
  const auto remark = [&](DType dtype) {
    device.remarks.push_back("no peak of " + std::string(name_of(dtype)) + " is published of " +
                             device.ceilings->device + ": that of its architecture is taken");
  };
  if (share == nullptr) {
    if (is_published(main_memory(*device.ceilings)->provenance)) {
      device.remarks.push_back("how much of the published peaks and bandwidth of " + device.ceilings->device +
                               " is achieved is not known: they are taken in full");
    }
    return;
  }
  if (at(DType::fp16) <= 0 && at(DType::fp32) > 0) {
    at(DType::fp16) = at(DType::fp32) * share->fp16_per_fp32 * share->tensor;
    if (share->fp16_per_fp32 > 1) at(DType::bf16) = at(DType::fp16);
    remark(DType::fp16);
  } else if (at(DType::fp32) <= 0 && at(DType::fp16) > 0) {
    device.vector_peak = at(DType::fp32) = at(DType::fp16) / share->fp16_per_fp32;
    remark(DType::fp32);
  }
}

}  // namespace

std::optional<double> peak_for(const TargetDevice& device, DType dtype) {
  // The types whose peak stands in for that of a type without one: a wider type, or a narrower one with the same units.
  static constexpr std::array<std::array<DType, 4>, 6> kFallbackDtypes = {{
      {DType::fp16, DType::bf16, DType::tf32, DType::fp32},
      {DType::bf16, DType::fp32, DType::fp16, DType::tf32},
      {DType::tf32, DType::fp32, DType::fp16, DType::bf16},
      {DType::fp8, DType::fp16, DType::bf16, DType::fp32},
      {DType::fp4, DType::fp8, DType::fp16, DType::bf16},
      {DType::fp32, DType::tf32, DType::fp32, DType::fp32},
  }};
  const auto rate = [&](DType of) { return device.peak[static_cast<std::size_t>(of)]; };
  if (rate(dtype) > 0) return rate(dtype);
  const bool is_card = !device.ceilings->facts.compute_capability.empty();
  if (!is_card && dtype != DType::tf32) return std::nullopt;
  for (const auto& order : kFallbackDtypes) {
    if (order.front() != dtype) continue;
    for (const auto instead : order) {
      if (rate(instead) > 0) return rate(instead);
    }
  }
  return std::nullopt;
}

TargetDevice target_device(const Ceilings& ceilings, const PredictionParameters& parameters, double bandwidth_factor,
                           double peak_factor) {
  const auto* memory = main_memory(ceilings);
  if (memory == nullptr || memory->bytes_per_second <= 0) {
    throw std::invalid_argument("the roofs of '" + shown(ceilings.device) +
                                "' have no bandwidth of its memory: nothing can be predicted with them");
  }
  TargetDevice device;
  device.ceilings = &ceilings;
  device.is_gpu = !is_cpu(ceilings);
  device.parameters = device.is_gpu ? &parameters.gpu : &parameters.cpu;
  const auto* share = device.is_gpu ? share_of(ceilings, parameters) : nullptr;
  set_peaks(device, share, peak_factor);
  add_missing_peaks(device, share);
  if (device.vector_peak <= 0 && std::ranges::none_of(device.peak, [](double rate) { return rate > 0; })) {
    throw std::invalid_argument("the roofs of '" + shown(ceilings.device) + "' have no peak of any type");
  }
  device.bandwidth_factor = bandwidth_factor;
  device.dram = device.dram_roof = memory->bytes_per_second * bandwidth_factor;
  if (share != nullptr && is_published(memory->provenance)) device.dram *= share->dram;
  device.cache_bytes = cache_bytes(ceilings) * (share != nullptr ? share->cache : 1);
  device.multiprocessors = static_cast<double>(ceilings.facts.multiprocessors);
  return device;
}

namespace {

// The side of a tile of the output: in large matrix products one multiprocessor computes each tile.
constexpr double kTile = 64;
// The area of a 3 x 3 kernel, to which the exponent of depthwise convolutions refers.
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
    // An operand that a view has permuted is copied into order before it is multiplied. If both are activations, both
    // come from such views.
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

  // Returns the seconds of the operations, each type at its own peak.
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
