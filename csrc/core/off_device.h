#pragma once
// Tells which ops launched nothing on the device whose times a profile has.

#include "core/profile.h"

namespace roofprof {

// Sets OpBucket::off_device by what the kernels, copies and fills of the device belong to. An op in compiled code
// launches nothing by itself, and an op some of whose launches are not told from another's may have launched: both stay
// on the device.
void set_off_device(Counts& counts, const Tree& tree, const Maybe<DeviceWork>& device);

}  // namespace roofprof
