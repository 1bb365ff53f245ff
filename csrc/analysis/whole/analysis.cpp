#include "analysis/whole/analysis.h"

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/coverage.h"
#include "analysis/findings/findings.h"
#include "analysis/hotspots.h"
#include "analysis/kernel_rows.h"
#include "analysis/language_model.h"
#include "analysis/memory_rows.h"
#include "analysis/ranks/collectives.h"
#include "analysis/region_rows.h"
#include "analysis/rows.h"

namespace roofprof {

Analysis::Analysis(std::shared_ptr<const Profile> data) : data_(std::move(data)) {
  if (!data_) throw InvalidArgument("a report needs profile data");
  check_consistent(*data_);
}

const Analysis::Tree& Analysis::tree() const {
  return tree_.get([&] {
    Tree tree;
    tree.rows = join_rows(*data_);
    tree.total = join_total(*data_, tree.rows);
    add_times_over_ranks(*data_, tree.rows, tree.total);
    add_communication(*data_, tree.rows, tree.total);
    return tree;
  });
}

const std::vector<std::int64_t>& Analysis::parents() const {
  return parents_.get([&] { return row_parents(*data_); });
}

const std::vector<KernelRow>& Analysis::kernels() const {
  return kernels_.get([&] { return kernel_rows(*data_); });
}

const std::vector<MemoryRow>& Analysis::memory() const {
  return memory_.get([&] { return memory_rows(*data_); });
}

const std::vector<RooflineRow>& Analysis::regions() const {
  return regions_.get([&] { return region_rows(*data_); });
}

const Coverage& Analysis::coverage() const {
  return coverage_.get([&] { return make_coverage(*data_, rows(), total()); });
}

const std::vector<Collective>& Analysis::collectives() const {
  return collectives_.get([&] { return collective_rows(*data_); });
}

const std::optional<SlowRank>& Analysis::slow_rank() const {
  return slow_rank_.get([&] { return roofprof::slow_rank(*data_, rows()); });
}

const std::optional<LateRank>& Analysis::late_rank() const {
  return late_rank_.get([&] { return roofprof::late_rank(*data_); });
}

const std::vector<TokenPhase>& Analysis::language_model() const {
  return language_model_.get([&] { return token_phases(*data_); });
}

const Analysis::Folds& Analysis::folds() const {
  return folds_.get([&] { return derive_folds(); });
}

Analysis::Folds Analysis::derive_folds() const {
  const Folding folding = fold_siblings(data_);
  const Profile& folded = *folding.data;
  const auto sums = folding.data == data_ ? rows() : join_rows(folded);
  const auto ops = ops_in_modules(folded, sums, total());

  Folds folds;
  folds.any = folding.data != data_;
  folds.rows = roofprof::folded_rows(folding, sums, *data_, rows());
  for (auto& line : folds.rows) {
    if (line.members.size() == 1) continue;
    std::vector<const RooflineRow*> members;
    for (const std::size_t row : line.members) members.push_back(&rows()[row]);
    add_mean_over_ranks(members, line.mean);
  }
  folds.groups = sibling_groups(rows(), folds.rows);
  folds.memory = memory_rows(folded);
  const auto members_at = [known = members_by_path(folding)](std::string_view path) {
    const auto found = known.find(path);
    return found == known.end() ? 1 : found->second;
  };
  for (auto& row : folds.memory) {
    if (const auto members = members_at(row.module); members > 1) row.module += " x" + std::to_string(members);
  }
  for (auto& row : most_wasting(ops, kMostWasting)) {
    const auto members = members_at(*row.module);
    folds.hotspots.push_back({std::move(row), members});
  }
  folds.findings = findings_on(*data_, folding, ops, folds.rows, rows(), total());
  return folds;
}

const std::vector<Hotspot>& Analysis::hotspots(bool expand) const {
  if (!expand || !folds().any) return folds().hotspots;  // where nothing folds they are the same
  return hotspots_.get([&] {
    std::vector<Hotspot> hotspots;
    for (auto& row : most_wasting(ops_in_modules(*data_, rows(), total()), kMostWasting))
      hotspots.push_back({std::move(row), 1});
    return hotspots;
  });
}

const std::vector<bool>& Analysis::wasting_themselves() const {
  return wasting_.get([&] {
    const auto wasting = roofprof::wasting_themselves(rows(), total());
    std::vector<bool> marks;
    marks.reserve(rows().size());
    for (const auto& row : rows()) marks.push_back(wasting.contains(&row));
    return marks;
  });
}

}  // namespace roofprof
