#pragma once
// Notes what a device's figures leave out, and what its kernels' names tell.

#include <string>
#include <vector>

#include "core/profile.h"

namespace roofprof {

void note_counters(const Profile& data, std::vector<Note>& notes);

// Returns whether the kernel was built for an older generation than the device's and loses by that: an op launched it
// that computes in a type of tensor cores, or it was built before there were tensor cores.
bool is_for_older_generation(const KernelBucket& kernel, const Profile& data);

// Notes the kernels that take a good part of the time and were built for an older generation than the device's.
void note_older_kernels(const Profile& data, std::vector<Note>& notes);

}  // namespace roofprof
