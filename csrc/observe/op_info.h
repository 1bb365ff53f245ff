#pragma once
// What the observer knows of an operator: looked up once per operator, then found by a pointer comparison.

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/registry.h"

namespace roofprof::observe {

// How an operator takes part in the counting rule (design.md): the outermost op that has a cost wins.
enum class OpKind : std::uint8_t {
  counted,      // has a cost: counted, and what it dispatches inside is not
  view,         // moves nothing: counted with zero work
  transparent,  // a composite: looked through; with nothing inside, it did nothing
  unknown,      // no cost: looked through; with nothing counted inside, it goes to coverage
  region,       // compiled code, no operator: looked through, but most of its work is not dispatched
};

struct OpInfo {
  // An argument that the cost can depend on.
  struct Slot {
    enum class Kind : std::uint8_t { tensor, tensor_list, scalar };
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
  // Learned: the most records that a call of it had inside.
  std::atomic<int> nested{0};
  std::vector<Slot> slots;
  std::vector<std::string> argument_names;  // by position
  std::vector<bool> result_written;         // the result is a written argument (in-place, out=)
};

// The operator behind a RecordFunction of scope FUNCTION; null where it is none (a user's or autograd function's
// range), compiled_region() where torch.compile's code runs. The pointer stays valid for the life of the process.
OpInfo* op_info(const at::RecordFunction& fn);

// What stands for compiled code.
OpInfo* compiled_region();
// Whether that autograd node runs the backward of compiled code.
bool is_compiled_backward(const char* node);

}  // namespace roofprof::observe
