#pragma once
// The peak of computing on torch's threads: the highest rate of operations that torch reaches in contractions.

#include <cstdint>
#include <memory>
#include <string>

#include "roofprof/dtype.h"

namespace roofprof {

// at::mm (at::_int_mm for int8) or at::conv2d over a few shapes, in fp64, fp32, bf16, fp16 or int8. Use it under
// DispatchDefaults (dispatch_defaults.h).
class ComputeTrials {
 public:
  // Finds the shapes with the highest rates, in about half a second; of shapes whose operands are larger than
  // `largest_bytes` together none is tried. A dtype that torch refuses, or computes slower than `sane_rate` operations
  // per second, is left out.
  ComputeTrials(DType dtype, std::int64_t largest_bytes, double sane_rate = 0);
  ~ComputeTrials();
  ComputeTrials(ComputeTrials&&) noexcept;
  ComputeTrials& operator=(ComputeTrials&&) noexcept;

  // Returns why no figure will come, as half a sentence; empty where one will.
  const std::string& left_out() const;
  // Operations per second of the best of these shapes now.
  double round();
  // Returns the method of a `peak` of that many rounds, and how far these lie apart.
  std::string method(int rounds) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace roofprof
