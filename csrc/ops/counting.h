#pragma once
// The counting rules that families share.

#include "ops/op_call.h"
#include "roofprof/work.h"

namespace roofprof::ops {

// ---- operations (CountOperations)

// No arithmetic: copies, fills, views.
void no_operations(const OpCall& call, std::int64_t weight, Work& work);
// weight x elements of the first result (of all results' elements where the call takes lists).
void per_output(const OpCall& call, std::int64_t weight, Work& work);
// weight x elements of the first tensor argument.
void per_input(const OpCall& call, std::int64_t weight, Work& work);

// Records `macs` multiply-accumulates in `dtype` (2 operations each); complex ones as four real ones.
void add_macs(Work& work, std::int64_t macs, const TensorDesc& operand);
void add_operations(Work& work, std::int64_t operations, DType dtype);

// ---- bytes (CountBytes)

// The general rule: each distinct input once as it is held (expanded dimensions once), results once. An argument that is
// written is read too, unless it is out=; a result that is a written argument is not written twice.
void compulsory_bytes(const OpCall& call, Work& work);
// Nothing is moved: views, metadata.
void no_bytes(const OpCall& call, Work& work);
// The written argument's old value does not matter: fill_, zero_, copy_, random_.
void overwriting_bytes(const OpCall& call, Work& work);

}  // namespace roofprof::ops
