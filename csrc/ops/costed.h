#pragma once
// Holds the cost of a call of an operator, and how its bucket is shown.

#include <string>

#include "core/profile_data.h"
#include "roofprof/dtype.h"
#include "roofprof/work.h"

namespace roofprof::ops {

struct Costed {
  bool costed = false;
  Work work;
  DType dtype = DType::other;
  std::string shapes;
  bool channels_first = false;  // of a convolution or pooling: it gets images, and none of them is channels_last
  std::string failure;          // why the cost could not be computed; empty: it could, or there is none
};

// Writes into `op` what is known of all its calls alike.
inline void describe(OpBucket& op, const Costed& cost) {
  op.dtype = cost.dtype;
  op.costed = cost.costed;
  op.shapes = cost.shapes;
  op.channels_first = cost.channels_first;
}

}  // namespace roofprof::ops
