#include "analysis/predict/streaming_time.h"

namespace roofprof {

double streaming_seconds(const OpFeatures& op, const TargetDevice& device) {
  const auto& of_class = device.of_class(op.op);
  double compute = 0;
  if (of_class.of_peak <= 0) {
    if (op.fused) compute = seconds_at_peaks(op, device);  // nothing else may be left of a fused op
  } else if (op.macs > 0) {
    compute = seconds_at_peaks(op, device) / of_class.of_peak;
  }
  const auto& numbers = device.gpu->streaming;
  const double memory = traffic_seconds(op.read_bytes, op.write_bytes, of_class.of_bandwidth, device) *
                        (op.after_permutation ? numbers.permuted : 1);
  double seconds = together(compute, memory, device.gpu->overlap);
  if (op.op == OpClass::interpolation && !op.after_permutation) seconds += op.planes * numbers.plane_seconds;
  return seconds;
}

double copy_seconds(double bytes, const TargetDevice& device) {
  return traffic_seconds(bytes, bytes, device.of_class(OpClass::copy).of_bandwidth, device);
}

double cast_seconds(double bytes, const TargetDevice& device) {
  return traffic_seconds(bytes * 2 / 3, bytes / 3, device.of_class(OpClass::elementwise).of_bandwidth, device);
}

}  // namespace roofprof
