#include "analysis/memory_rows.h"

#include <algorithm>

namespace roofprof {

std::vector<MemoryRow> memory_rows(const Profile& data) {
  std::int64_t all = 0;
  for (const auto& alive : data.counts.memory.alive) all = saturating_add(all, alive.bytes);
  std::vector<MemoryRow> rows;
  for (const auto& alive : data.counts.memory.alive) {
    rows.push_back({.category = std::string(kMemoryCategoryNames.at(static_cast<std::size_t>(alive.category))),
                    .module = data.tree.modules[index_of(alive.module)].path,
                    .phase = alive.before ? std::nullopt : std::optional(alive.phase),
                    .before = alive.before,
                    .storages = alive.storages,
                    .bytes = alive.bytes,
                    .percent_of_all = all > 0 ? 100 * static_cast<double>(alive.bytes) / static_cast<double>(all) : 0});
  }
  return rows;
}

std::vector<MemoryMoment> memory_moments(const Profile& data) {
  const auto& timeline = data.counts.memory.timeline;
  std::vector<MemoryMoment> moments;
  for (const auto& point : timeline.points) {
    moments.push_back({.first_op = std::ssize(moments) * timeline.ops_per_point,
                       .bytes = point.bytes,
                       .module = data.tree.modules[index_of(point.module)].path,
                       .phase = point.phase,
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

std::string why_no_memory(const Profile& data) {
  if (!data.counts.memory.alive.empty()) return "";
  if (data.origin.merged() != nullptr) return "the report is of several ranks: look at that of one (report_of)";
  if (data.origin.part) return "the report is of a part of a run, and memory is known of the whole one";
  if (data.origin.imported) return "the trace does not say what was allocated";
  if (data.origin.predicted() != nullptr) {
    return "it was not counted with this batch, precision or number of ranks: count with these, then predict";
  }
  if (const auto* note = find_note(data.notes, "no-memory")) {
    constexpr std::string_view kBefore = "no peak memory: ";
    return note->text.starts_with(kBefore) ? note->text.substr(kBefore.size()) : note->text;
  }
  if (data.counts.memory.peak_bytes) {
    return *data.counts.memory.peak_bytes > 0 ? "the report was written by a version that did not keep it"
                                              : "nothing was allocated";
  }
  return "it was not measured: run, run_step, profile and count measure it, but not a block that is timed, and not a "
         "model of TorchScript";
}

}  // namespace roofprof
