#pragma once
// Marks in the rows of a torch::nn model which calls were seen and which were inferred.

#include <set>
#include <vector>

#include "core/run_record.h"

namespace roofprof {

// The modules with calls_visible and inferred set; definitions.md says when. All else about them is known already.
std::vector<Module> attributed(std::vector<Module> modules, const std::vector<OpBucket>& ops,
                               const std::vector<ModuleTime>& times, const std::vector<CallSight>& sights);

// The modules with those marked whose calls may have been at another place of the same module.
std::vector<Module> with_uncertain_places(std::vector<Module> modules, const std::set<ModuleId>& uncertain,
                                          std::vector<Note>& notes);

}  // namespace roofprof
