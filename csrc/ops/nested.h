#pragma once
// Nested tensors (torch's strided layout): an op on one is the same op on each of its components.

#include <vector>

#include "roofprof/op_call.h"

namespace roofprof::ops {

// The call taken apart, each component a batch of one; dense tensors beside them belong to the first call and are
// `repeated` in the others. Empty where no result is nested (padding, sums): such a call is costed as a whole.
std::vector<OpCall> calls_on_components(const OpCall& call);

}  // namespace roofprof::ops
