#include "roofprof/report.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include "analysis/group.h"
#include "analysis/language_model.h"
#include "analysis/memory_rows.h"
#include "analysis/predict/prediction.h"
#include "analysis/ranks/rank_figures.h"
#include "analysis/ranks/rank_merger.h"
#include "analysis/rows.h"
#include "analysis/steps.h"
#include "analysis/whole/analysis.h"
#include "analysis/within.h"
#include "core/json/file.h"
#include "core/phrases.h"
#include "core/profile.h"

namespace roofprof {
namespace {

std::map<std::string, GroupRow> by_key(std::vector<GroupRow> rows) {
  std::map<std::string, GroupRow> by;
  for (auto& row : rows) {
    std::string key = row.keys.front();
    by.emplace(std::move(key), std::move(row));
  }
  return by;
}

std::vector<std::chrono::nanoseconds> durations_of(const std::vector<std::int64_t>& ns) {
  return {ns.begin(), ns.end()};
}

}  // namespace

struct detail::ReportParts {
  static Report made(std::shared_ptr<const Profile> data, std::optional<std::int64_t> depth) {
    return {std::make_shared<const Analysis>(std::move(data)), depth};
  }
  static const Analysis& analysis(const Report& report) { return *report.analysis_; }
};

Report make_report(std::shared_ptr<const Profile> data, std::optional<std::int64_t> depth) {
  return detail::ReportParts::made(std::move(data), depth);
}
const Analysis& analysis_of(const Report& report) { return detail::ReportParts::analysis(report); }
const Profile& data_of(const Report& report) { return analysis_of(report).data(); }

std::string_view version() noexcept { return ROOFPROF_VERSION; }

const std::vector<RooflineRow>& Report::rows() const& { return analysis_->rows(); }

const std::vector<std::int64_t>& Report::parents() const& { return analysis_->parents(); }

const RooflineRow& Report::total() const& { return analysis_->total(); }

const std::vector<KernelRow>& Report::kernels() const& { return analysis_->kernels(); }

const std::vector<MemoryRow>& Report::memory_at_peak() const& { return analysis_->memory(); }

std::vector<MemoryMoment> Report::memory_timeline() const { return memory_moments(analysis_->data()); }

const std::vector<RooflineRow>& Report::regions() const& { return analysis_->regions(); }

const Coverage& Report::coverage() const& { return analysis_->coverage(); }

const RooflineRow& Report::row(std::string_view path) const& { return row_named(path, rows(), analysis_->data()); }

std::vector<Siblings> Report::siblings() const { return analysis_->siblings(); }

std::vector<Finding> Report::findings() const { return analysis_->findings(); }

std::vector<GroupRow> Report::group(std::span<const std::string> keys) const {
  return group_rows(analysis_->data(), total(), keys);
}

std::vector<GroupRow> Report::group(std::initializer_list<ByText> keys) const {
  const std::vector<std::string> named(keys.begin(), keys.end());
  return group(std::span(named));
}

std::map<std::string, GroupRow> Report::by_operator() const { return by_key(group({"op"})); }

std::map<std::string, GroupRow> Report::by_module() const { return by_key(group({"module"})); }

std::map<std::pair<std::string, std::string>, GroupRow> Report::by_module_and_operator() const {
  std::map<std::pair<std::string, std::string>, GroupRow> by;
  for (auto& row : group({"module", "op"})) {
    std::pair key(row.keys[0], row.keys[1]);
    by.emplace(std::move(key), std::move(row));
  }
  return by;
}

std::map<std::string, GroupRow> Report::by_phase() const { return by_key(group({"phase"})); }

Report Report::predict(const Ceilings& device, const PredictionOptions& options) const {
  return make_report(std::make_shared<const Profile>(predicted(analysis_->data(), device, options)), depth_);
}

std::string Report::prediction() const {
  const auto* options = analysis_->data().origin.predicted();
  return options == nullptr ? "" : words_of(*options);
}

bool Report::partial() const { return analysis_->data().run.partial; }

std::optional<std::int64_t> Report::steps() const {
  return analysis_->data().run.runs.steps > 0 ? std::optional(analysis_->data().run.runs.steps) : std::nullopt;
}

std::vector<TokenPhase> Report::language_model() const { return analysis_->language_model(); }

std::optional<FlopsUtilization> Report::flops_utilization() const {
  return roofprof::flops_utilization(analysis_->data(), total());
}

Report Report::within(std::string_view region) const {
  return make_report(std::make_shared<const Profile>(within_region(analysis_->data(), region)), depth_);
}

const std::vector<std::int64_t>& Report::step_times_ns() const& { return analysis_->data().run.runs.step_ns; }

std::vector<std::chrono::nanoseconds> Report::step_times() const { return durations_of(step_times_ns()); }

std::optional<StepStatistics> Report::step_statistics() const { return statistics_of_steps(step_times_ns()); }

const std::vector<std::int64_t>& Report::run_times_ns() const& { return analysis_->data().run.runs.total_ns; }

const std::vector<std::int64_t>& Report::bare_times_ns() const& { return analysis_->data().run.runs.bare_ns; }

std::vector<std::chrono::nanoseconds> Report::run_times() const { return durations_of(run_times_ns()); }

std::vector<std::chrono::nanoseconds> Report::bare_times() const { return durations_of(bare_times_ns()); }

std::vector<Collective> Report::collectives() const { return analysis_->collectives(); }
const std::vector<Rank>& Report::ranks() const& { return ranks_of(analysis_->data()); }

Report Report::report_of_rank(std::int64_t rank) const {
  static const std::vector<KeptReport> kNone;
  const auto& kept = analysis_->data().origin.merged() == nullptr ? kNone : analysis_->data().origin.merged()->kept;
  const auto found = std::ranges::find(kept, rank, &KeptReport::rank);
  if (found != kept.end()) return make_report(found->report, {});
  std::string known;
  for (const auto& one : kept) add_item(known, std::to_string(one.rank));
  throw OutOfRange(
      "the report of rank " + std::to_string(rank) + " is not in this one, which has " +
      (known.empty() ? std::string("none of a rank") : "those of the slowest and the median rank: " + known));
}

Report merge_reports(const std::vector<std::string>& paths) {
  RankMerger merger;
  std::map<std::int64_t, std::string> path_of;
  for (const auto& path : paths) path_of[merger.add(data_of(Report::from_json(path)), path)] = path;
  for (const auto rank : merger.typical_ranks())
    merger.keep(rank, analysis_of(Report::from_json(path_of.at(rank))).shared_data());
  return make_report(std::make_shared<const Profile>(merger.finish()), {});
}

const std::vector<std::int64_t>& Report::missing_ranks() const& {
  static const std::vector<std::int64_t> kNone;
  return analysis_->data().origin.merged() == nullptr ? kNone : analysis_->data().origin.merged()->missing;
}
const Ceilings& Report::ceilings() const& { return analysis_->data().roofs; }

const Environment& Report::environment() const& { return analysis_->data().run.environment; }

}  // namespace roofprof
