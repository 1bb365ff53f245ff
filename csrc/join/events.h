#pragma once
// The events of the run that the rows come from.

#include <vector>

#include "core/pass.h"
#include "core/profile.h"
#include "join/device_launches.h"

namespace roofprof {

// Returns the host's events, in order and with names. `counted` are the ops of the profile. Keeps nothing where the
// pass has no events.
Events host_events(const Pass& chosen, const std::vector<Pass::Op>& counted);

// Adds what devices ran meanwhile, put on the host's clock by the trace's start; adds nothing where that is not known.
// Keeps at most kEventsKept launches. Throws std::invalid_argument where a kernel has a name that its trace does not
// have.
Events with_launches(Events events, const Pass& chosen, const std::vector<LaunchOwner>& owners);

// Returns notes about events that are missing.
std::vector<Note> notes_on_events(const Events& events, const Pass& chosen);

}  // namespace roofprof
