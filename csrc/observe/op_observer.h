#pragma once
// Sees every dispatched op through at::RecordFunction and applies the counting rule.

#include <ATen/record_function.h>

namespace roofprof::observe {

at::RecordFunctionCallback op_observer_callback();

// Between these, the code of this thread is compiled, and no record says so (an AOTInductor package).
void enter_compiled();
void leave_compiled();

}  // namespace roofprof::observe
