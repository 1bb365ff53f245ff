#pragma once
// Finds the rows of a report by a table's word for their kind ("module", "kernel"), for CSV and data frames too.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/tables.h"
#include "roofprof/report.h"

namespace roofprof {

// Returns the keys in "module, op".
std::vector<std::string> split_keys(std::string_view by);

// Returns visit(rows) for the rows of the kind that `by` names. Rows of groups have the `keys` of split_keys(by).
template <class Visitor>
auto visit_rows(const Report& report, std::string_view by, Visitor&& visit) {
  switch (kind_of(by)) {
    case TableKind::modules:
      return visit(report.rows());
    case TableKind::regions:
      return visit(report.regions());
    case TableKind::kernels:
      return visit(report.kernels());
    case TableKind::ranks:
      return visit(report.ranks());
    case TableKind::collectives:
      return visit(report.collectives());
    case TableKind::memory:
      return visit(report.memory_at_peak());
    case TableKind::groups:
      break;
  }
  return visit(report.group(split_keys(by)));
}

}  // namespace roofprof
