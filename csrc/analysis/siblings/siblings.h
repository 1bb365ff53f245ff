#pragma once
// Equal siblings as one: the layers of a transformer, the experts of a layer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
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
  std::shared_ptr<const ProfileData> data;  // the profile itself where nothing was folded
  std::vector<FoldedModule> modules;        // by id
};

Folding fold_siblings(const std::shared_ptr<const ProfileData>& data);

// How many modules the one of that path stands for.
std::int64_t members_at(const Folding& folding, std::string_view path);

// A line of the folded tree.
struct FoldedRow {
  RooflineRow mean;  // additive figures are those of one member on average; rates and percentages are those of the sums
  std::vector<std::size_t> members;  // rows of the profile that was folded, by index
  std::int64_t count = 1;
  std::int64_t parent = -1;  // the line of its parent, by index
};

// In the order of join_rows. `sums` are the rows of the folded profile, `rows` those of `data`; one that nothing is
// folded into stays as it is there.
std::vector<FoldedRow> folded_rows(const Folding& folding, const std::vector<RooflineRow>& sums,
                                   const ProfileData& data, const std::vector<RooflineRow>& rows);

// The groups, in tree order.
std::vector<Siblings> sibling_groups(const std::vector<RooflineRow>& rows, const std::vector<FoldedRow>& folded);

}  // namespace roofprof
