#pragma once
// What a call of an operator costs: run once for each bucket.

#include <string>

#include "observe/operators/op_info.h"
#include "roofprof/op_call.h"
#include "roofprof/work.h"

namespace roofprof::observe {

// What a call costs, and how its bucket is shown.
struct Costed {
  bool costed = false;
  Work work;
  DType dtype = DType::other;
  std::string shapes;
  bool channels_first = false;  // of a convolution or pooling: it gets images, and none of them is channels_last
  std::string failure;          // why the cost could not be computed; empty: it could, or there is none
};

// Runs users' cost functions, which may wait for other threads (for Python's interpreter lock): not to be called with a
// lock held. What they dispatch themselves is not observed.
Costed cost_of(const OpInfo& op, const ops::OpCall& call);

}  // namespace roofprof::observe
