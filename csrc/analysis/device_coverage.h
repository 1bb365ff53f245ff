#pragma once
// What a device's figures leave out, and what its kernels' names tell.

#include <string>
#include <vector>

#include "core/profile.h"

namespace roofprof {

void note_counters(const Profile& data, std::vector<Note>& notes);

// Whether the kernel cannot use what the device's generation brought: it was built for an older one, and that matters
// for it, being arithmetic in a type that tensor cores know, or from before them.
bool is_for_older_generation(const KernelBucket& kernel, const Profile& data);

// Kernels that take a good part of the time and were built for an older generation than the device's.
void note_older_kernels(const Profile& data, std::vector<Note>& notes);

}  // namespace roofprof
