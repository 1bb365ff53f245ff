#pragma once
// Makes the rows of observed data: sums per module, inclusive figures from self figures, times of the chosen run.

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/roofline.h"
#include "core/profile.h"

namespace roofprof {

// Throws std::invalid_argument with one sentence where indices or sizes in the data contradict each other (a JSON file
// edited by hand). Everything behind it may index without looking.
void check_consistent(const Profile& data);

// Returns a row for each module in tree order (parents before children, siblings as given), then "(outside)" and
// "(optimizer)" where they did something. Inclusive figures are the sum of self over the subtree.
std::vector<RooflineRow> join_rows(const Profile& data);
// Returns the modules of these rows, in their order.
std::vector<ModuleId> row_modules(const Profile& data);
// Returns the index of each row's parent, which comes before it; -1 for the model and for rows at its level.
std::vector<std::int64_t> row_parents(const Profile& data);

// Returns the row of that path; a region's bare name will do where no other has it. Throws std::out_of_range, naming
// the closest paths.
const RooflineRow& row_named(std::string_view path, const std::vector<RooflineRow>& rows, const Profile& data);

// Returns the sum over all rows, with the model's parameters and calls. Where threads ran at once, its rates, wasted
// time and % of roof are those of its wall time, and do not add up.
RooflineRow join_total(const Profile& data, const std::vector<RooflineRow>& rows);

// Returns whether threads ran at once, by the clock: their times add up to more than the wall time.
bool threads_overlap(const Profile& data, const RooflineRow& total);

// Returns which rows exist, by module id: all modules of the model, the other roots only where they hold something.
std::vector<bool> existing_rows(const Profile& data);

// Returns whether some run of the module, or the host in it, took time.
bool took_time(const ModuleTime& time);

// Returns the calls of each module's forward, by module id.
std::vector<std::int64_t> calls_by_module(const Profile& data);

// Returns how much longer the chosen run took than the median run without any observer, as a fraction of the latter;
// empty where either was not taken twice, and where the difference is within the noise of one of them.
std::optional<double> observer_overhead(const Runs& runs);

}  // namespace roofprof
