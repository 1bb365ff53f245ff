#pragma once
// What a device's figures leave out, and what its kernels' names tell.

#include <string>
#include <vector>

#include "values/profile_data.h"

namespace roofprof {

void note_counters(const ProfileData& data, std::vector<Note>& notes);

// Kernels that take a good part of the time and were built for an older generation than the device's: they cannot use
// what came later. Only where that matters: arithmetic in a type that tensor cores know, or a kernel from before them.
void note_older_kernels(const ProfileData& data, std::vector<Note>& notes);

}  // namespace roofprof
