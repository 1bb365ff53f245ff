#pragma once
// Takes the bytes that cross the boundaries of a trace's modules from a counted call of the recorded model.

#include <string>

#include "core/profile.h"

namespace roofprof {

// Gives each op of the trace's profile the crossings of the same op (module, name, type, shapes) in `counted`, scaled
// to its calls. Ops outside of the model, and those that `counted` lacks, cross every boundary whole. Nothing is given
// if the latter have more than a twentieth of the bytes in the model, nor if `counted` has the same ops of other shapes
// in their place, nor if the trace has a backward, which no counted call has. Returns what `counted` lacks, or why
// nothing is given, as a sentence; empty: every op has its own.
std::string take_crossings(Profile& data, const Profile& counted);

}  // namespace roofprof
