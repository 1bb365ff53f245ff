#include "roofprof/report.h"

#include <stdexcept>
#include <utility>

#include "figures/derived_figures.h"
#include "values/profile_data.h"

namespace roofprof {

Report::Report(std::shared_ptr<const ProfileData> data, std::optional<std::int64_t> depth)
    : data_(std::move(data)), depth_(depth) {
  if (!data_) throw std::invalid_argument("a report needs profile data");
  DerivedFigures figures = derive_figures(*data_);
  rows_ = std::move(figures.rows);
  total_ = std::move(figures.total);
  kernels_ = std::move(figures.kernels);
  coverage_ = std::move(figures.coverage);
}

const RooflineRow& Report::row(std::string_view path) const { return row_named(path, rows_, *data_); }

std::vector<GroupRow> Report::group(std::span<const std::string> keys) const {
  return group_rows(*data_, total_, keys);
}

bool Report::partial() const { return data_->partial; }

std::optional<std::int64_t> Report::steps() const {
  return data_->runs.steps > 0 ? std::optional(data_->runs.steps) : std::nullopt;
}

const std::vector<std::int64_t>& Report::run_times_ns() const { return data_->runs.total_ns; }

const std::vector<std::int64_t>& Report::bare_times_ns() const { return data_->runs.bare_ns; }

const Ceilings& Report::ceilings() const { return data_->ceilings; }

const Environment& Report::environment() const { return data_->environment; }

}  // namespace roofprof
