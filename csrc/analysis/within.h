#pragma once
// Makes a profile of what ran within one region.

#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns "outer/inner"; "" for kNoRegion.
std::string path_of_region(const Profile& data, RegionId region);

// Returns, by id from kNoRegion on, whether anything is known of the region.
std::vector<bool> existing_regions(const Profile& data);

// Returns the profile of what ran while a region of that name was open, those inside it included. "b" is every region
// of that name, "a/b" those whose next outer region is "a". Roofs, environment, modules and notes are the profile's;
// runs are the region's wall times in them. Throws std::out_of_range, naming the closest, where there is none.
Profile within_region(const Profile& data, std::string_view region);

}  // namespace roofprof
