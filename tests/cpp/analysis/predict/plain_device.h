#pragma once
// Parameters whose shares are 1 and whose extra costs are 0, so that the roofline is all that is left; and devices in
// round numbers.

#include <string>
#include <string_view>

#include "analysis/predict/op_features.h"
#include "analysis/predict/op_time.h"
#include "analysis/predict/parameters.h"
#include "roofprof/ceilings.h"
#include "support/profile_builder.h"

namespace roofprof::testing {

// With one time ten times the other, their norm is the longer one to 21 digits.
inline constexpr double kLongerOne = 20;

inline PredictionParameters plain_parameters() {
  PredictionParameters parameters;
  for (const auto name : kOpClassNames) parameters.gpu.classes.push_back({std::string(name)});
  parameters.cpu.classes = parameters.gpu.classes;
  parameters.gpu.overlap = parameters.cpu.overlap = parameters.gpu.product.overlap = kLongerOne;
  return parameters;
}

template <class Parameters>
ClassParameters& class_in(Parameters& kind, OpClass op) {
  return kind.classes.at(static_cast<std::size_t>(op));
}

inline OpBucket bucket_named(std::string_view op, std::string_view shapes, DType dtype = DType::fp32) {
  OpBucket bucket;
  bucket.op = op;
  bucket.shapes = testing::shapes(shapes);
  bucket.dtype = dtype;
  bucket.calls = 1;
  return bucket;
}

inline Provenance published_roof() { return {"published", "by hand", "", {}}; }

// A card of compute capability 9.9, of which no share is shipped.
inline Ceilings published_card() {
  Ceilings card;
  card.device = "a card by hand";
  card.compute = {{DType::fp32, 1e13, published_roof()}, {DType::fp16, 1e14, published_roof()}};
  card.memory = {{"DRAM", 1e12, 0, published_roof()}};
  card.facts.compute_capability = "9.9";
  return card;
}

// A device to hold calls against: fp32 1e12, fp16 1e13 operations and 1e11 bytes per second, no cache.
class PlainDevice {
 public:
  PlainDevice() {
    ceilings.device = "a device by hand";
    device.gpu = &kind;
    device.cpu = &cpu;
    device.ceilings = &ceilings;
    device.peak[static_cast<std::size_t>(DType::fp32)] = device.vector_peak = 1e12;
    device.peak[static_cast<std::size_t>(DType::fp16)] = 1e13;
    device.dram = device.dram_roof = 1e11;
    device.cycles = 1e30;  // no instruction takes time
  }
  PlainDevice(const PlainDevice&) = delete;
  PlainDevice& operator=(const PlainDevice&) = delete;

  double seconds(const OpFeatures& features) const { return kernel_seconds(features, device); }

  GpuParameters kind = plain_parameters().gpu;
  CpuParameters cpu = plain_parameters().cpu;
  Ceilings ceilings;
  TargetDevice device;
};

inline OpFeatures features_with(OpClass op, double flops, double read, double write = 0, DType dtype = DType::fp32) {
  OpFeatures features;
  features.op = op;
  features.calls = 1;
  features.operations[static_cast<std::size_t>(dtype)] = flops;
  if (is_contraction(op) || op == OpClass::unfused_attention) features.macs = flops / 2;
  features.read_bytes = read;
  features.write_bytes = write;
  return features;
}

}  // namespace roofprof::testing
