#pragma once
// The memory that an op's tensors are in.

#include <ATen/record_function.h>

#include <vector>

#include "observe/operators/op_info.h"
#include "observe/reuse/reuse_log.h"

namespace roofprof::observe {

// Adds the tensors that an op takes (when it begins) and those that it made (when it ended). Leaves out tensors without
// memory (meta and fake ones) and those whose memory strides do not describe (sparse, nested and packed ones).
void add_inputs(const OpInfo& info, const at::RecordFunction& fn, std::vector<Operand>& operands);
void add_results(const OpInfo& info, const at::RecordFunction& fn, std::vector<Operand>& operands);

}  // namespace roofprof::observe
