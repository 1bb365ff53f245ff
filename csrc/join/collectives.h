#pragma once
// The collectives of a run, and what of their time no computing hides.

#include <cstdint>
#include <vector>

#include "core/collective_data.h"
#include "core/pass.h"
#include "core/profile.h"
#include "join/device_launches.h"

namespace roofprof {

// Returns, for each interval, its share of the time in which any of them is under way and nothing is computed. Where
// several are under way at once they share it equally: the sum is the whole. `computed` need not be in order.
std::vector<double> exposed_shares(const Intervals& under_way, Intervals computed);

// Returns, for each collective and each place where code ran meanwhile, the exposed time that passed there. Collectives
// share it as above. Calls refer to their collectives by index.
std::vector<ExposedIn> exposed_by_place(const std::vector<CollectiveCall>& calls, const PassCollectives& pass);

// `counted`: the profile's ops. Counts are those of `counting`, times those of `timed`; null: no call
// was timed.
CollectiveData collective_data(const Pass& counting, const Pass* timed, const std::vector<Pass::Op>& counted);

// Sets the times of a device's collectives, which are done when their kernels are, where the host could not measure
// them. A collective gets them if all launches of its op belong to it, that is if the op ran in one group.
// `of_kernels`: the calls have these times already. Also says by which algorithm each communicated.
CollectiveData with_kernels_of_collectives(CollectiveData data, const std::vector<OpBucket>& ops,
                                           const Launches& launches, bool of_kernels = false);

// `timed`: of the run that times are from.
std::vector<Note> notes_on_collectives(const CollectiveData& data, const PassCollectives& timed);

}  // namespace roofprof
