#pragma once
// What a traced run launched, before its kernels are counted one by one.

#include <cstdint>
#include <string>

#include "core/device_data.h"

namespace roofprof {

// How many kernels; copies and fills are none.
std::int64_t kernels_in(const DeviceTrace& trace);

// Why the kernels of that run cannot be counted one by one, which lets each run alone and to its end; empty where they
// can.
std::string uncountable_kernels(const DeviceTrace& trace);

}  // namespace roofprof
