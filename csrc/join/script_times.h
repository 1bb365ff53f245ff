#pragma once
// TorchScript's executor may run other operators than its modules' code has: it folds, fuses and differentiates.

#include <optional>
#include <vector>

#include "core/pass.h"
#include "core/profile_data.h"

namespace roofprof {

// Ops with times and without work.
struct OtherOps {
  std::vector<Pass::Op> ops;
  std::optional<Note> note;  // empty: none of them has work
};

// Returns the operators that TorchScript's executor ran instead of the counted ones, and a note that names them with
// their modules. Used where the model's code was counted and the executor's version of it was timed.
OtherOps other_ops(const Pass& counting, const Pass& timed, const std::vector<Module>& modules);

// Returns a note on the modules whose parts the executor differentiated as a whole, for a pass that was counted as the
// executor runs it; empty if there are none.
std::optional<Note> note_on_differentiated(const Pass& counting, const std::vector<Module>& modules);

}  // namespace roofprof
