#pragma once
// Every figure that follows from a profile: what a report shows, without anything that prints it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

struct DerivedFigures {
  std::vector<RooflineRow> rows;
  RooflineRow total;
  std::vector<KernelRow> kernels;
  std::vector<RooflineRow> regions;
  Coverage coverage;
};

// Throws std::invalid_argument where the data contradicts itself (check_consistent).
DerivedFigures derive_figures(const ProfileData& data);

// The row of that path; of a region its bare name will do where no other has it. Throws std::out_of_range, naming the
// closest paths.
const RooflineRow& row_named(std::string_view path, const std::vector<RooflineRow>& rows, const ProfileData& data);

// Sums over ops by keys among "phase", "op", "module", "scope", "dtype", "shapes". Throws std::invalid_argument for any
// other key. The time of a group is the time of its ops: module code and kernels around them belong to no op.
std::vector<GroupRow> group_rows(const ProfileData& data, const Figures& total, std::span<const std::string> keys);

}  // namespace roofprof
