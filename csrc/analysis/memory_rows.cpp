#include "analysis/memory_rows.h"

#include <algorithm>

namespace roofprof {

std::vector<MemoryRow> memory_rows(const ProfileData& data) {
  std::int64_t all = 0;
  for (const auto& alive : data.alive_at_peak) all = saturating_add(all, alive.bytes);
  std::vector<MemoryRow> rows;
  for (const auto& alive : data.alive_at_peak) {
    rows.push_back({.category = std::string(kMemoryCategoryNames.at(static_cast<std::size_t>(alive.category))),
                    .module = data.modules[index_of(alive.module)].path,
                    .phase = alive.before ? "" : std::string(kPhaseNames.at(static_cast<std::size_t>(alive.phase))),
                    .before = alive.before,
                    .storages = alive.storages,
                    .bytes = alive.bytes,
                    .percent_of_all = all > 0 ? 100 * static_cast<double>(alive.bytes) / static_cast<double>(all) : 0});
  }
  return rows;
}

std::vector<MemoryMoment> memory_moments(const ProfileData& data) {
  const auto& timeline = data.memory_timeline;
  std::vector<MemoryMoment> moments;
  for (const auto& point : timeline.points) {
    moments.push_back({.first_op = std::ssize(moments) * timeline.ops_per_point,
                       .bytes = point.bytes,
                       .module = data.modules[index_of(point.module)].path,
                       .phase = std::string(kPhaseNames.at(static_cast<std::size_t>(point.phase))),
                       .is_peak = std::ssize(moments) == timeline.peak_point});
  }
  return moments;
}

std::vector<MemoryRow> memory_by_category(const std::vector<MemoryRow>& rows) {
  std::vector<MemoryRow> sums;
  for (const auto category : kMemoryCategoryNames) {
    MemoryRow sum{.category = std::string(category)};
    for (const auto& row : rows) {
      if (row.category != category) continue;
      sum.storages += row.storages;
      sum.bytes = saturating_add(sum.bytes, row.bytes);
      sum.percent_of_all += row.percent_of_all;
    }
    if (sum.storages > 0) sums.push_back(std::move(sum));
  }
  return sums;
}

std::string why_no_memory(const ProfileData& data) {
  if (!data.alive_at_peak.empty()) return "";
  if (data.merged() != nullptr) return "the report is of several ranks: look at that of one (report_of)";
  if (data.part) return "the report is of a part of a run, and memory is known of the whole one";
  if (data.imported) return "the trace does not say what was allocated";
  if (data.predicted() != nullptr) {
    return "it was not counted with this batch, precision or number of ranks: count with these, then predict";
  }
  if (const auto* note = find_note(data.notes, "no-memory")) {
    constexpr std::string_view kBefore = "no peak memory: ";
    return note->text.starts_with(kBefore) ? note->text.substr(kBefore.size()) : note->text;
  }
  if (data.peak_memory) {
    return *data.peak_memory > 0 ? "the report was written by a version that did not keep it" : "nothing was allocated";
  }
  return "it was not measured: run, run_step, profile and count measure it, but not a block that is timed, and not a "
         "model of TorchScript";
}

}  // namespace roofprof
