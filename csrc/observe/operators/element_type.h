#pragma once
// torch's element types as ours.

#include <c10/core/ScalarType.h>

#include "roofprof/dtype.h"

namespace roofprof::observe {

// The dtype in which work on tensors of this type is counted; complex types by their component.
DType dtype_of(c10::ScalarType type);

}  // namespace roofprof::observe
