#pragma once
// Events and collectives name only what the profile has.

#include "core/profile.h"

namespace roofprof {

// Throws std::invalid_argument where an event names what the profile has not, or ends before it begins.
void check_events(const Profile& data);

// Throws in the same way for memory of a module that the profile has not, or a negative size.
void check_memory(const Profile& data);

// Throws in the same way for a collective, or one of its calls.
void check_collectives(const Profile& data);

}  // namespace roofprof
