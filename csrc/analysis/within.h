#pragma once
// What ran within one region, as a profile of its own.

#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// "outer/inner"; "" for kNoRegion.
std::string path_of_region(const Profile& data, RegionId region);

// By id, the first being kNoRegion's: whether anything is known of it.
std::vector<bool> existing_regions(const Profile& data);

// The profile of what ran while a region of that name was open, those inside it included. "b" is every region of that
// name, "a/b" those whose next outer region is "a". Roofs, environment, modules and notes are the profile's; runs are
// the region's wall times in them. Throws std::out_of_range, naming the closest, where there is none.
Profile within_region(const Profile& data, std::string_view region);

}  // namespace roofprof
