#pragma once
// Nested tensors (torch's strided layout): an op on one is the same op on each of its components.

#include <vector>

#include "roofprof/op_call.h"

namespace roofprof::ops {

// Splits the call into one call for each component, which is a batch of one. Dense tensors of the call belong to the
// first one and are `repeated` in the others. Empty where no result is nested (padding, sums): such a call is costed as
// a whole.
std::vector<OpCall> calls_on_components(const OpCall& call);

}  // namespace roofprof::ops
