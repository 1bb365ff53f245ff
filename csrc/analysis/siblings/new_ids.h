#pragma once
// Renumbers the modules that observed data name.

#include <vector>

#include "core/profile.h"

namespace roofprof {

// Gives everything that names a module the number new_ids[old]: each member called "module" in core/members.h, at any
// depth. Tree::modules itself stays as it is. Several entries may then name one module; nothing is added up.
void renumber_modules(Profile& data, const std::vector<ModuleId>& new_ids);

}  // namespace roofprof
