#pragma once
// TorchScript's executor may run other operators than its modules' code has: it folds, fuses and differentiates.

#include "core/profile_data.h"
#include "observe/session.h"

namespace roofprof::observe {

class LaunchPlaces;

// For counts of a model's code and times of what the executor made of it: the operators that it ran instead get their
// times, without work, and a note names them with their modules.
void time_other_ops(const Pass& counting, const Pass& timed, ProfileData& data, LaunchPlaces& places);

// Where a pass was counted as the executor runs it: says which modules' parts it differentiates as a whole.
void note_differentiated(const Pass& counting, ProfileData& data);

}  // namespace roofprof::observe
