// A report as JSON; docs/report.md describes the file. Observed data is written by the member lists of
// core/members.h, so that Report::from_json makes the same report of it; "coverage", "total", "rows", "regions",
// "step_statistics", "language_model", "flops_utilization", "kernels", "memory_at_peak" and "findings" are derived and
// are written for every other reader (what kernels were observed is "kernel_buckets").

#include <concepts>
#include <functional>
#include <set>
#include <type_traits>

#include "analysis/whole/analysis.h"
#include "core/fields.h"
#include "core/json/file.h"
#include "core/json/members.h"
#include "core/profile.h"
#include "report/json_fields.h"

namespace roofprof {

namespace {

class RowWriter {
 public:
  explicit RowWriter(const Report& report) {
    look_at(report.total());
    for (const RooflineRow& row : report.rows()) look_at(row);
    for (const RooflineRow& region : report.regions()) look_at(region);
  }

  // Leaves out the self figures where they equal the row's: nothing is below it.
  void write(JsonWriter& json, const RooflineRow& row) const {
    json.begin_object();
    for_each_row_field(field_writer(json, fields_, row, ""));
    for_each_figure(field_writer<Figures>(json, figures_, row, ""));
    if (!has_same_figures(row, row.self)) for_each_figure(field_writer<Figures>(json, figures_, row.self, "self_"));
    json.end_object();
  }

 private:
  void look_at(const RooflineRow& row) {
    for_each_row_field(field_finder(fields_, row));
    for_each_figure(field_finder<Figures>(figures_, row));
    for_each_figure(field_finder<Figures>(figures_, row.self));
  }

  static bool has_same_figures(const Figures& left, const Figures& right) {
    bool same = true;
    for_each_figure([&](std::string_view, Unit, auto member) { same = same && left.*member == right.*member; });
    return same;
  }

  KnownFields fields_;
  KnownFields figures_;
};

void write_kernels(JsonWriter& json, const std::vector<KernelRow>& kernels) {
  KnownFields fields;
  for (const KernelRow& kernel : kernels) for_each_kernel_field(field_finder(fields, kernel));
  json.begin_array();
  for (const KernelRow& kernel : kernels) {
    json.break_line();
    json.begin_object();
    for_each_kernel_field(field_writer(json, fields, kernel, ""));
    json.end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const std::vector<MemoryRow>& rows) {
  json.begin_array();
  for (const MemoryRow& row : rows) {
    json.break_line();
    json.begin_object();
    for_each_entry(kMemoryFields,
                   [&](const FigureInfo& info, auto member) { json.member(info.name, std::invoke(member, row)); });
    json.end_object();
  }
  json.end_array();
}

// Writes the units of all fields except text and flags, which need none.
void write_units(JsonWriter& json) {
  json.begin_object();
  const auto write = [&](std::string_view name, Unit unit, auto) {
    if (unit != Unit::text && unit != Unit::flag) json.member(key_of(name, unit), unit_name(unit));
  };
  for_each_row_field(write);
  for_each_figure(write);
  std::set<std::string> known;
  const auto remember = [&](std::string_view name, Unit unit, auto) { known.insert(key_of(name, unit)); };
  for_each_row_field(remember);
  for_each_figure(remember);
  for_each_kernel_field([&](std::string_view name, Unit unit, auto member) {
    if (known.insert(key_of(name, unit)).second) write(name, unit, member);
  });
  json.member("self_*",
              "as the same name without self_, of the module's own ops, without its children; a row without them has "
              "no children, and its figures are its own");
  json.end_object();
}

}  // namespace

std::string Report::to_json() const {
  JsonWriter json;
  const auto line = [&](std::string_view name, auto write) {
    json.break_line();
    json.key(name);
    write();
  };
  // Lists of structs come last, with a line for each item.
  const auto observed = [&](bool lists) {
    for_each_member(Of<Profile>{}, [&](std::string_view name, auto member, Written) {
      const auto& value = std::invoke(member, data_of(*this));
      if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, Events>) {
        if (!value.kept) return;  // few are
      }
      if constexpr (json_detail::HasKind<std::remove_cvref_t<decltype(value)>>) {
        if (value.get() == nullptr) return;
      }
      if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, CollectiveData>) {
        if (value == CollectiveData{}) return;
      }
      constexpr bool kIsList = json_detail::is_list_of_structs<std::remove_cvref_t<decltype(value)>>;
      if (kIsList == lists) line(name, [&] { write_value(json, value); });
    });
  };

  json.begin_object();
  line("schema_version", [&] { json.write(kReportSchemaVersion); });
  line("generator", [&] { json.write("roofprof"); });
  line("units", [&] { write_units(json); });
  observed(false);
  line("coverage", [&] { write_value(json, coverage()); });
  const RowWriter writer(*this);
  line("total", [&] { writer.write(json, total()); });
  line("rows", [&] {
    json.begin_array();
    for (const RooflineRow& row : rows()) {
      json.break_line();
      writer.write(json, row);
    }
    json.end_array();
  });
  if (!regions().empty()) {
    line("regions", [&] {
      json.begin_array();
      for (const RooflineRow& region : regions()) {
        json.break_line();
        writer.write(json, region);
      }
      json.end_array();
    });
  }
  if (const auto steps = step_statistics()) line("step_statistics", [&] { write_value(json, *steps); });
  if (const auto& phases = analysis_->language_model(); !phases.empty())
    line("language_model", [&] { write_value(json, phases); });
  if (const auto utilization = flops_utilization()) line("flops_utilization", [&] { write_value(json, *utilization); });
  line("kernels", [&] { write_kernels(json, kernels()); });
  if (!memory_at_peak().empty()) line("memory_at_peak", [&] { write_memory(json, memory_at_peak()); });
  line("findings", [&] { write_value(json, analysis_->findings()); });
  observed(true);
  json.break_line();
  json.end_object();
  return json.take();
}

void Report::write_json(const std::string& path) const { write_whole_file(path, to_json()); }

}  // namespace roofprof
