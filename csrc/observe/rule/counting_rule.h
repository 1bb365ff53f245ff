#pragma once
// The counting rule: which ops count, and whose work their nested ops are. It decides on plain values that the observer
// collects from torch. docs/definitions.md states the rule, and tests/cpp/observe/rule quotes it case by case. Inline:
// some of this runs for every op.

#include <cstdint>

#include "roofprof/work.h"

namespace roofprof::observe {

// The evidence that is seen inside a call of a module or an autograd function; it decides if work bypassed the
// dispatcher. A sum of:
using Evidence = std::uint8_t;
inline constexpr Evidence kWorkSeen = 1;  // counted, or listed as uncosted
inline constexpr Evidence kFreshMemory =
    2;                                   // allocated and not filled by an op, or brought in from outside (from_numpy)
inline constexpr Evidence kReadOut = 4;  // a tensor was handed out (numpy())
inline constexpr Evidence kViewMade = 8;
inline constexpr Evidence kBufferMade = 16;  // memory for something else to fill
inline constexpr Evidence kBroughtIn = 32;   // memory that may be others' (from_numpy)

// Returns whether work in an autograd function bypassed the dispatcher: nothing was counted, and yet there is memory
// that no op has filled, so something else did. Functions that return a view of their input and make a constant are
// left out.
constexpr bool function_bypasses(Evidence seen) {
  return (seen & kWorkSeen) == 0 && (seen & kFreshMemory) != 0 && ((seen & kReadOut) != 0 || (seen & kViewMade) == 0);
}

// Returns whether work in a module's call may have bypassed the dispatcher, so that it must be found out whose memory
// its output is in.
constexpr bool module_may_bypass(Evidence seen) {
  return (seen & kWorkSeen) == 0 && (seen & (kReadOut | kFreshMemory)) != 0;
}

enum class OpKind : std::uint8_t {
  counted,      // has a cost
  view,         // moves nothing: counted with zero work
  transparent,  // a composite: it only calls other operators
  unknown,      // has no cost
  compiled,     // compiled code, no operator: most of its work is not dispatched
};

// The facts about an operator that the rule needs.
struct OpClass {
  OpKind kind = OpKind::unknown;
  // Matters for an operator without a cost: it dispatches all its work, so the copies inside can be the whole work.
  bool composite_explicit = false;
  // Its derivatives are those of what it dispatches.
  bool composite_implicit = false;
  bool of_extension = false;  // not of torch's namespaces: it may have a kernel that dispatches nothing
};

// The path of a call to the kernel that does its work.
struct DispatchPath {
  bool wrapped = false;  // by autocast, functorch, a dispatch mode or a tensor subclass: they dispatch again inside
  bool by_mode = false;  // by dispatch modes alone
  bool fake = false;     // its tensors hold nothing (meta, FakeTensor), and only shapes are computed
  bool dual = false;     // its tensors have tangents, and forward-mode AD computes the result's inside
};

// ---- when an op starts

// Returns whether ops that the operator dispatches inside can do its work.
constexpr bool is_handed_on(const OpClass& op, const DispatchPath& path) {
  return path.wrapped || (path.dual && op.composite_implicit);
}

// Returns whether an op only computes shapes: a wrapper (DTensor) dispatches ops on fake tensors for the shapes of its
// result, before it does the work on its own tensors. `wrapper`: the path of the innermost wrapped op around it; null:
// there is none.
constexpr bool asks_for_shapes(const DispatchPath& path, const DispatchPath* wrapper) {
  return path.fake && wrapper != nullptr && !wrapper->fake;
}

// Names the owner of the work of an op's nested ops.
enum class NestedWork : std::uint8_t {
  transparent,           // each op's own: the outer op is transparent
  owned,                 // the op's
  owned_below_autograd,  // the op's, except tangents, which are computed above autograd
  owned_but_hooks,  // the op's, except a user's hooks on saved tensors, which run above autograd with grad mode off
};

constexpr NestedWork nested_work(const OpClass& op, const DispatchPath& path, bool only_shapes) {
  const bool has_own_work = op.kind == OpKind::counted || op.kind == OpKind::view;
  if (!only_shapes && (!has_own_work || is_handed_on(op, path))) return NestedWork::transparent;
  return path.dual ? NestedWork::owned_below_autograd : NestedWork::owned;
}

// Returns the owner where a user's hooks get what the op saves for its backward.
constexpr NestedWork with_saved_tensor_hooks(NestedWork nested) {
  return nested == NestedWork::owned ? NestedWork::owned_but_hooks : nested;
}

constexpr bool owns_nested(NestedWork nested) { return nested != NestedWork::transparent; }

// Returns whether an op that starts inside is part of the outer op's work. An op's own kernel runs below autograd.
constexpr bool is_part_of(NestedWork outer, bool grad_mode, bool below_autograd) {
  switch (outer) {
    case NestedWork::transparent:
      return false;
    case NestedWork::owned:
      return true;
    case NestedWork::owned_below_autograd:
      return below_autograd;
    case NestedWork::owned_but_hooks:
      return grad_mode || below_autograd;
  }
  return false;
}

// Returns whether it pays to switch off the records of nested ops, for an op that had `records` of them in an earlier
// call. Switching costs about as much as three to four records.
constexpr bool is_worth_muting(NestedWork nested, int records) { return nested == NestedWork::owned && records >= 4; }

// Returns whether the op itself may launch kernels: views do not, nor do ops that only call other operators.
constexpr bool may_launch(const OpClass& op, const DispatchPath& path, bool only_shapes) {
  if (only_shapes || op.kind == OpKind::view || op.kind == OpKind::transparent) return false;
  return !is_handed_on(op, path);
}

// ---- when it ends

// The work that was counted inside an op. When the op ends, its own work is added.
struct WorkInside {
  bool bytes = false;       // an op moves bytes
  bool copies = false;      // an op reads what it moves
  bool operations = false;  // an op computes
  bool uncosted = false;    // nothing is known of an op
  bool declared = false;    // the user said what is done
  Evidence evidence = 0;    // kBufferMade, kReadOut: for a kernel that is not dispatched

  constexpr bool any() const { return bytes || operations || uncosted; }
  constexpr void add(const WorkInside& other) {
    bytes |= other.bytes;
    copies |= other.copies;
    operations |= other.operations;
    uncosted |= other.uncosted;
    declared |= other.declared;
    evidence |= other.evidence;
  }
  void add(const Work& work) {
    bytes |= work.bytes() > 0;
    copies |= work.read_bytes > 0;
    operations |= work.operations != Work{}.operations;
  }
};

// Says how an op ended.
struct OpEnd {
  bool raised = false;
  bool declared = false;  // it is work that the user declared, which was counted as it began
  bool only_shapes = false;
};

enum class Verdict : std::uint8_t {
  skip,           // it did no work, or none that is not counted yet
  look_through,   // what was counted inside is its work
  count,          // by its cost
  list_uncosted,  // its work is not known
};

// An extension's operator makes memory for its own kernel, or hands tensors to NumPy: the ops that it dispatches
// besides do at most a part of its work.
constexpr bool fills_itself(const OpClass& op, const WorkInside& inside) {
  return op.of_extension && !inside.declared && (inside.evidence & (kBufferMade | kReadOut)) != 0;
}

// Returns whether the work counted inside an operator without a cost can be all its work. If the operator has a kernel
// that allocates and fills its output through the dispatcher, its work is still unknown. An extension's operators are
// registered alike with and without a kernel, and a copy may be of the kernel's result (from_blob), or of data that the
// kernel goes on with in place.
constexpr bool is_explained(const OpClass& op, const WorkInside& inside) {
  if (fills_itself(op, inside)) return false;
  if (inside.operations || inside.declared) return true;
  if (op.of_extension) return op.composite_implicit && inside.uncosted;  // which is listed itself
  return op.composite_explicit && inside.copies;
}

constexpr Verdict verdict(const OpClass& op, const DispatchPath& path, const OpEnd& end, const WorkInside& inside) {
  if (end.raised || end.declared || end.only_shapes) return Verdict::skip;
  const auto own = op.kind == OpKind::unknown ? Verdict::list_uncosted : Verdict::count;
  if (op.kind == OpKind::transparent) return Verdict::look_through;
  // With nothing inside, a tensor subclass did the work where it cannot be seen; a mode had kept the answer (selective
  // checkpointing).
  if (is_handed_on(op, path)) return inside.any() || path.by_mode ? Verdict::look_through : own;
  return op.kind == OpKind::unknown && is_explained(op, inside) ? Verdict::look_through : own;
}

}  // namespace roofprof::observe
