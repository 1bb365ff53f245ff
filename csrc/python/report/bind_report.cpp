// Binds reports: their parts, their printers, and their sources.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <functional>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/kernel_rows.h"
#include "analysis/ranks/rank_merger.h"
#include "analysis/run_times.h"
#include "analysis/whole/analysis.h"
#include "core/note_codes.h"
#include "core/phrases.h"
#include "core/profile.h"
#include "python/report/bindings.h"
#include "report/tables.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Returns the accessor of what is kept alive, such as a report; a temporary has another one.
template <class Of, class Value>
auto kept(const Value& (Of::*accessor)() const&) {
  return [accessor](const Of& self) -> const Value& { return (self.*accessor)(); };
}

Note note_of(const std::string& code, std::string text, std::vector<std::string> where) {
  const std::size_t index = index_of_note(code);
  if (index == kNoteKinds.size()) throw std::invalid_argument("there is no note with the code '" + code + "'");
  return make_note(kNoteKinds[index], std::move(text), std::move(where));
}

using TextAndText = py::typing::Tuple<py::str, py::str>;

// Binds notes: data that still reads as its sentence where a string is looked for.
void bind_notes(py::module_& module) {
  bind_struct<Note>(module, "Note")
      .def(py::init(&note_of), py::arg("code"), py::arg("text"), py::arg("where") = std::vector<std::string>())
      .def("__str__", [](const Note& self) { return self.text; })
      .def("__repr__", repr_of(+[](const Note& self) { return "<Note " + self.code + ": " + self.text + ">"; }))
      .def("__contains__",
           [](const Note& self, const std::string& part) { return self.text.find(part) != std::string::npos; })
      .def(
          "__eq__", [](const Note& self, const Note& other) { return self == other; }, py::is_operator())
      .def(
          "__eq__", [](const Note& self, const std::string& text) { return self.text == text; }, py::is_operator())
      .def("__hash__", [](const Note& self) { return py::hash(py::str(self.text)); });
  // Returns level and meaning by code.
  module.def("note_kinds", [] {
    py::typing::Dict<py::str, TextAndText> kinds;
    for (const auto& kind : kNoteKinds) {
      kinds[py::str(std::string(kind.code))] =
          py::make_tuple(std::string(name_of(kind.level)), std::string(kind.meaning));
    }
    return kinds;
  });
}

void bind_coverage(py::module_& module) {
  bind_struct<UncostedOp>(
      module, "UncostedOp", {}, +[](const UncostedOp& self) {
        return "<UncostedOp " + self.op + ": " + counted(self.calls, "call") + " in " +
               counted(self.module_count, "module") + ">";
      });
  bind_struct<Coverage>(
      module, "Coverage", {}, +[](const Coverage& self) {
        return "<Coverage: " + counted(std::ssize(self.uncosted), "uncosted op") + ", " +
               std::to_string(self.unobserved.size()) + " unobserved, " +
               counted(std::ssize(self.uncalled_modules), "uncalled module") + ", " +
               counted(std::ssize(self.notes), "note") + ">";
      });
}

void bind_siblings(py::module_& module) {
  py::class_<Siblings>(module, "Siblings", "Equal modules below one parent, which tables show as one line.")
      .def_readonly("name", &Siblings::name, R"(Such as "layers.0-79" or "layers.0-3, 5".)")
      .def_readonly("paths", &Siblings::paths,
                    "Of all members; if their parent is folded too, of the members below each equal parent.")
      .def_readonly("count", &Siblings::count, "The number of members below one parent.")
      .def_readonly("rows", &Siblings::rows,
                    "The mean of all members, then the modules below it, folded in the same way. Additive figures are "
                    "those of one member on average; rates and percentages are those of the members' sums.")
      .def_property_readonly("mean", kept(&Siblings::mean), "The first of the rows.")
      .def_readonly("spread", &Siblings::spread, "(max - min) / median of the members' times.")
      .def_readonly("slowest", &Siblings::slowest, "Path of the slowest, if it stands out from the others.")
      .def_readonly("slowest_ratio", &Siblings::slowest_ratio, "Its time, as a multiple of the median.")
      .def("__repr__", repr_of(+[](const Siblings& self) {
             return "<Siblings '" + self.name + "' x" + std::to_string(self.count) + ">";
           }));
}

void bind_folds(py::module_& module) {
  py::class_<FoldedRow>(module, "FoldedRow",
                        "A line of the tree of folded siblings. members are rows by index, count of these below one "
                        "parent; parent is the line of its parent, -1: none.")
      .def_readonly("mean", &FoldedRow::mean)
      .def_readonly("members", &FoldedRow::members)
      .def_readonly("count", &FoldedRow::count)
      .def_readonly("parent", &FoldedRow::parent)
      .def("__repr__", repr_of(+[](const FoldedRow& self) {
             return "<FoldedRow '" + self.mean.path + "' of " + counted(std::ssize(self.members), "row") + ">";
           }));
}

void bind_steps(py::module_& module) {
  bind_struct<StepStatistics>(
      module, "StepStatistics", {},
      +[](const StepStatistics& self) { return "<StepStatistics of " + counted(self.count, "step") + ">"; });
}

void bind_memory(py::module_& module) {
  py::class_<MemoryMoment>(
      module, "MemoryMoment",
      "The most memory during equally many ops, in bytes above those that were there before; module is the path of the "
      "row that allocated then. is_peak: the most of all was during these ops.")
      .def_readonly("first_op", &MemoryMoment::first_op)
      .def_readonly("bytes", &MemoryMoment::bytes)
      .def_readonly("module", &MemoryMoment::module)
      .def_property_readonly("phase", &MemoryMoment::phase_name)
      .def_readonly("is_peak", &MemoryMoment::is_peak)
      .def("__repr__", repr_of(+[](const MemoryMoment& self) {
             return "<MemoryMoment from op " + std::to_string(self.first_op) + ": " + std::to_string(self.bytes) +
                    " bytes in '" + self.module + "'>";
           }));
}

void bind_language_model(py::module_& module) {
  bind_struct<TokenPhase>(
      module, "TokenPhase",
      {"Calls of a language model that are prefill, or decode.",
       {{"sequences", "Batch sizes, calls added up."},
        {"tokens", "New ones, of all sequences and calls."},
        {"least_context", "Tokens of a sequence that a call attends to, cached and new."},
        {"weight_bytes", "Parameters of the model, tied ones once."},
        {"cache_bytes", "The most that the cache held when a call began."},
        {"time", "Wall seconds of all calls."}}},
      +[](const TokenPhase& self) {
        return "<TokenPhase " + self.name + ": " + counted(self.calls, "call") + ", " + counted(self.tokens, "token") +
               ">";
      });
}

void bind_ranks(py::module_& module) {
  py::class_<ClockOffset>(
      module, "ClockOffset",
      "The time that must be added to a rank's clock to get the first rank's, and its largest error.")
      .def(py::init<std::int64_t, std::int64_t>(), py::arg("offset_ns"), py::arg("error_ns"));
  py::class_<RankMerger>(module, "RankMerger",
                         "Merges the reports of ranks; csrc/analysis/ranks/rank_merger.h says how.")
      .def(py::init())
      .def(
          "add",
          [](RankMerger& self, const Report& report, const std::string& name, std::int64_t rank,
             const std::string& host,
             const std::optional<ClockOffset>& clock) { return self.add(data_of(report), name, rank, host, clock); },
          py::arg("report"), py::arg("name"), py::arg("rank") = -1, py::arg("host") = "", py::arg("clock") = py::none())
      .def("typical_ranks", &RankMerger::typical_ranks)
      .def(
          "keep",
          [](RankMerger& self, std::int64_t rank, const Report& report) {
            self.keep(rank, analysis_of(report).shared_data());
          },
          py::arg("rank"), py::arg("report"))
      .def("note_assumed", &RankMerger::note_assumed, py::arg("text"))
      .def("expect", &RankMerger::expect, py::arg("world_size"))
      .def("finish", [](RankMerger& self) { return make_report(std::make_shared<const Profile>(self.finish()), {}); });
}

void bind_findings(py::module_& module) {
  bind_struct<Finding>(
      module, "Finding",
      {"Something that wastes time, and what to do about it, by one rule of docs/findings.md.",
       {{"id", R"(The same in every run: "depthwise-convolution/features.3/aten::conv2d".)"},
        {"module",
         R"(Path of the module with most of that time; of equal siblings their common name, "layers.0-79.mlp".)"},
        {"modules", "All that the rule holds for, most time first."},
        {"op", "The one with most of that time; None: all of the module's."},
        {"source", "The user's code of the forward around it, or of a compiled kernel, as ``FILE:LINE``."},
        {"text", "One sentence: what is wrong, and by how much."},
        {"action", "What to do."},
        {"gain_low", "Seconds of the total's time that this saves, at least."},
        {"gain_high", "Seconds of the total's time that this saves, at most."},
        {"basis", R"(What the gain is known from: "lower bound", "fused bound", "other precision's roof".)"},
        {"confidence", R"("high", "medium" or "low".)"},
        {"because", "Why so sure."},
        {"try_it", "Code that tries it."},
        {"evidence", "Figures that call for it."},
        {"reference", "Where the rule is from."}}},
      +[](const Finding& self) { return "<Finding " + self.rule + ": " + self.text + ">"; });
}

template <class Value>
py::object plain_value(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return py::str(std::string(names_of_enum<Value>.at(static_cast<std::size_t>(value))));
  } else {
    return py::cast(value);
  }
}

template <class Row>
AnyDict event_columns_of(const std::vector<Row>& rows) {
  AnyDict columns;
  for_each_member(Of<Row>{}, [&](std::string_view name, auto member, Written) {
    py::list column(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) column[i] = plain_value(std::invoke(member, rows[i]));
    columns[py::str(name.data(), name.size())] = column;
  });
  return columns;
}

// Returns the events of a report's run, for roofprof/render/traces; None where the report keeps none. "host" and
// "device" are lists by column; "modules" is path, type and parent by id, "ops" name, shapes and dtype, "regions" are
// names.
std::optional<AnyDict> events_of(const Report& report) {
  const auto& data = data_of(report);
  if (!data.times->events.kept) return std::nullopt;
  py::list modules;
  for (const auto& module : data.tree.modules) modules.append(py::make_tuple(module.path, module.type, module.parent));
  py::list regions;
  for (const auto& region : data.tree.regions) regions.append(region.name);
  py::list ops;
  for (const auto& op : data.counts.ops) {
    ops.append(py::make_tuple(op.op, shapes_text(op.shapes), std::string(name_of(op.dtype))));
  }
  AnyDict events;
  events["names"] = data.times->events.names;
  events["host"] = event_columns_of(data.times->events.host);
  events["device"] = event_columns_of(data.times->events.device);
  events["left_out"] = data.times->events.left_out;
  events["modules"] = modules;
  events["regions"] = regions;
  events["ops"] = ops;
  return events;
}

// Binds a function of a report and of the options of tables.
void def_with_options(py::class_<Report>& report, const char* name, auto made, const char* doc) {
  report.def(
      name,
      [made](const Report& self, std::optional<std::int64_t> depth, std::string sort, std::vector<std::string> columns,
             std::string by, std::int64_t width, std::int64_t limit, bool legend, bool for_shell, bool expand) {
        return made(self, TableOptions{.depth = depth,
                                       .sort = std::move(sort),
                                       .columns = std::move(columns),
                                       .by = std::move(by),
                                       .width = width,
                                       .limit = limit,
                                       .legend = legend,
                                       .speech = for_shell ? Speech::shell : Speech::python,
                                       .expand = expand});
      },
      py::arg("depth") = py::none(), py::arg("sort") = "", py::arg("columns") = std::vector<std::string>(),
      py::arg("by") = "module", py::arg("width") = 120, py::arg("limit") = 0, py::arg("legend") = true,
      py::arg("for_shell") = false, py::arg("expand") = false, doc);
}

}  // namespace

void bind_report(py::module_& module) {
  py::class_<Report> report(module, "Report");  // other signatures name it
  bind_notes(module);
  bind_ranks(module);
  bind_coverage(module);
  bind_findings(module);
  bind_siblings(module);
  bind_folds(module);
  bind_steps(module);
  bind_language_model(module);
  bind_memory(module);
  module.def("events_of", &events_of, py::arg("report"));
  module.def(
      "report_from_json", [](const TextOrBytes& text) { return Report::from_json_text(text.cast<std::string_view>()); },
      py::arg("text"));
  // A call that did nothing has a report, too: its tables refuse the same arguments as those of every report.
  report
      .def(py::init([] {
        auto data = std::make_shared<Profile>();
        data->tree.modules.resize(static_cast<std::size_t>(kOptimizer) + 1);
        return make_report(std::move(data), {});
      }))
      .def_property_readonly("rows", kept(&Report::rows))
      .def("parents", kept(&Report::parents), "By row: the index of its parent's row; -1: none.")
      .def_property_readonly("folded_rows", [](const Report& self) { return analysis_of(self).folded_rows(); })
      .def_property_readonly("total", kept(&Report::total))
      .def(
          "row", [](const Report& self, std::string_view path) -> const RooflineRow& { return self.row(path); },
          py::arg("path"))
      .def_property_readonly("siblings", &Report::siblings)
      .def_property_readonly("findings", &Report::findings)
      .def(
          "group", [](const Report& self, const std::vector<std::string>& keys) { return self.group(keys); },
          py::arg("keys"))
      .def_property_readonly("kernels", kept(&Report::kernels))
      .def_property_readonly("memory_at_peak", kept(&Report::memory_at_peak))
      .def_property_readonly("memory_timeline", &Report::memory_timeline)
      .def_property_readonly("why_no_kernels", [](const Report& self) { return why_no_kernels(data_of(self)); })
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
      .def_property_readonly("within_region",
                             [](const Report& self) {
                               const auto& part = data_of(self).origin.part;
                               return part ? part->region : "";
                             })
      .def_property_readonly("coverage", kept(&Report::coverage))
      .def_property_readonly("ceilings", kept(&Report::ceilings))
      .def_property_readonly("environment", [](const Report& self) { return facts_of(self.environment()); })
      .def_property_readonly("model", [](const Report& self) { return data_of(self).run.model; })
      .def_property_readonly("device", [](const Report& self) { return data_of(self).run.device; })
      .def_property_readonly("mode",
                             [](const Report& self) {
                               return std::string(kModeNames.at(static_cast<std::size_t>(data_of(self).run.mode)));
                             })
      .def_property_readonly("partial", &Report::partial)
      .def_property_readonly("collectives", &Report::collectives)
      .def_property_readonly("ranks", kept(&Report::ranks))
      .def_property_readonly("missing_ranks", kept(&Report::missing_ranks))
      .def("report_of_rank", &Report::report_of_rank, py::arg("rank"))
      .def_property_readonly("steps", &Report::steps)
      .def_property_readonly("runs_ns", kept(&Report::run_times_ns))
      .def_property_readonly("bare_ns", kept(&Report::bare_times_ns))
      .def(
          "row_run_times_ns",
          [](const Report& self) {
            RowRunTimes times = row_run_times(data_of(self));
            return std::pair(std::move(times.total), std::move(times.of_rows));
          },
          "Return the run times of the total, and of each row; empty for a row without times.")
      .def("brief", &Report::brief)
      .def(
          "part",
          [](const Report& self, const std::string& part, std::string by) {
            constexpr std::int64_t kAll = std::numeric_limits<std::int32_t>::max();
            return part_of_report(self, part,
                                  {.by = std::move(by), .limit = kAll, .speech = Speech::python, .expand = true});
          },
          py::arg("part"), py::arg("by") = "module",
          R"(Return one part of it: "heading", "rows" (all of them), "legend", "roofs" or "coverage".)")
      .def("default_columns", &default_columns_of, py::arg("by"))
      .def(
          "most_wasting",
          [](const Report& self) {
            std::vector<std::pair<GroupRow, std::int64_t>> rows;
            for (const auto& hotspot : analysis_of(self).hotspots(/*expand=*/false))
              rows.emplace_back(hotspot.row, hotspot.members);
            return rows;
          },
          "Return rows, whose modules may stand for equal siblings, and how many modules each is the sum of.")
      .def("marked_rows",
           [](const Report& self) {
             const auto& marked = analysis_of(self).wasting_themselves();
             std::vector<std::size_t> indices;
             for (std::size_t i = 0; i < marked.size(); ++i) {
               if (marked[i]) indices.push_back(i);
             }
             return indices;
           })
      .def("to_json", &Report::to_json)
      .def(
          "to_csv", [](const Report& self, const std::string& by) { return self.to_csv(by); }, py::arg("by"))
      .def(
          "__eq__",
          [](const Report& self, const Report& other) {
            return &data_of(self) == &data_of(other) || data_of(self) == data_of(other);
          },
          py::is_operator())
      .def(py::pickle([](const Report& self) { return self.to_json(); },
                      [](const std::string& text) { return Report::from_json_text(text); }));
  def_with_options(report, "document", &report_document, "Return what table() prints.");
  def_with_options(report, "markdown", std::mem_fn(&Report::markdown), "Return Report.markdown().");
  def_with_options(report, "table", std::mem_fn(&Report::table), "Return Report.table().");
}

}  // namespace roofprof::python
