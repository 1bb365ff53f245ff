#include "analysis/predict/predictor.h"

#include <algorithm>

#include "analysis/predict/op_time.h"
#include "analysis/predict/scaling.h"

namespace roofprof {

Predictor::Predictor(const ProfileData& data, const PredictionOptions& options) : options_(options) {
  const ProfileData changed = prepared(data, options);
  const auto how = feature_options(changed, options, true);
  on_gpu_ = features_of(changed, how);
  on_cpu_ = features_of(changed, feature_options(changed, options, false));
  const Module& model = changed.modules.at(index_of(kModel));
  batch_ = batch_of(changed);
  steps_ = std::max<std::int64_t>(data.runs.steps, 1);
  weight_bytes_ = model.param_bytes + model.buffer_bytes;
  activation_bytes_ = changed.peak_memory;
  words_ = words_of(options_of(changed, options, how));
}

const std::vector<OpFeatures>& Predictor::features_for(const TargetDevice& device) const {
  return device.is_gpu ? on_gpu_ : on_cpu_;
}

std::array<double, kOpClassCount> Predictor::class_seconds(const Ceilings& ceilings,
                                                           const PredictionParameters& parameters) const {
  const auto device = target_device(ceilings, parameters, options_.bandwidth, options_.peak);
  std::array<double, kOpClassCount> seconds{};
  for (const auto& op : features_for(device)) {
    seconds[static_cast<std::size_t>(op.op)] += op.calls * call_seconds(op, device);
  }
  return seconds;
}

PredictedTotal Predictor::total(const Ceilings& ceilings, const PredictionParameters& parameters) const {
  const auto device = target_device(ceilings, parameters, options_.bandwidth, options_.peak);
  PredictedTotal total;
  for (const auto& op : features_for(device)) {
    const double seconds = op.calls * call_seconds(op, device);
    const auto& of_class = parameters_of(*device.parameters, op.op);
    total.seconds += seconds;
    total.low += seconds * of_class.low;
    total.high += seconds * of_class.high;
    if (is_compute_bound(op, device)) total.compute_bound += seconds;
  }
  return total;
}

}  // namespace roofprof
