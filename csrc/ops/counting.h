#pragma once
// The counting rules that families share.

#include <initializer_list>
#include <span>
#include <string_view>

#include "roofprof/op_call.h"
#include "roofprof/work.h"

namespace roofprof::ops {

// ---- operations (CountOperations)

// Counts no arithmetic: for copies, fills, views.
void no_operations(const OpCall& call, std::int64_t weight, Work& work);
// Counts weight x elements of the first result (of all results' elements where the call takes lists). Here and below
// the elements of sparse tensors are those they store.
void per_output(const OpCall& call, std::int64_t weight, Work& work);
// Counts weight x elements of the first tensor argument.
void per_input(const OpCall& call, std::int64_t weight, Work& work);

// Records `macs` multiply-accumulates in `dtype` (2 operations each); complex ones as four real ones.
void add_macs(Work& work, std::int64_t macs, const TensorDesc& operand);
void add_operations(Work& work, std::int64_t operations, DType dtype);
// Adds MACs as add_macs does, where a mask leaves only `causal` of the dense `macs` to be done. Operations stay dense.
void add_causal_macs(Work& work, std::int64_t macs, std::int64_t causal, const TensorDesc& operand);

// Returns whether the scalar `output_mask` asks for the gradient at that position; true where the call has no mask. The
// line has to declare output_mask.
bool wants_gradient(const OpCall& call, std::size_t position);

// Returns the operations per output of beta * self + alpha * product: factors of 1 cost nothing, and beta 0 leaves self
// out. The line has to declare both.
std::int64_t blend_operations(const OpCall& call);

// Returns whether the call gives that number, and does not leave it None. The line has to declare it.
bool gives_number(const OpCall& call, std::string_view argument);

// Returns the pairs of a query and a key that a causal mask leaves if the last query sees all keys: a triangle over the
// square part, and whole rows of keys in the rest.
std::int64_t causal_pairs(std::int64_t queries, std::int64_t keys);

// Returns the number of times that n can be halved: the comparisons of a binary search among n.
std::int64_t ceil_log2(std::int64_t n);

// Return products of sizes, which saturate, as every count does. An empty product is 1.
std::int64_t product(std::span<const std::int64_t> factors);
std::int64_t product(std::initializer_list<std::int64_t> factors);

// Returns the weights that one output element (transposed: one input element) is multiplied with. The weight of a layer
// is (Cout, Cin/groups, kernel...), transposed (Cin, Cout/groups, kernel...): these are all dimensions but the first.
std::int64_t taps(const TensorDesc& weight);

// ---- bytes (CountBytes)

// Counts by the general rule: each distinct input once as it is held (expanded dimensions once), results once. An
// argument that is written is read too, unless it is out=; a result that is a written argument (marked written) is not
// written twice.
void compulsory_bytes(const OpCall& call, Work& work);
// Counts no bytes: for views and metadata.
void no_bytes(const OpCall& call, Work& work);
// Counts by the general rule, but not the written argument's old value: for fill_, zero_, copy_, random_.
void overwriting_bytes(const OpCall& call, Work& work);
// A copy reads at most as much as it writes, and never more than the input holds: slice_copy, expand_copy.
void part_copied_bytes(const OpCall& call, Work& work);

// These serve lines with separate functions for bytes: they read or write the tensor(s) as held; nothing where absent
// or repeated.
void read(Work& work, const TensorDesc* tensor);
void read(Work& work, std::span<const TensorDesc> tensors);
void write_results(const OpCall& call, Work& work);  // results and written arguments, each once

}  // namespace roofprof::ops
