#pragma once
// Makes the profile of another device from a profile or a count: it has each op's predicted time with its interval, and
// everything else unchanged. Figures follow as they do from measured times.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/op_features.h"
#include "analysis/predict/op_time.h"
#include "analysis/predict/parallel.h"
#include "analysis/predict/parameters.h"
#include "core/profile.h"
#include "roofprof/prediction.h"

namespace roofprof {

// Throws std::invalid_argument: nothing was counted, no peak for a type, a batch that cannot be scaled to, factors that
// are not positive.
Profile predicted(const Profile& data, const Ceilings& ceilings, const PredictionOptions& options,
                  const PredictionParameters& parameters = PredictionParameters::shipped());

// Returns what was counted, in the precision and batch of the options.
Profile prepared(const Profile& data, const PredictionOptions& options);
// Returns the options that count for data that is prepared.
Predicted options_of(const Profile& data, const PredictionOptions& options, const FeatureOptions& how);

struct PredictedTotal {
  double seconds = 0;
  double low = 0;  // the interval of 80%
  double high = 0;
  double compute_bound = 0;  // of `seconds`, those of ops whose arithmetic takes longer than their bytes
};

// Predicts totals for many devices in turn, or for many trials of the parameters: it reads the profile once.
class Predictor {
 public:
  // Throws as `predicted` does.
  Predictor(const Profile& data, const PredictionOptions& options);

  std::int64_t batch() const { return batch_; }  // 0: not known
  std::int64_t steps() const { return steps_; }  // of a block; 1: none were marked
  std::int64_t weight_bytes() const { return weight_bytes_; }
  std::optional<std::int64_t> activation_bytes() const { return activation_bytes_; }  // the peak, without the weights
  const std::string& words() const { return words_; }                                 // the options, for a GPU

  // Returns the seconds of each op class, in the order of kOpClassNames.
  std::array<double, kOpClassCount> class_seconds(const Ceilings& ceilings,
                                                  const PredictionParameters& parameters) const;
  // Returns the class of each op, in the order of the profile's ops; "" for views and for those that nothing is known
  // of.
  std::vector<std::string_view> op_classes() const;
  // Returns the seconds of each op's kernels in one run, all its calls together, in the order of the profile's ops; 0
  // for those that nothing is known of. The host has no part in them.
  std::vector<double> op_seconds(const Ceilings& ceilings, const PredictionParameters& parameters) const;
  // ... the interval of each op's kernels, as factors on its seconds.
  std::vector<Margins> op_margins(const Ceilings& ceilings, const PredictionParameters& parameters) const;
  PredictedTotal total(const Ceilings& ceilings, const PredictionParameters& parameters) const;

 private:
  // Ops and, for each, its place among those that differ from each other: the layers of a model repeat.
  struct Ops {
    std::vector<OpFeatures> all;
    std::vector<OpFeatures> different;
    std::vector<std::size_t> places;
  };
  static Ops sorted_out(std::vector<OpFeatures> all);
  const Ops& ops_for(const TargetDevice& device) const;

  PredictionOptions options_;
  std::int64_t batch_ = 0;
  std::int64_t steps_ = 1;
  std::int64_t weight_bytes_ = 0;
  std::optional<std::int64_t> activation_bytes_;
  std::string words_;
  std::optional<RankPlan> plan_;  // of several ranks
  // The features on a GPU, and on a CPU, where autocast adds nothing.
  Ops on_gpu_;
  Ops on_cpu_;
};

}  // namespace roofprof
