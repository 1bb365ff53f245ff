#pragma once
// The bytes of DRAM that hardware counters saw the ops of a profile move.

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns the modules, phases and regions with an op of theirs of which some kernels belong to no bucket: any bucket of
// that op there may lack some.
std::set<std::pair<Owner, std::string_view>> ops_with_stray_kernels(const std::vector<KernelBucket>& kernels);

// Returns what a counter counted as a whole number; empty where it is none, or below 0.
std::optional<std::int64_t> rounded(std::optional<double> value);

// Adds what another bucket of the same op was seen to move. A sum is known where all its parts are.
void add_counted(std::optional<CountedBytes>& sum, const std::optional<CountedBytes>& part);

// Returns what the kernel moved; empty where not all of its launches were counted.
std::optional<CountedBytes> counted_bytes(const KernelBucket& kernel);

// Returns what all launches of the kernel of compiled code with that id moved; empty where not all were counted.
std::optional<CountedBytes> counted_bytes(std::int64_t compiled, const DeviceWork& device);

// Gives each op what its kernels moved, where these were counted one by one and are known to be all that it launched.
void set_counted_bytes(Counts& counts, const DeviceWork& device);

}  // namespace roofprof
