#pragma once
// Finds out, for the doctor, what CUPTI can measure here.

#include <vector>

#include "device/interface/finding.h"

namespace roofprof::cupti {

// Adds what was found of the library, of kernel times and of counters, behind the driver's gate. admins_only: the
// driver says that counters are not for this process, which is then not tried.
void examine(bool admins_only, std::vector<Finding>& findings);

}  // namespace roofprof::cupti
