#pragma once
// A profile of another device, from a profile or a count: each op's time there with its interval, everything else as it
// was. Figures follow as they do from measured times.

#include <vector>

#include "analysis/predict/op_features.h"
#include "analysis/predict/parameters.h"
#include "analysis/predict/target_device.h"
#include "core/profile_data.h"
#include "roofprof/prediction.h"

namespace roofprof {

// Throws std::invalid_argument: nothing was counted, no peak for a type, a batch that cannot be scaled to, factors that
// are not positive.
ProfileData predicted(const ProfileData& data, const Ceilings& ceilings, const PredictionOptions& options,
                      const PredictionParameters& parameters = PredictionParameters::shipped());

// Its parts, for many devices in turn: what was counted in the precision and batch of the options, and ...
ProfileData prepared(const ProfileData& data, const PredictionOptions& options);
// Returns the options that count for data that is prepared.
Predicted options_of(const ProfileData& data, const PredictionOptions& options, const FeatureOptions& how);
// ... the seconds of each op in one run, all its calls together; 0 for those that nothing is known of.
std::vector<double> op_seconds(const std::vector<OpFeatures>& features, const TargetDevice& device);

}  // namespace roofprof
