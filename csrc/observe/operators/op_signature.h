#pragma once
// Turns an operator's arguments into the key of its bucket and, once per bucket, into the OpCall that its cost reads.

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>

#include "observe/operators/dispatch_path.h"
#include "observe/operators/op_info.h"
#include "roofprof/op_call.h"

namespace roofprof::observe {

struct Signature {
  // Hash of what the op's cost reads of its inputs: dtypes, sizes, expanded dims, repeated views, declared scalars.
  std::uint64_t hash = 0;
  DispatchPath dispatch_path;
};

// Returns the signature of the inputs. It runs for every op: no allocation for strided tensors. `reads` may be null.
Signature signature_of(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs, ParameterReads* reads);
// Returns the dispatch path alone, for ops whose inputs need no signature.
DispatchPath dispatch_path_of(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs, ParameterReads* reads);
// Returns the inputs' hash with the results mixed in, which show what inputs do not (strides, output sizes, values).
std::uint64_t with_results(std::uint64_t inputs_hash, c10::ArrayRef<c10::IValue> outputs);

// Describe the inputs and results of a call; they run once per bucket.
ops::OpCall describe_inputs(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs);
void describe_results(const OpInfo& info, c10::ArrayRef<c10::IValue> outputs, ops::OpCall& call);

// Returns the shapes as text: "1x3x224x224, 64x3x7x7".
std::string shapes_of(const ops::OpCall& call);

}  // namespace roofprof::observe
