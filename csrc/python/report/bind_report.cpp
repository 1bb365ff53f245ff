// Binds reports: their coverage, their printers, and their sources.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <iterator>
#include <limits>
#include <utility>

#include "analysis/ranks/rank_merger.h"
#include "analysis/run_times.h"
#include "analysis/whole/analysis.h"
#include "core/phrases.h"
#include "core/profile_data.h"
#include "python/report/bindings.h"
#include "report/tables.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

void bind_coverage(py::module_& module) {
  py::class_<UncostedOp>(module, "UncostedOp")
      .def_readonly("op", &UncostedOp::op)
      .def_readonly("calls", &UncostedOp::calls)
      .def_readonly("percent_of_time", &UncostedOp::percent_of_time)
      .def_readonly("modules", &UncostedOp::modules)
      .def_readonly("module_count", &UncostedOp::module_count)
      .def("__repr__", repr_of(+[](const UncostedOp& self) {
             return "<UncostedOp " + self.op + ": " + counted(self.calls, "call") + " in " +
                    counted(self.module_count, "module") + ">";
           }));
  py::class_<Coverage>(module, "Coverage")
      .def_readonly("uncosted", &Coverage::uncosted)
      .def_readonly("uncosted_ops", &Coverage::uncosted_ops)
      .def_readonly("uncalled_modules", &Coverage::uncalled_modules)
      .def_readonly("unattributed_kernels", &Coverage::unattributed_kernels)
      .def_readonly("dropped_records", &Coverage::dropped_records)
      .def_readonly("unobserved", &Coverage::unobserved)
      .def_readonly("notes", &Coverage::notes)
      .def("__repr__", repr_of(+[](const Coverage& self) {
             return "<Coverage: " + counted(std::ssize(self.uncosted), "uncosted op") + ", " +
                    std::to_string(self.unobserved.size()) + " unobserved, " +
                    counted(std::ssize(self.uncalled_modules), "uncalled module") + ", " +
                    counted(std::ssize(self.notes), "note") + ">";
           }));
}

void bind_advice(py::module_& module) {
  py::class_<Advice>(module, "Advice")
      .def_readonly("rule", &Advice::rule)
      .def_readonly("module", &Advice::module)
      .def_readonly("modules", &Advice::modules)
      .def_readonly("ops", &Advice::ops)
      .def_readonly("text", &Advice::text)
      .def_property_readonly("figures",
                             [](const Advice& self) {
                               py::dict figures;
                               for (const auto& [name, value] : self.figures) figures[py::str(name)] = value;
                               return figures;
                             })
      .def_readonly("source", &Advice::source)
      .def("__repr__", repr_of(+[](const Advice& self) { return "<Advice " + self.rule + ": " + self.text + ">"; }));
}

void bind_siblings(py::module_& module) {
  py::class_<Siblings>(module, "Siblings")
      .def_readonly("name", &Siblings::name)
      .def_readonly("paths", &Siblings::paths)
      .def_readonly("count", &Siblings::count)
      .def_readonly("rows", &Siblings::rows)
      .def_property_readonly("mean", &Siblings::mean)
      .def_readonly("spread", &Siblings::spread)
      .def_readonly("slowest", &Siblings::slowest)
      .def_readonly("slowest_ratio", &Siblings::slowest_ratio)
      .def("__repr__", repr_of(+[](const Siblings& self) {
             return "<Siblings '" + self.name + "' x" + std::to_string(self.count) + ">";
           }));
}

void bind_folds(py::module_& module) {
  py::class_<FoldedRow>(module, "FoldedRow")
      .def_readonly("mean", &FoldedRow::mean)
      .def_readonly("members", &FoldedRow::members)
      .def_readonly("count", &FoldedRow::count)
      .def_readonly("parent", &FoldedRow::parent)
      .def("__repr__", repr_of(+[](const FoldedRow& self) {
             return "<FoldedRow '" + self.mean.path + "' of " + counted(std::ssize(self.members), "row") + ">";
           }));
}

void bind_steps(py::module_& module) {
  const auto seconds = [](double StepStatistics::*member) {
    return [member](const StepStatistics& self) { return self.*member * 1e-9; };
  };
  py::class_<StepStatistics>(module, "StepStatistics")
      .def_readonly("count", &StepStatistics::count)
      .def_property_readonly("mean", seconds(&StepStatistics::mean_ns))
      .def_property_readonly("median", seconds(&StepStatistics::median_ns))
      .def_readonly("spread", &StepStatistics::spread)
      .def_property_readonly("slowest",
                             [](const StepStatistics& self) { return static_cast<double>(self.slowest_ns) * 1e-9; })
      .def_readonly("slowest_index", &StepStatistics::slowest_index)
      .def("__repr__", repr_of(+[](const StepStatistics& self) {
             return "<StepStatistics of " + counted(self.count, "step") + ">";
           }));
}

void bind_language_model(py::module_& module) {
  py::class_<TokenPhase>(module, "TokenPhase")
      .def_readonly("name", &TokenPhase::name)
      .def_readonly("calls", &TokenPhase::calls)
      .def_readonly("sequences", &TokenPhase::sequences)
      .def_readonly("tokens", &TokenPhase::tokens)
      .def_readonly("least_context", &TokenPhase::least_context)
      .def_readonly("most_context", &TokenPhase::most_context)
      .def_readonly("weight_bytes", &TokenPhase::weight_bytes)
      .def_readonly("cache_bytes", &TokenPhase::cache_bytes)
      .def_readonly("macs", &TokenPhase::macs)
      .def_readonly("flops", &TokenPhase::flops)
      .def_readonly("bytes", &TokenPhase::bytes)
      .def_readonly("intensity", &TokenPhase::intensity)
      .def_readonly("flops_per_token", &TokenPhase::flops_per_token)
      .def_property_readonly("time",
                             [](const TokenPhase& self) {
                               return self.time_ns ? std::optional(static_cast<double>(*self.time_ns) * 1e-9)
                                                   : std::nullopt;
                             })
      .def_readonly("tokens_per_second", &TokenPhase::tokens_per_second)
      .def("__repr__", repr_of(+[](const TokenPhase& self) {
             return "<TokenPhase " + self.name + ": " + counted(self.calls, "call") + ", " +
                    counted(self.tokens, "token") + ">";
           }));
}

void bind_ranks(py::module_& module) {
  py::class_<ClockOffset>(module, "ClockOffset")
      .def(py::init<std::int64_t, std::int64_t>(), py::arg("offset_ns"), py::arg("error_ns"));
  py::class_<RankMerger>(module, "RankMerger")
      .def(py::init())
      .def(
          "add",
          [](RankMerger& self, const Report& report, const std::string& name, std::int64_t rank,
             const std::string& host,
             const std::optional<ClockOffset>& clock) { return self.add(report.data(), name, rank, host, clock); },
          py::arg("report"), py::arg("name"), py::arg("rank") = -1, py::arg("host") = "", py::arg("clock") = py::none())
      .def("typical_ranks", &RankMerger::typical_ranks)
      .def("keep", &RankMerger::keep, py::arg("rank"), py::arg("json"))
      .def("expect", &RankMerger::expect, py::arg("world_size"))
      .def("finish",
           [](RankMerger& self) { return make_report(std::make_shared<const ProfileData>(self.finish()), {}); });
}

// Returns the accessor of a report that is kept alive; a report that is a temporary has another one.
template <class Value>
auto kept(const Value& (Report::*accessor)() const&) {
  return [accessor](const Report& self) -> const Value& { return (self.*accessor)(); };
}

}  // namespace

void bind_report(py::module_& module) {
  bind_ranks(module);
  bind_coverage(module);
  bind_advice(module);
  bind_siblings(module);
  bind_folds(module);
  bind_steps(module);
  bind_language_model(module);
  module.def(
      "report_from_json", [](std::string_view text) { return Report::from_json_text(text); }, py::arg("text"));
  py::class_<Report>(module, "Report")
      // Makes the report of a call that did nothing: its tables refuse the same arguments as those of every report.
      .def(py::init([] {
        auto data = std::make_shared<ProfileData>();
        data->modules.resize(static_cast<std::size_t>(kOptimizer) + 1);
        return make_report(std::move(data), {});
      }))
      .def_property_readonly("rows", kept(&Report::rows))
      .def("parents", kept(&Report::parents))
      .def_property_readonly("folded_rows", [](const Report& self) { return self.analysis().folded_rows(); })
      .def_property_readonly("total", kept(&Report::total))
      .def(
          "row", [](const Report& self, std::string_view path) -> const RooflineRow& { return self.row(path); },
          py::arg("path"))
      .def_property_readonly("siblings", &Report::siblings)
      .def_property_readonly("advice", &Report::advice)
      .def("group", [](const Report& self, const std::vector<std::string>& keys) { return self.group(keys); })
      .def_property_readonly("kernels", kept(&Report::kernels))
      .def_property_readonly("regions", kept(&Report::regions))
      .def("within", &Report::within, py::arg("region"))
      .def_property_readonly("language_model", &Report::language_model)
      .def_property_readonly("flops_utilization",
                             [](const Report& self) -> std::optional<std::pair<double, double>> {
                               const auto found = self.flops_utilization();
                               return found ? std::optional(std::pair(found->mfu, found->hfu)) : std::nullopt;
                             })
      .def_property_readonly("step_ns", kept(&Report::step_times_ns))
      .def_property_readonly("step_statistics", &Report::step_statistics)
      .def_property_readonly("within_region", [](const Report& self) { return self.data().within; })
      .def_property_readonly("coverage", kept(&Report::coverage))
      .def_property_readonly("ceilings", kept(&Report::ceilings))
      .def_property_readonly("environment",
                             [](const Report& self) {
                               py::dict result;
                               for (const auto& [key, value] : self.environment())
                                 result[py::str(key)] = py::cast(value);
                               return result;
                             })
      .def_property_readonly("model", [](const Report& self) { return self.data().model; })
      .def_property_readonly("device", [](const Report& self) { return self.data().device; })
      .def_property_readonly("scope", [](const Report& self) { return self.data().mode; })
      .def_property_readonly("partial", &Report::partial)
      .def_property_readonly("collectives", &Report::collectives)
      .def_property_readonly("ranks", kept(&Report::ranks))
      .def_property_readonly("missing_ranks", kept(&Report::missing_ranks))
      .def("report_of_rank", &Report::report_of_rank, py::arg("rank"))
      .def_property_readonly("steps", &Report::steps)
      .def_property_readonly("runs_ns", kept(&Report::run_times_ns))
      .def_property_readonly("bare_ns", kept(&Report::bare_times_ns))
      .def("row_run_times_ns",
           [](const Report& self) {
             RowRunTimes times = row_run_times(self.data());
             return std::pair(std::move(times.total), std::move(times.of_rows));
           })
      .def(
          "document",
          [](const Report& self, std::optional<std::int64_t> depth, std::string sort, std::vector<std::string> columns,
             std::string by, std::int64_t limit, bool legend, bool for_shell, bool expand) {
            return report_document(self, {.depth = depth,
                                          .sort = std::move(sort),
                                          .columns = std::move(columns),
                                          .by = std::move(by),
                                          .limit = limit,
                                          .legend = legend,
                                          .speech = for_shell ? Speech::shell : Speech::python,
                                          .expand = expand});
          },
          py::arg("depth") = py::none(), py::arg("sort") = "", py::arg("columns") = std::vector<std::string>(),
          py::arg("by") = "module", py::arg("limit") = 0, py::arg("legend") = true, py::arg("for_shell") = false,
          py::arg("expand") = false)
      .def(
          "table",
          [](const Report& self, std::optional<std::int64_t> depth, std::string sort, std::vector<std::string> columns,
             std::string by, std::int64_t width, std::int64_t limit, bool legend, bool for_shell, bool expand) {
            return self.table({.depth = depth,
                               .sort = std::move(sort),
                               .columns = std::move(columns),
                               .by = std::move(by),
                               .width = width,
                               .limit = limit,
                               .legend = legend,
                               .speech = for_shell ? Speech::shell : Speech::python,
                               .expand = expand});
          },
          py::arg("depth"), py::arg("sort"), py::arg("columns"), py::arg("by"), py::arg("width"), py::arg("limit"),
          py::arg("legend"), py::arg("for_shell") = false, py::arg("expand") = false)
      .def(
          "part",
          [](const Report& self, const std::string& part, std::string by) {
            constexpr std::int64_t kAll = std::numeric_limits<std::int32_t>::max();
            return part_of_report(self, part,
                                  {.by = std::move(by), .limit = kAll, .speech = Speech::python, .expand = true});
          },
          py::arg("part"), py::arg("by") = "module")
      .def("default_columns", &default_columns_of, py::arg("by"))
      .def("most_wasting",
           [](const Report& self) {
             std::vector<GroupRow> rows;
             for (const auto& hotspot : self.analysis().hotspots()) rows.push_back(hotspot.row);
             return rows;
           })
      .def("marked_rows",
           [](const Report& self) {
             const auto& marked = self.analysis().wasting_themselves();
             std::vector<std::size_t> indices;
             for (std::size_t i = 0; i < marked.size(); ++i) {
               if (marked[i]) indices.push_back(i);
             }
             return indices;
           })
      .def("to_json", &Report::to_json)
      .def("to_csv", &Report::to_csv, py::arg("by"))
      .def(py::pickle([](const Report& self) { return self.to_json(); },
                      [](const std::string& text) { return Report::from_json_text(text); }));
}

}  // namespace roofprof::python
