#pragma once
// The collectives of a run, and what of their time no computing hides.

#include <cstdint>
#include <vector>

#include "core/collective_data.h"
#include "core/pass.h"
#include "core/profile_data.h"
#include "join/device_launches.h"

namespace roofprof {

// Of each stretch of time, its share of the time in which any of them is under way and nothing is computed. Where
// several are under way at once they share it equally: the sum is the whole. `computed` need not be in order.
std::vector<double> exposed_shares(const Intervals& under_way, Intervals computed);

// Of each collective and each place where code ran meanwhile the exposed time that passed there, shared likewise. Calls
// know their collectives by index.
std::vector<ExposedIn> exposed_by_place(const std::vector<CollectiveCall>& calls, const PassCollectives& pass);

// `keys`: of the profile's ops (host_profile.h). Counts are those of `counting`, times those of `timed`; null: no call
// was timed.
CollectiveData collective_data(const Pass& counting, const Pass* timed, const std::vector<OpKey>& keys);

// A device's collectives are done when their kernels are: these tell the times of those that the host could not. A
// collective has them where all of its op's launches are its own, that is in one group.
CollectiveData with_kernels_of_collectives(CollectiveData data, const std::vector<OpBucket>& ops,
                                           const Launches& launches);

// `timed`: of the run that times are from.
std::vector<Note> notes_on_collectives(const CollectiveData& data, const PassCollectives& timed);

}  // namespace roofprof
