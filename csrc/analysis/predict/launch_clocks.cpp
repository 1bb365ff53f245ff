#include "analysis/predict/launch_clocks.h"

#include <algorithm>

namespace roofprof {

LaunchClocks::LaunchClocks(const PredictionOptions& options, const HostParameters& defaults, bool is_gpu) {
  if (!is_gpu || options.mode != LaunchMode::eager) return;
  op_seconds_ = options.host_seconds.value_or(defaults.op_seconds);
  view_seconds_ = std::min(defaults.view_seconds, op_seconds_);
  host_ = -op_seconds_;  // the first kernel starts at 0
}

double LaunchClocks::launch(const OpFeatures& op, double kernel_seconds) {
  if (op.fused) {  // it is launched with the op before it
    device_ += op.calls * kernel_seconds;
    return 0;
  }
  if (op.is_free || kernel_seconds <= 0) {
    host_ += op.calls * view_seconds_;
    return 0;
  }
  const double busy = op.calls * kernel_seconds;
  const double first = host_ + op_seconds_;
  host_ += op.calls * op_seconds_;
  // Either the device was never behind the host since the first call, or it waits for the last one.
  const double end = std::max({device_ + busy, first + busy, host_ + kernel_seconds});
  const double waits = std::max(end - device_ - busy, 0.0);
  device_ = end;
  if (op.waits_for_device) host_ = std::max(host_, device_);
  return waits;
}

}  // namespace roofprof
