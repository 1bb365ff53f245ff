#pragma once
// Folds equal siblings into one line: finds which subtrees are equal, their mean, and which members stand out.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Fewer equal siblings stay separate lines: two say as much as one of them with a mark.
inline constexpr std::size_t kFewestFolded = 3;

using EqualSiblings = std::vector<ModuleId>;

struct FoldingPlan {
  std::vector<ModuleId> into;                // by id: the module that it is folded into; itself where it is not
  std::map<ModuleId, EqualSiblings> groups;  // by their first member, which the others are folded into
};

// Finds equal siblings. They have one type, their subtrees have equal types, names, shapes, work, calls and parameters,
// and the same is known of them; times may differ. Their names must be numbered alike ("0", "1"; "conv1", "conv2"):
// other names say what a module is for. Modules without others below them must follow each other, since they are the
// steps of something; other modules may lie between blocks.
FoldingPlan plan_folding(const Profile& data);

// Returns the last part of a module's path, as its parent has it.
std::string_view own_name(const Profile& data, ModuleId id);

// Returns "0-3, 5"; of more than three pieces the first two and the last: "0, 2, ..., 78".
std::string name_of_group(const Profile& data, const EqualSiblings& group);

// ---- Equal siblings as one: the layers of a transformer, the experts of a layer.

// The modules that a module of a folded profile represents.
struct FoldedModule {
  std::vector<ModuleId> members;  // in the profile that was folded; one where nothing was
  std::int64_t count = 1;         // how many of them stand below one parent: "x80"
};

// A profile in which equal siblings, subtree by subtree, are one module that did what all of them did. Every sum over
// it is a sum over all members, and so is what csrc/analysis derives from it.
struct Folding {
  std::shared_ptr<const Profile> data;  // the profile itself where nothing was folded
  std::vector<FoldedModule> modules;    // by id
};

Folding fold_siblings(const std::shared_ptr<const Profile>& data);

// Returns how many modules the one of each path represents.
std::map<std::string_view, std::int64_t> members_by_path(const Folding& folding);

// A line of the folded tree.
struct FoldedRow {
  RooflineRow mean;  // additive figures are those of one member on average; rates and percentages are those of the sums
  std::vector<std::size_t> members;  // rows of the profile that was folded, by index
  std::int64_t count = 1;
  std::int64_t parent = -1;  // the line of its parent, by index
};

// Returns the rows in the order of join_rows. `sums` are the rows of the folded profile, `rows` those of `data`; a row
// that nothing is folded into stays unchanged.
std::vector<FoldedRow> folded_rows(const Folding& folding, const std::vector<RooflineRow>& sums, const Profile& data,
                                   const std::vector<RooflineRow>& rows);

// Returns the groups, in tree order.
std::vector<Siblings> sibling_groups(const std::vector<RooflineRow>& rows, const std::vector<FoldedRow>& folded);

}  // namespace roofprof
