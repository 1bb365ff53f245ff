#pragma once
// Everything that follows from a profile, each part derived once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/ranks/rank_figures.h"
#include "analysis/siblings/siblings.h"
#include "analysis/whole/kept.h"
#include "core/profile.h"

namespace roofprof {

// A pair of module and op that wastes time.
struct Hotspot {
  GroupRow row;
  std::int64_t members = 1;  // how many equal modules it is the sum of
};

// A part is derived when it is first asked for, and kept. Several threads may read one Analysis.
class Analysis {
 public:
  // Throws std::invalid_argument where the data contradicts itself (check_consistent).
  explicit Analysis(std::shared_ptr<const Profile> data);

  const Profile& data() const { return *data_; }
  const std::shared_ptr<const Profile>& shared_data() const { return data_; }

  // Returns a row for each module, parents before children, with its times over ranks and its communication.
  const std::vector<RooflineRow>& rows() const { return tree().rows; }
  const RooflineRow& total() const { return tree().total; }
  // Returns the index of each row's parent; -1 for the model and for the rows at its level.
  const std::vector<std::int64_t>& parents() const;

  const std::vector<KernelRow>& kernels() const;
  const std::vector<MemoryRow>& memory() const;  // at its peak
  const std::vector<RooflineRow>& regions() const;
  const Coverage& coverage() const;
  const std::vector<Collective>& collectives() const;
  const std::optional<SlowRank>& slow_rank() const;
  const std::optional<LateRank>& late_rank() const;
  const std::vector<TokenPhase>& language_model() const;

  // Returns the rows with equal siblings as one.
  const std::vector<FoldedRow>& folded_rows() const { return folds().rows; }
  const std::vector<Siblings>& siblings() const { return folds().groups; }
  const std::vector<MemoryRow>& folded_memory() const { return folds().memory; }
  const std::vector<Finding>& findings() const { return folds().findings; }

  // Returns the kMostWasting pairs with the most wasted time: equal siblings as one, or where they are expanded each
  // module by itself.
  const std::vector<Hotspot>& hotspots(bool expand) const;
  // Returns, for each row, whether it wastes more in its own ops than the modules below it do.
  const std::vector<bool>& wasting_themselves() const;

 private:
  struct Tree {
    std::vector<RooflineRow> rows;
    RooflineRow total;
  };
  // The parts that need the folded profile, which is large and not kept.
  struct Folds {
    bool any = false;  // some siblings are equal
    std::vector<FoldedRow> rows;
    std::vector<Siblings> groups;
    std::vector<MemoryRow> memory;
    std::vector<Hotspot> hotspots;
    std::vector<Finding> findings;
  };

  const Tree& tree() const;
  const Folds& folds() const;
  Folds derive_folds() const;

  std::shared_ptr<const Profile> data_;
  Kept<Tree> tree_;
  Kept<std::vector<std::int64_t>> parents_;
  Kept<std::vector<KernelRow>> kernels_;
  Kept<std::vector<MemoryRow>> memory_;
  Kept<std::vector<RooflineRow>> regions_;
  Kept<Coverage> coverage_;
  Kept<std::vector<Collective>> collectives_;
  Kept<std::optional<SlowRank>> slow_rank_;
  Kept<std::optional<LateRank>> late_rank_;
  Kept<std::vector<TokenPhase>> language_model_;
  Kept<Folds> folds_;
  Kept<std::vector<Hotspot>> hotspots_;
  Kept<std::vector<bool>> wasting_;
};

// Returns what follows from the report's profile.
[[nodiscard]] const Analysis& analysis_of(const Report& report);

}  // namespace roofprof
