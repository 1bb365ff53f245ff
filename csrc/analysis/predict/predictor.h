#pragma once
// The total for many devices in turn, or for many trials of the parameters: what was counted is read once.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/prediction.h"

namespace roofprof {

struct PredictedTotal {
  double seconds = 0;
  double low = 0;  // the interval of 80%
  double high = 0;
  double compute_bound = 0;  // of `seconds`, those of ops whose arithmetic takes longer than their bytes
};

class Predictor {
 public:
  // Throws as `predicted` does.
  Predictor(const ProfileData& data, const PredictionOptions& options);

  std::int64_t batch() const { return batch_; }  // 0: not known
  std::int64_t steps() const { return steps_; }  // of a block; 1: none were marked
  std::int64_t weight_bytes() const { return weight_bytes_; }
  std::optional<std::int64_t> activation_bytes() const { return activation_bytes_; }  // peak, beside the weights
  const std::string& words() const { return words_; }                                 // the options, for a GPU

  // By op class, in the order of kOpClassNames.
  std::array<double, kOpClassCount> class_seconds(const Ceilings& ceilings,
                                                  const PredictionParameters& parameters) const;
  PredictedTotal total(const Ceilings& ceilings, const PredictionParameters& parameters) const;

 private:
  const std::vector<OpFeatures>& features_for(const TargetDevice& device) const;

  PredictionOptions options_;
  std::int64_t batch_ = 0;
  std::int64_t steps_ = 1;
  std::int64_t weight_bytes_ = 0;
  std::optional<std::int64_t> activation_bytes_;
  std::string words_;
  // For a GPU, and for a CPU, which autocast adds nothing to.
  std::vector<OpFeatures> on_gpu_;
  std::vector<OpFeatures> on_cpu_;
};

}  // namespace roofprof
