#pragma once
// Sees every dispatched op through at::RecordFunction and applies the counting rule.

#include <ATen/record_function.h>

namespace roofprof::observe {

at::RecordFunctionCallback op_observer_callback();

}  // namespace roofprof::observe
