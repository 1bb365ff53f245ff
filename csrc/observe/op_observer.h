#pragma once
// Sees every dispatched op through at::RecordFunction and applies the counting rule.

#include <ATen/record_function.h>

namespace roofprof::observe {

at::RecordFunctionCallback op_observer_callback();

// Mark the beginning and the end of compiled code on this thread that no record shows (an AOTInductor package).
void enter_compiled();
void leave_compiled();

}  // namespace roofprof::observe
