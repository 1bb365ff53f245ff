#pragma once
// The element types of tensors in lists, which traces leave out.

#include "kineto/trace.h"

namespace roofprof::kineto {

// Fills RecordedCall::list_type: the type of the nearest op on the thread that takes a tensor of the sizes of one in
// the list, or the floating type that most arguments of the trace have.
void find_list_types(Trace& trace);

}  // namespace roofprof::kineto
