#include "analysis/predict/target_device.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/phrases.h"
#include "core/roofs.h"

namespace roofprof {

namespace {

// Dynamic power goes with clock x voltage^2, and near the limit voltage rises with the clock: power ~ clock^2.5.
constexpr double kPowerExponent = 2.5;

bool is_narrow(DType dtype) {
  return dtype == DType::fp16 || dtype == DType::bf16 || dtype == DType::fp8 || dtype == DType::fp4;
}

bool is_published(const Provenance& provenance) { return provenance.source == "published"; }

// Returns the share of the published clock that the power limit leaves while tensor cores work: twice the rate takes
// twice the energy, but fp8 and fp4 take a half and a quarter of fp16's for each operation.
double clock_share(const AchievedShare& share, const Ceilings& ceilings) {
  const auto* fp16 = ceilings.compute_for(DType::fp16);
  if (fp16 == nullptr || share.picojoules_per_flop <= 0 || ceilings.facts.tdp_watts <= 0) return 1;
  const double full = share.picojoules_per_flop * kJoulesPerPicojoule * fp16->operations_per_second;
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

// A GPU has a curve, too, but a link to the host, or facts from its documents.
bool is_cpu(const Ceilings& ceilings) {
  if (ceilings.memory_level("L3") != nullptr) return true;
  const bool is_gpu = ceilings.memory_level(kHostLink) != nullptr || ceilings.facts.l2_bytes > 0;
  return !ceilings.curve.empty() && !is_gpu;
}

void calibrate(TargetDevice& device) {
  auto own = std::make_shared<CalibratedParameters>(
      CalibratedParameters{*device.gpu, device.achieved != nullptr ? *device.achieved : AchievedShare{}});
  for (const auto& number : device.ceilings->calibration.numbers) {
    set_number(number.name, number.value, own->gpu, own->achieved);
  }
  device.gpu = &own->gpu;
  device.achieved = &own->achieved;
  device.calibrated = std::move(own);
}

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

std::optional<MemoryCeiling> estimated_cache(const Ceilings& ceilings) {
  const CardFacts& facts = ceilings.facts;
  if (last_cache(ceilings) != nullptr || facts.l2_bytes <= 0) return std::nullopt;
  const double rate =
      std::max(static_cast<double>(facts.multiprocessors) * kCacheOfOne, main_memory(ceilings)->bytes_per_second);
  return MemoryCeiling{
      "L2",
      rate,
      facts.l2_bytes,
      {"given", "45 GB/s for each multiprocessor, the least of the cards of which it is known", "", {}}};
}

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
    throw InvalidArgument("the roofs of '" + shown(ceilings.device) +
                          "' have no bandwidth of its memory: nothing can be predicted with them");
  }
  TargetDevice device;
  device.ceilings = &ceilings;
  device.is_gpu = !is_cpu(ceilings);
  device.gpu = &parameters.gpu;
  device.cpu = &parameters.cpu;
  if (device.is_gpu) device.achieved = parameters.achieved_on(ceilings.facts.compute_capability);
  if (device.is_gpu && !ceilings.calibration.numbers.empty()) calibrate(device);
  const auto* share = device.achieved;
  set_peaks(device, share, peak_factor);
  add_missing_peaks(device, share);
  if (device.vector_peak <= 0 && std::ranges::none_of(device.peak, [](double rate) { return rate > 0; })) {
    throw InvalidArgument("the roofs of '" + shown(ceilings.device) + "' have no peak of any type");
  }
  device.bandwidth_factor = bandwidth_factor;
  device.peak_factor = peak_factor;
  device.dram = device.dram_roof = memory->bytes_per_second * bandwidth_factor;
  if (share != nullptr && is_published(memory->provenance)) {
    device.dram *= share->dram * (ceilings.facts.inline_ecc ? parameters.gpu.inline_ecc : 1);
  }
  const auto estimated = estimated_cache(ceilings);
  if (estimated && device.is_gpu) {
    device.remarks.push_back("no bandwidth of the " + estimated->level + " of " + ceilings.device +
                             " is published: " + estimated->provenance.method + ", is taken");
  }
  if (const auto* cache = estimated ? &*estimated : last_cache(ceilings)) {
    // The numbers of the prediction are fitted to nominal sizes.
    const bool is_stated = cache->level == "L2" && ceilings.facts.l2_bytes > 0;
    device.cache_capacity = static_cast<double>(is_stated ? ceilings.facts.l2_bytes : cache->capacity_bytes);
    device.cache_bytes = device.cache_capacity * (share != nullptr ? share->cache : 1);
    device.cache_roof = cache->bytes_per_second;
    device.cache_bandwidth = device.cache_roof * bandwidth_factor * parameters.gpu.streaming.of_cache_bandwidth;
  }
  device.multiprocessors = static_cast<double>(ceilings.facts.multiprocessors);
  constexpr double kFlopsPerLane = 2;
  device.cycles = vector_peak(device) / kFlopsPerLane / architecture_of(device).fp32_lanes;
  return device;
}

const AchievedShare& architecture_of(const TargetDevice& device) { return or_usual(device.achieved); }

double dram_bandwidth(double share, const TargetDevice& device) {
  return std::min(device.dram * share, device.dram_roof);
}

double vector_peak(const TargetDevice& device) {
  return device.vector_peak > 0 ? device.vector_peak : *std::ranges::max_element(device.peak);
}

double share_of_vectors(const OpFeatures& op) {
  // Products of so few rows or columns are bound by reading the matrix, and kernels for vectors read it well; from
  // twice as many on kernels are the usual ones.
  constexpr double kVectorSize = 16;
  if (!is_product(op.op) || op.rows <= 0 || op.width <= 0) return 0;
  return std::clamp(2 - std::min(op.rows, op.width) / kVectorSize, 0.0, 1.0);
}

double operations_of(const OpFeatures& op) { return std::accumulate(op.operations.begin(), op.operations.end(), 0.0); }

double seconds_at_peaks(const OpFeatures& op, const TargetDevice& device) {
  double seconds = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (op.operations[i] <= 0 || (op.macs <= 0 && !is_floating(dtype))) continue;
    const auto peak = peak_for(device, dtype);
    if (!peak && op.macs <= 0) continue;  // bytes bound such ops
    if (!peak) {
      throw InvalidArgument("the roofs of '" + shown(device.ceilings->device) + "' have no peak for " +
                            std::string(name_of(dtype)) + ", in which the model computes");
    }
    seconds += op.operations[i] / *peak;
  }
  return seconds;
}

double together(double compute, double memory, double overlap) {
  const auto [shorter, longer] = std::minmax(compute, memory);
  return longer <= 0 ? 0 : longer * std::pow(1 + std::pow(shorter / longer, overlap), 1 / overlap);
}

double miss_share(double bytes, double half) {
  if (bytes <= 0) return 0;
  const double squared = half / bytes * (half / bytes);
  return 1 / (1 + squared * squared);
}

double traffic_seconds(double read, double write, double share, const TargetDevice& device) {
  const double bytes = read + write;
  const double missed = bytes * streaming_misses(bytes, device);
  const double cached = device.cache_bandwidth > 0 ? (bytes - missed) / device.cache_bandwidth : 0;
  return missed / dram_bandwidth(share, device) + cached;
}

double streaming_misses(double bytes, const TargetDevice& device) {
  return miss_share(bytes, device.gpu->streaming.cache_share * device.cache_bytes);
}

}  // namespace roofprof
