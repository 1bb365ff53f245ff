#pragma once
// Computes the cost of a call of an operator, once for each bucket.

#include "observe/operators/op_info.h"
#include "ops/registry.h"
#include "roofprof/op_call.h"

namespace roofprof::observe {

using ops::Costed;

// Runs users' cost functions, which may wait for other threads (for Python's interpreter lock): not to be called with a
// lock held. What they dispatch themselves is not observed.
Costed cost_of(const OpInfo& op, const ops::OpCall& call);

}  // namespace roofprof::observe
