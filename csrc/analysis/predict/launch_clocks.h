#pragma once
// When ops end that a host launches one after the other and a device runs: each takes the larger of the host's and the
// device's time, stretch by stretch, not their sum.

#include "analysis/predict/op_features.h"
#include "analysis/predict/parameters.h"
#include "roofprof/prediction.h"

namespace roofprof {

class LaunchClocks {
 public:
  LaunchClocks(const PredictionOptions& options, const HostParameters& defaults, bool is_gpu);

  // Launches all calls of an op whose kernels take so long, one call after the other. Returns the seconds that the
  // device waits for the host until the last call's kernels run.
  double launch(const OpFeatures& op, double kernel_seconds);

 private:
  double op_seconds_ = 0;
  double view_seconds_ = 0;
  double host_ = 0;    // until then the host has launched what came before
  double device_ = 0;  // until then the device runs what came before
};

}  // namespace roofprof
