#pragma once
// From observed data to rows: sums per module, inclusive from self, times of the chosen run.

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/roofline.h"
#include "core/profile.h"

namespace roofprof {

// Throws std::invalid_argument with one sentence where indices or sizes in the data contradict each other (a JSON file
// edited by hand). Everything behind it may index without looking.
void check_consistent(const Profile& data);

// A row for each module in tree order (parents before children, siblings as given), then "(outside)" and "(optimizer)"
// where they did something. Inclusive figures are the sum of self over the subtree.
std::vector<RooflineRow> join_rows(const Profile& data);
// The modules of these rows, in their order.
std::vector<ModuleId> row_modules(const Profile& data);
// By row: the index of its parent's row, which is before it; -1 of the model and of rows that stand at its level.
std::vector<std::int64_t> row_parents(const Profile& data);

// The row of that path; of a region its bare name will do where no other has it. Throws std::out_of_range, naming the
// closest paths.
const RooflineRow& row_named(std::string_view path, const std::vector<RooflineRow>& rows, const Profile& data);

// The sum over all rows, with the model's parameters and calls. Where threads ran at once, its rates, wasted time and
// % of roof are those of its wall time, and do not add up.
RooflineRow join_total(const Profile& data, const std::vector<RooflineRow>& rows);

// Whether threads ran at once, by the clock: their times add up to more than passed.
bool threads_overlap(const Profile& data, const RooflineRow& total);

// Which rows exist, by module id: all modules of the model, the other roots only where they hold something.
std::vector<bool> existing_rows(const Profile& data);

// Calls of each module's forward, by module id.
std::vector<std::int64_t> calls_by_module(const Profile& data);

// How much longer the chosen run took than the median run without any observer, as a fraction of the latter; empty
// where either was not taken twice, and where the difference is within the noise of one of them.
std::optional<double> observer_overhead(const Runs& runs);

}  // namespace roofprof
