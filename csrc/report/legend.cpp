// What the columns of a table mean, in a line each.

#include <algorithm>
#include <string_view>

#include "report/surroundings.h"

namespace roofprof {

namespace {

std::string_view counters_legend(const Report& report, TableKind kind) {
  if (kind == TableKind::modules ? !has_counters(report) : !counted_by_kernel(report)) return "";
  return "; DRAM: bytes to and from the device's memory, by hardware counters; DRAM AI = FLOPs / DRAM; ratio = DRAM / "
         "bytes; DRAM B/s = DRAM / time";
}

std::string time_legend(const Report& report, TableKind kind) {
  if (!report.total().time_ns) return "";
  if (!report.data().device_timed) return "; overhead: most of the time is outside ops";
  std::string text = "; time: of kernels, copies and memsets on the device, added up";
  if (kind == TableKind::modules && report.total().utilization) {
    text +=
        "; util = busy / (busy + idle), idle: the device waited for what the row launches; overhead: it mostly waited";
  }
  return text;
}

std::string kernel_legend(const Report& report) {
  std::string text =
      "one line for a kernel, copy or memset in one module, op and launch size; total: of all its launches; time%: of "
      "the total of all lines";
  if (counted_by_kernel(report)) text += "; DRAM: bytes to and from the device's memory, by hardware counters";
  return text;
}

}  // namespace

std::string legend_lines(const Report& report, TableKind kind, std::size_t width) {
  const auto& rows = report.rows();
  const bool of_modules = kind == TableKind::modules;
  if (kind == TableKind::kernels) {
    return report.kernels().empty() ? "" : labelled_paragraph("columns", kernel_legend(report), width);
  }
  std::string text = of_modules ? "a row includes the modules below it" : "a row sums all calls of its ops";
  text +=
      "; MACs: multiply-accumulates; FLOPs = 2 x MACs + other operations; bytes: each op's inputs and outputs once, "
      "from shapes; AI = FLOPs / bytes";
  if (report.total().int_ops > report.total().flops) {
    text += "; most operations are integer ones, which are no FLOPs: column int_ops";
  }
  text += time_legend(report, kind);
  text += counters_legend(report, kind);
  if (report.total().time_ns && !report.ceilings().empty()) {
    text +=
        "; lower bound: sum over ops of max(FLOPs / peak, bytes / bandwidth); bound: the roof that takes most of it, a "
        "dtype's or a memory level's; %roof = lower bound / time; wasted = time - lower bound";
  }
  if (of_modules && has_shares(report)) {
    text += "; share: a module's part of the work of its compiled region, of its ";
    text += report.ceilings().empty() ? "FLOPs" : "lower bound";
    text += ", never of its time";
  }
  if (report.total().incomplete) {
    text += "; >=: a lower limit, an op without a known cost is in it";
    if (has_counters(report)) text += "; <=: an upper one, likewise";
  }
  if (of_modules && std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.inferred; })) {
    text += "; ~: which module ran was inferred";
  }
  return labelled_paragraph("columns", text, width);
}

}  // namespace roofprof
