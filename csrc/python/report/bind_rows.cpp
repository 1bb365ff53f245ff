// Rows, groups, kernels, ranks and collectives as the table of figures lists them, and the table itself. Times become
// float seconds, missing figures None.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/fields.h"
#include "core/phrases.h"
#include "python/report/bindings.h"
#include "report/columns.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

using ByDType = std::array<std::int64_t, kDTypeCount>;
using Blocks = std::array<std::int32_t, 3>;
using AnyRow = py::typing::Union<RooflineRow, GroupRow, KernelRow, Rank, Collective, MemoryRow>;
using Texts = py::typing::Tuple<py::str, py::ellipsis>;

// One figure of one kind of row.
struct BoundField {
  const FigureInfo* info;
  std::string_view of;
  bool of_self;
  std::string type;
  std::function<std::string(py::handle)> cell;  // of a row of that kind
};

template <class Keep>
CountsByName by_dtype(const ByDType& operations, Keep keep) {
  CountsByName result;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (operations[i] != 0 && keep(dtype)) result[py::str(std::string(name_of(dtype)))] = operations[i];
  }
  return result;
}

// Returns a figure that is no time.
template <class Value>
auto to_python(const Value& value) {
  if constexpr (std::is_same_v<Value, Bound>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<Value, ByDType>) {
    return by_dtype(value, [](DType) { return true; });
  } else if constexpr (std::is_same_v<Value, Blocks>) {
    return std::vector(value.begin(), value.end());
  } else {
    return value;
  }
}

template <class Value>
struct OptionalTraits {
  using type = Value;
  static constexpr bool is_optional = false;
};
template <class Value>
struct OptionalTraits<std::optional<Value>> {
  using type = Value;
  static constexpr bool is_optional = true;
};

// Returns the type as the type stubs name it.
template <class Value>
std::string python_type(Unit unit) {
  using Known = typename OptionalTraits<Value>::type;
  std::string type = "str";  // NOLINT(misc-const-correctness): of some instances
  if constexpr (std::is_same_v<Known, bool>) {
    type = "bool";
  } else if constexpr (std::is_floating_point_v<Known>) {
    type = "float";
  } else if constexpr (std::is_integral_v<Known>) {
    type = unit == Unit::nanoseconds ? "float" : "int";
  } else if constexpr (std::is_same_v<Known, ByDType>) {
    type = "dict[str, int]";
  } else if constexpr (std::is_same_v<Known, std::vector<std::vector<std::int64_t>>>) {
    type = "list[list[int]]";
  } else if constexpr (std::is_same_v<Known, Blocks>) {
    type = "list[int]";
  }
  return OptionalTraits<Value>::is_optional ? type + " | None" : type;
}

template <class Row>
std::function<std::string(py::handle)> cell_text_of(const std::string& name) {
  return [column = column_named(columns_of<Row>(), name)](py::handle row) {
    return cell_of(column, row.cast<const Row&>()).text;
  };
}

template <class Row>
void bind_fields(py::class_<Row>& row, std::string_view of, std::vector<BoundField>& fields) {
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
    using Value = std::decay_t<decltype(value_of(std::declval<const Row&>()))>;
    const std::string name = info.name_in(of_self);
    fields.push_back({&info, of, of_self, python_type<Value>(info.unit), cell_text_of<Row>(name)});
    constexpr bool kMayBeTime = std::is_arithmetic_v<Value> || std::is_same_v<Value, std::optional<std::int64_t>>;
    const bool is_time = info.unit == Unit::nanoseconds;
    if constexpr (kMayBeTime) {
      if (is_time) {
        row.def_property_readonly(name.c_str(), [value_of](const Row& self) { return seconds(value_of(self)); });
      }
    }
    if (!kMayBeTime || !is_time) {
      row.def_property_readonly(name.c_str(), [value_of](const Row& self) { return to_python<Value>(value_of(self)); });
    }
    if constexpr (std::is_same_v<Value, ByDType>) {
      const std::string self_or_not(of_self ? kSelf : "");
      row.def_property_readonly((self_or_not + "flops_by_dtype").c_str(),
                                [value_of](const Row& self) { return by_dtype(value_of(self), is_floating); });
      row.def_property_readonly((self_or_not + "int_ops_by_dtype").c_str(), [value_of](const Row& self) {
        return by_dtype(value_of(self), [](DType dtype) { return !is_floating(dtype); });
      });
    }
  });
}

void bind_table_of_figures(py::module_& module, std::vector<BoundField> fields) {
  py::class_<BoundField>(module, "Field", "One figure of one kind of row: its names, and when a report has it.")
      .def_property_readonly(
          "name", [](const BoundField& self) { return self.info->name_in(self.of_self); },
          "Of the row's attribute and the table's column; self figures have names of their own, self_time.")
      .def_property_readonly(
          "heading", [](const BoundField& self) { return self.info->heading_in(self.of_self); },
          "Of the table's column.")
      .def_property_readonly(
          "aliases",
          [](const BoundField& self) {
            py::list aliases;
            for (const auto alias : self.info->aliases) {
              if (!alias.empty()) aliases.append((self.of_self ? std::string(kSelf) : "").append(alias));
            }
            return Texts(aliases);
          },
          "Further names that table(columns=...) takes.")
      .def_property_readonly(
          "unit",
          [](const BoundField& self) {
            return self.info->unit == Unit::nanoseconds ? "seconds" : unit_name(self.info->unit);
          },
          "Of the row's attribute.")
      .def_property_readonly(
          "needs",
          [](const BoundField& self) {
            py::list needs;
            for (std::size_t i = 0; i < facts::kNames.size(); ++i) {
              if ((self.info->needs >> i & 1U) != 0) needs.append(facts::kNames[i]);
            }
            return Texts(needs);
          },
          R"(What a report must have, of "time", "device", "intervals", "counters", "roofs" and "regions".)")
      .def_property_readonly(
          "limit", [](const BoundField& self) { return to_string(self.info->limit); },
          R"(Of an incomplete row's figure: ">=", "<=" or "?" (of what is known alone); "" if it is exact.)")
      .def_property_readonly(
          "legend", [](const BoundField& self) { return self.info->legend.text; },
          R"(The sentence below tables that explains it; "" if there is none.)")
      .def_readonly("of", &BoundField::of,
                    R"(The kind of row: "row", "group", "kernel", "rank", "collective" or "memory".)")
      .def_property_readonly(
          "key", [](const BoundField& self) { return self.info->key_in(self.of_self); },
          "In JSON and CSV, where times are integer nanoseconds.")
      .def_readonly("type", &BoundField::type, R"(Of the row's attribute: "int | None".)")
      .def_property_readonly(
          "is_text",
          [](const BoundField& self) { return is_textual(self.info->unit) && self.info->unit != Unit::flag; },
          "True if the CSV has text for it; else it has a number, or true and false.")
      .def(
          "cell", [](const BoundField& self, const AnyRow& row) { return self.cell(row); }, py::arg("row"),
          R"(Return the cell that a table has for that row: "4.09G", ">=1.2M", "n/a".)")
      .def(
          "text",
          [](const BoundField& self, std::optional<double> value) {
            const bool in_seconds = self.info->unit == Unit::nanoseconds;
            if (value && in_seconds) *value *= 1e9;
            return cell_text({value, ""}, self.info->unit);
          },
          py::arg("value"), "Return a value in this figure's unit, as tables write it. For figures that are numbers.")
      .def("__repr__", repr_of(+[](const BoundField& self) {
             return "<Field '" + self.info->name_in(self.of_self) + "' of a " + std::string(self.of) + ">";
           }));
  module.def("fields", [fields = std::move(fields)] { return fields; });
}

}  // namespace

void bind_rows(py::module_& module) {
  std::vector<BoundField> fields;
  py::class_<RooflineRow> row(module, "Row");
  bind_fields(row, "row", fields);
  row.def("__repr__", repr_of(+[](const RooflineRow& self) {
            return "<Row '" + self.path + "' " + self.type + ": " + std::to_string(self.macs) + " MACs, " +
                   std::to_string(self.flops) + " FLOPs, " + std::to_string(self.bytes) + " bytes>";
          }));

  py::class_<GroupRow> group(module, "GroupRow");
  bind_fields(group, "group", fields);
  group.def_readonly("keys", &GroupRow::keys)
      .def_readonly("phase", &GroupRow::phase)
      .def_readonly("op", &GroupRow::op)
      .def_readonly("module", &GroupRow::module)
      .def_readonly("scope", &GroupRow::scope)
      .def_readonly("dtype", &GroupRow::dtype)
      .def_readonly("shapes", &GroupRow::shapes);
  group.def("__repr__", repr_of(+[](const GroupRow& self) {
              std::string keys;
              for (const auto& key : self.keys) keys += (keys.empty() ? "" : ", ") + key;
              return "<GroupRow " + keys + ": " + counted(self.calls, "call") + ">";
            }));

  py::class_<KernelRow> kernel(module, "KernelRow");
  bind_fields(kernel, "kernel", fields);
  kernel.def("__repr__", repr_of(+[](const KernelRow& self) {
               return "<KernelRow " + self.name + ": " + counted(self.instances, "instance") + ">";
             }));

  py::class_<Rank> rank(module, "Rank");
  bind_fields(rank, "rank", fields);
  rank.def("__repr__", repr_of(+[](const Rank& self) {
             return "<Rank " + std::to_string(self.rank) + " on " + self.device + ">";
           }));

  py::class_<Collective> collective(module, "Collective");
  bind_fields(collective, "collective", fields);
  collective.def("__repr__", repr_of(+[](const Collective& self) {
                   return "<Collective " + self.name + " of " + counted(self.ranks, "rank") + ": " +
                          counted(self.calls, "call") + ">";
                 }));

  py::class_<MemoryRow> memory(module, "MemoryRow");
  bind_fields(memory, "memory", fields);
  memory.def("__repr__", repr_of(+[](const MemoryRow& self) {
               return "<MemoryRow " + self.category + " of '" + self.module + "': " + std::to_string(self.bytes) +
                      " bytes>";
             }));
  bind_table_of_figures(module, std::move(fields));
}

}  // namespace roofprof::python
