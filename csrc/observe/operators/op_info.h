#pragma once
// Describes an operator to the observer. It is looked up once per operator, then found by a pointer comparison.

#include <ATen/record_function.h>
#include <c10/core/DispatchKeySet.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/rule/counting_rule.h"
#include "ops/registry.h"

namespace c10 {
class OperatorHandle;
}

namespace roofprof::observe {

// Names the kind of call (a function's, a module's, a TorchScript method's) in which work bypassed the dispatcher;
// `no`: the entry is an op.
enum class Unobserved : std::uint8_t { no, function, module, numpy, script };

// Returns a new number for each operator, from 1 on.
std::uint32_t next_op_number();

struct alignas(64) OpInfo : OpClass {
  // An argument that the cost can depend on.
  struct Slot {
    // last_value: of a tensor that is a slot as well, where the cost reads its last element.
    enum class Kind : std::uint8_t { tensor, tensor_list, scalar, packed_weight, last_value };
    std::uint16_t position = 0;
    Kind kind = Kind::tensor;
    bool written = false;
  };

  // The members that each call reads come first (see Bucket).
  const std::uint32_t number = next_op_number();  // names it in a pass
  std::string name;                               // "aten::conv2d"
  // The dispatch keys at which a call may be dispatched again, inside itself, to do the work.
  c10::DispatchKeySet wrapped_by;
  // The most records that were seen inside a call of it so far.
  std::atomic<int> nested{0};
  // The forward of a batch or instance normalisation module ends with this op.
  bool ends_norm = false;
  bool collective = false;    // of several ranks
  bool communicates = false;  // a collective, or a wait for one
  // True if the sizes and dtypes of its tensors, where these are plain, determine those of its results.
  bool results_follow = false;
  Evidence evidence = 0;  // what a call of it shows
  std::vector<Slot> slots;
  std::vector<ops::Argument> arguments;  // by position, without their values
  std::vector<bool> result_written;      // the result is a written argument (in-place, out=)
  std::string overload;                  // "padding", "" for the default one
  ops::Trait trait = ops::Trait::none;
  const ops::OpCost* cost = nullptr;
  Unobserved unobserved = Unobserved::no;
};

// Returns the operator behind a RecordFunction of scope FUNCTION; null where it is none (a user's or autograd
// function's range), compiled_region() where a graph of torch.compile's runs. The pointer stays valid for the life of
// the process; an operator whose cost changes gets another one.
OpInfo* op_info(const at::RecordFunction& fn);
// Returns the same pointer for an operator that has a schema.
OpInfo* op_info(const c10::OperatorHandle& op);

// Returns the operator of work that is not torch's, by a name of the user's: declared work, or unobserved work.
OpInfo* named_op(std::string_view name, Unobserved unobserved);

// Returns whether an operator of that name may be an extension's: its namespace is not one of torch's own, whose
// operators dispatch all their work or have costs for it.
bool is_of_extension(std::string_view name);

// Returns the operator of code that torch.compile compiled.
OpInfo* compiled_region();
// Notes whether the code that torch names so ("Torch-Compiled Region: 0/1") calls a graph. Where Dynamo could compile
// nothing, it still makes code, which calls the user's code as it is: that does not count as a compiled region. Code of
// an unknown name does.
void tell_compiled_range(std::string_view name, bool has_graph);
// Returns the operator of calls of AOTInductor packages.
OpInfo* compiled_package();
// Returns whether a range of that name is such a call; torch opens it in Python and C++ alike.
bool runs_package(const char* range);
// Returns whether that autograd node runs the backward of compiled code.
bool is_compiled_backward(const char* node);

}  // namespace roofprof::observe
