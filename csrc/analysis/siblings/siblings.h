#pragma once
// Equal siblings as one: the layers of a transformer, the experts of a layer.

#include <cstdint>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// What a module of a folded profile stands for.
struct FoldedModule {
  std::vector<ModuleId> members;  // in the profile that was folded; one where nothing was
  std::int64_t count = 1;         // how many of them stand below one parent: "x80"
};

// A profile in which equal siblings, subtree by subtree, are one module that did what all of them did. Every sum over
// it is a sum over all members, and so is what csrc/analysis derives from it.
struct Folding {
  ProfileData data;
  std::vector<FoldedModule> modules;  // by id
};

Folding fold_siblings(const ProfileData& data);

// A line of the folded tree.
struct FoldedRow {
  RooflineRow mean;  // additive figures are those of one member on average; rates and percentages are those of the sums
  std::vector<ModuleId> members;
  std::int64_t count = 1;
};

// In the order of join_rows.
std::vector<FoldedRow> folded_rows(const ProfileData& data);

// The groups, in tree order. `rows` are those of join_rows.
std::vector<Siblings> sibling_groups(const ProfileData& data, const std::vector<RooflineRow>& rows);
std::vector<Siblings> sibling_groups(const ProfileData& data, const std::vector<RooflineRow>& rows,
                                     const std::vector<FoldedRow>& folded);

}  // namespace roofprof
