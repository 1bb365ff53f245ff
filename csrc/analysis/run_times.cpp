#include "analysis/run_times.h"

#include "analysis/module_sums.h"
#include "analysis/rows.h"

namespace roofprof {

RowRunTimes row_run_times(const Profile& data) {
  RowRunTimes times;
  const auto self = sum_self(data);
  const auto inclusive = sum_subtrees(data, self);
  ModuleSums total;
  for (const ModuleId id : row_modules(data)) {
    total.add(self[index_of(id)]);
    auto& runs = times.of_rows.emplace_back();
    const auto& sums = inclusive[index_of(id)].times;
    if (data.tree.modules[index_of(id)].compiled_region < 0 && sums.at(data.run.runs.chosen)) runs = sums.by_run;
  }
  if (total.times.at(data.run.runs.chosen)) times.total = total.times.by_run;
  return times;
}

}  // namespace roofprof
