#pragma once
// TorchScript's executor may run other operators than its modules' code has: it folds, fuses and differentiates.

#include <optional>
#include <vector>

#include "core/pass.h"
#include "core/profile_data.h"

namespace roofprof {

// Ops with times and without work.
struct OtherOps {
  std::vector<OpBucket> ops;
  std::vector<OpKey> inputs;  // as HostProfile::inputs
  std::vector<OpKey> keys;    // as HostProfile::keys
  std::optional<Note> note;   // empty: none of them has work
};

// For counts of a model's code and times of what the executor made of it: the operators that it ran instead, and a note
// that names them with their modules.
OtherOps other_ops(const Pass& counting, const Pass& timed, const std::vector<Module>& modules);

// Where a pass was counted as the executor runs it: which modules' parts it differentiated as a whole. Empty: none.
std::optional<Note> note_on_differentiated(const Pass& counting, const std::vector<Module>& modules);

}  // namespace roofprof
