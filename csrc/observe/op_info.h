#pragma once
// What the observer knows of an operator: looked up once per operator, then found by a pointer comparison.

#include <ATen/record_function.h>
#include <c10/core/DispatchKeySet.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/registry.h"

namespace roofprof::observe {

// How an operator takes part in the counting rule (design.md): the outermost op that has a cost wins.
enum class OpKind : std::uint8_t {
  counted,      // has a cost: counted, and what it dispatches inside is not
  view,         // moves nothing: counted with zero work
  transparent,  // a composite: looked through; with nothing inside, it did nothing
  unknown,      // no cost: looked through; with nothing counted inside, it goes to coverage
  compiled,     // compiled code, no operator: looked through, but most of its work is not dispatched
};

// Whether it stands for no op, but for what bypassed the dispatcher in a function's or a module's call.
enum class Unobserved : std::uint8_t { no, function, module };

// What was seen inside a module's call or an autograd function's, to tell whether work bypassed the dispatcher there.
using Evidence = std::uint8_t;
inline constexpr Evidence kWorkSeen = 1;  // counted, or listed as uncosted
inline constexpr Evidence kFreshMemory =
    2;                                   // allocated and not filled by an op, or brought in from outside (from_numpy)
inline constexpr Evidence kReadOut = 4;  // a tensor was handed out (numpy())
inline constexpr Evidence kViewMade = 8;
inline constexpr Evidence kBufferMade = 16;  // memory for somebody to fill

struct OpInfo {
  // An argument that the cost can depend on.
  struct Slot {
    enum class Kind : std::uint8_t { tensor, tensor_list, scalar, packed_weight };
    std::uint16_t position = 0;
    Kind kind = Kind::tensor;
    bool written = false;
  };

  std::string name;      // "aten::conv2d"
  std::string overload;  // "padding", "" for the default one
  OpKind kind = OpKind::unknown;
  ops::Trait trait = ops::Trait::none;
  const ops::OpCost* cost = nullptr;
  // Without a cost of its own: what it does is all dispatched inside, so that copies there can be the whole work.
  bool composite_explicit = false;
  bool of_extension = false;  // none of torch's own
  // One derivative for all that it dispatches inside, or those of what it dispatches.
  bool composite_implicit = false;
  // What a batch or instance normalisation's forward ends with.
  bool ends_norm = false;
  // The dispatch keys at which a call may be handed on to another dispatch, inside itself, that does the work.
  c10::DispatchKeySet wrapped_by;
  Evidence evidence = 0;  // that a call of it gives
  Unobserved unobserved = Unobserved::no;
  // Learned: the most records that a call of it had inside.
  std::atomic<int> nested{0};
  std::vector<Slot> slots;
  std::vector<ops::Argument> arguments;  // by position, without their values
  std::vector<bool> result_written;      // the result is a written argument (in-place, out=)
};

// The operator behind a RecordFunction of scope FUNCTION; null where it is none (a user's or autograd function's
// range), compiled_region() where torch.compile's code runs. The pointer stays valid for the life of the process; an
// operator whose cost changes gets another one.
OpInfo* op_info(const at::RecordFunction& fn);

// What stands for work that is no operator of torch's, by a name of the user's: declared by them, or unobserved.
OpInfo* named_op(std::string_view name, Unobserved unobserved);

// What stands for compiled code.
OpInfo* compiled_region();
// Whether that autograd node runs the backward of compiled code.
bool is_compiled_backward(const char* node);

}  // namespace roofprof::observe
