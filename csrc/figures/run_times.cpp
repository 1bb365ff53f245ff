#include "figures/run_times.h"

#include "figures/module_sums.h"
#include "figures/rows.h"

namespace roofprof {

RowRunTimes row_run_times(const ProfileData& data) {
  RowRunTimes times;
  const auto self = sum_self(data);
  const auto inclusive = sum_subtrees(data, self);
  const auto exists = existing_rows(data);
  ModuleSums total;
  for (std::size_t id = 0; id < self.size(); ++id) {
    if (!exists[id]) continue;
    total.add(self[id]);
    const auto& module = data.modules[id];
    const auto& sums = inclusive[id].times;
    if (module.compiled_region < 0 && sums.at(data.runs.chosen)) times.by_path[module.path] = sums.by_run;
  }
  if (total.times.at(data.runs.chosen)) times.total = total.times.by_run;
  return times;
}

}  // namespace roofprof
