#pragma once
// What ops tell of the memory that they make (allocations.h), where that is measured. `thread` tells threads apart.

#include <ATen/record_function.h>

#include "observe/memory/allocations.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {

// An op that counts as a whole starts. True: it reads tensors of a watched device, so what ops inside of it make is to
// be told as well.
bool tell_inputs(Allocations& memory, const at::RecordFunction& fn, const OpInfo& op);
// An op inside of such a one ended.
void tell_inside(Allocations& memory, const void* thread, const at::RecordFunction& fn);
// An op ended that is no part of another, or whose outer one ends later: what it made for itself is dropped by now.
// `fn`: null where its results are not known.
void tell_results(Allocations& memory, const void* thread, const at::RecordFunction* fn, const OpInfo& op);

}  // namespace roofprof::observe
