#pragma once
// The costs of operators: one table per family, one line per operator.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"
#include "roofprof/dtype.h"
#include "roofprof/op_call.h"
#include "roofprof/op_costs.h"
#include "roofprof/work.h"

namespace roofprof::ops {

// The cost of a call, and how its bucket is shown.
struct Costed {
  bool costed = false;
  Work work;
  DType dtype = DType::other;
  OpShapes shapes;
  bool channels_first = false;  // of a convolution or pooling: it gets images, and none of them is channels_last
  std::string failure;          // why the cost could not be computed; empty: it could, or there is none
};

struct OpCost;

// Adds MACs and operations of the call to `work`. `weight` is the line's own: FLOPs per element, mostly.
using CountOperations = void (*)(const OpCall& call, std::int64_t weight, Work& work);
// Sets read_bytes and write_bytes of the call.
using CountBytes = void (*)(const OpCall& call, Work& work);

// A line of a family's table.
struct OpCost {
  // Qualified name without overload; in a family's table several names by spaces, of operators that count alike. It
  // stands for its in-place form (a trailing "_") as well, unless that form has a line, too.
  std::string_view op;
  CountOperations operations;
  std::int64_t weight = 0;
  CountBytes bytes = nullptr;  // null: compulsory_bytes
  // Comma-separated names of the scalar arguments that the functions above read; they become part of the bucket's key.
  // "offs[-1]" is the last value of a tensor of offsets, where it can be read.
  std::string_view scalars = "";
  std::string_view formula = "";  // for people: what is counted
  std::string_view source = "";   // where the formula comes from, when it is not plain arithmetic
  // A cost of the user's (OpCosts): it counts instead of what stands above, and may read all scalars.
  const OpCosts::Function* own = nullptr;
  // Names of the arguments in order, as far as they are read, for operators that torch may not have: traces have no
  // names. Marks behind a name: '!' is written, '&' read and written, '-' not counted.
  std::string_view arguments = "";
};

// Returns whether the declared names of scalar arguments, comma-separated, or "*" for all, hold this one.
bool lists_scalar(std::string_view declared, std::string_view name);
// The suffix of a tensor's name in that list, if the tensor's last value is read.
inline constexpr std::string_view kLastValue = "[-1]";

// ---- lookup

// Returns the line of an operator ("aten::relu_" finds "aten::relu"), or null; the user's before roofprof's. Lines stay
// where they are for the life of the process, so that equal pointers mean the same cost.
const OpCost* find_cost(std::string_view op, std::string_view overload = "");
// All families, with a line for each operator.
struct Family {
  std::string_view name;
  std::vector<OpCost> costs;
};
std::span<const Family> families();

// ---- the user's own

// Returns the user's line for exactly that operator, or null.
const OpCost* find_own_cost(std::string_view op, std::string_view overload);
// Returns all of them by name; listings show them together with families().
std::vector<OpCost> own_costs();
// Returns a number that rises with each change of the user's costs: lines that were found before must be looked up
// again then.
std::uint64_t cost_generation();

// ---- evaluation

// Returns whether the line declares that the operator moves and computes nothing: views, allocations, questions.
bool is_free(const OpCost& line);
// Returns whether the operator does arithmetic: not for a copy, fill or view.
bool computes(const OpCost& line);

// Returns the work of one call: by its line, else by its trait (a view is free, its copying form copies; pointwise: one
// operation per output element; reduction: one per input element), else nullopt: not known.
std::optional<Work> cost_of(const OpCall& call);
std::optional<Work> cost_of(const OpCall& call, const OpCost* line);

// ---- the families' tables (one file each)

std::span<const OpCost> matmul_costs();         // matmul.cpp
std::span<const OpCost> convolution_costs();    // convolution.cpp
std::span<const OpCost> attention_costs();      // attention.cpp
std::span<const OpCost> recurrent_costs();      // recurrent.cpp
std::span<const OpCost> normalization_costs();  // normalization.cpp: norms, softmax
std::span<const OpCost> activation_costs();     // activation.cpp
std::span<const OpCost> elementwise_costs();    // elementwise.cpp: arithmetic, comparisons
std::span<const OpCost> reduction_costs();      // reduction.cpp: sums, losses, sorting
std::span<const OpCost> linalg_costs();         // linalg.cpp: factorisations, solvers, eigenvalues
std::span<const OpCost> spectral_costs();       // spectral.cpp: Fourier transforms
std::span<const OpCost> pooling_costs();        // pooling.cpp: pooling, upsampling, grid sampling
std::span<const OpCost> indexing_costs();       // indexing.cpp: gather, scatter, embedding, masks
std::span<const OpCost> movement_costs();       // movement.cpp: copies, fills, factories, random numbers
std::span<const OpCost> quantized_costs();      // quantized.cpp: 8-bit and 4-bit layers, conversions
std::span<const OpCost> sparse_costs();         // sparse.cpp: by stored values; 2:4 structured
std::span<const OpCost> nested_costs();         // nested.cpp: conversions; all else component by component
std::span<const OpCost> vision_costs();         // vision.cpp: torchvision's own operators
std::span<const OpCost> communication_costs();  // communication.cpp: collectives between processes
std::span<const OpCost> serving_costs();        // serving.cpp: vLLM, SGLang, AITER, flash-attn

// ---- calls of a trace that this torch has no schema of (serving.cpp)

// Names the call's arguments, and marks those that are written, by the `arguments` of a line.
void name_arguments(OpCall& call, std::string_view names);
// Returns the line of Triton's kernels, which have names of their own.
const OpCost& triton_cost();

// ---- Nested tensors (torch's strided layout): an op on one is the same op on each of its components.

// Splits the call into one call for each component, which is a batch of one. Dense tensors of the call belong to the
// first one and are `repeated` in the others. Empty where no result is nested (padding, sums): such a call is costed as
// a whole.
std::vector<OpCall> calls_on_components(const OpCall& call);

// Writes into `op` what is known of all its calls alike.
inline void describe(OpBucket& op, const Costed& cost) {
  op.dtype = cost.dtype;
  op.costed = cost.costed;
  op.shapes = cost.shapes;
  op.channels_first = cost.channels_first;
}

}  // namespace roofprof::ops
