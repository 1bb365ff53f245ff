#pragma once
// Reports the memory that ops make to allocations.h, where a pass measures it. `thread` identifies the thread.

#include <ATen/record_function.h>

#include "observe/memory/allocations.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {

// Reports the inputs of an op that starts and counts as a whole. Returns true if it reads tensors of a watched device:
// then tell_inside must report the ops inside it, too.
bool tell_inputs(Allocations& memory, const at::RecordFunction& fn, const OpInfo& op);
// Reports the results of an op that ended inside such an op.
void tell_inside(Allocations& memory, const void* thread, const at::RecordFunction& fn);
// Reports the results of an op that ended and is not part of another op's work, though an op around it may still run.
// The memory that the op made for itself is dropped by now. `fn` is null where its results are not known.
void tell_results(Allocations& memory, const void* thread, const at::RecordFunction* fn, const OpInfo& op);

}  // namespace roofprof::observe
