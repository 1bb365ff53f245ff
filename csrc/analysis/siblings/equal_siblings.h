#pragma once
// Which siblings are equal, subtree by subtree.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// Fewer equal siblings stay lines of their own: two say as much as one of them with a mark.
inline constexpr std::size_t kFewestFolded = 3;

using EqualSiblings = std::vector<ModuleId>;

struct FoldingPlan {
  std::vector<ModuleId> into;                // by id: the module that it is folded into; itself where it is not
  std::map<ModuleId, EqualSiblings> groups;  // by their first member, which the others are folded into
};

// Equal are siblings of one type whose subtrees have equal types, names, shapes, work, calls and parameters, and of
// which the same is known; times may differ. Their names must be numbered alike ("0", "1"; "conv1", "conv2"): other
// names say what a module is for. Modules without others below them must follow each other, since they are the steps
// of something; of blocks others may lie between.
FoldingPlan plan_folding(const ProfileData& data);

// The last part of a module's path, as its parent has it.
std::string_view own_name(const ProfileData& data, ModuleId id);

// "0-3, 5"; of more than three pieces the first two and the last: "0, 2, ..., 78".
std::string name_of_group(const ProfileData& data, const EqualSiblings& group);

}  // namespace roofprof
