#pragma once
// Finds what the first call of a model did that later calls did not: it made buffers, masks and anchors that the model
// keeps.

#include <optional>
#include <vector>

#include "core/pass.h"
#include "core/profile_data.h"

namespace roofprof {

// Names the operators that `first` ran more or less often than a later call, and their modules; empty where it traced
// code and nothing else.
std::optional<Note> note_on_first_call(const Pass& first, const Pass& later, const std::vector<Module>& modules);

}  // namespace roofprof
