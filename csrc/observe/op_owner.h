#pragma once
// The module of an op where the modules' own calls are not seen.

#include <ATen/core/ivalue.h>

#include <optional>

#include "observe/operators/op_info.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

// Returns the place of the module whose parameters an op takes that starts now, where the session asks for that; empty
// where the op belongs to the module that runs.
std::optional<ModuleId> owner_of_op(const ThreadState& state, const OpInfo& op,
                                    c10::ArrayRef<const c10::IValue> inputs);

}  // namespace roofprof::observe
