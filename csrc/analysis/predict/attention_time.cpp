#include "analysis/predict/attention_time.h"

#include "analysis/predict/product_time.h"

namespace roofprof {

namespace {

// Torch (2.5 and later) computes the scores in fp32, and moves them several times.
double unfused_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double scores = op.batch * op.rows * op.width;
  constexpr double kFp32 = 4;
  const double wider = op.element_bytes > 0 ? kFp32 / op.element_bytes : 1;
  const double in_fp32 = wider * (op.read_bytes + op.write_bytes);
  return (scores * device.gpu->attention.bytes_per_score + 2 * in_fp32) / device.dram +
         operations_of(op) / (vector_peak(device) * device.of_class(op.op).of_peak);
}

}  // namespace

double attention_seconds(const OpFeatures& op, const TargetDevice& device) {
  return op.op == OpClass::unfused_attention ? unfused_seconds(op, device) : product_seconds(op, device);
}

}  // namespace roofprof
