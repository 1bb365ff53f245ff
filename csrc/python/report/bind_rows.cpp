// Rows, groups, kernels, ranks and collectives as the table of figures lists them, and the table itself. Times become
// float seconds, missing figures None.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/fields.h"
#include "core/phrases.h"
#include "python/report/bindings.h"
#include "report/columns.h"
#include "report/rows_by.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

using ByDType = std::array<std::int64_t, kDTypeCount>;
using Blocks = std::array<std::int32_t, 3>;
using AnyRow = py::typing::Union<RooflineRow, GroupRow, KernelRow, Rank, Collective, MemoryRow>;
using Texts = py::typing::Tuple<py::str, py::ellipsis>;
using AnyTuple = py::typing::Tuple<py::object, py::ellipsis>;

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

// Returns Python's value of a figure that is not a time.
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

std::vector<std::string> names_of_facts(roofprof::Facts facts) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < facts::kNames.size(); ++i) {
    if ((facts >> i & 1U) != 0) names.emplace_back(facts::kNames[i]);
  }
  return names;
}

std::string listed(roofprof::Facts facts) {
  std::string text;
  for (const auto& name : names_of_facts(facts)) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string unit_in_python(Unit unit) { return unit == Unit::nanoseconds ? "seconds" : std::string(unit_name(unit)); }

// Returns help()'s text of an attribute: Column "%roof"; percent. %roof = lower bound / time. Needs time, roofs.
std::string doc_of(const FigureInfo& info, bool of_self) {
  std::string doc = "Column \"" + info.heading_in(of_self) + "\"; " + unit_in_python(info.unit) + ".";
  if (of_self) doc += " Of its own ops, without the modules inside.";
  if (!info.legend.text.empty()) {
    doc.append(" ").append(info.legend.text);
    doc += info.legend.when == 0 ? "." : " (with " + listed(info.legend.when) + ").";
  }
  return info.needs == 0 ? doc : doc + " Needs " + listed(info.needs) + ".";
}

template <class Row>
void bind_fields(py::class_<Row>& row, std::string_view of, std::vector<BoundField>& fields) {
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
    using Value = std::decay_t<decltype(value_of(std::declval<const Row&>()))>;
    const std::string name = info.name_in(of_self);
    const std::string doc = doc_of(info, of_self);
    fields.push_back({&info, of, of_self, python_type<Value>(info.unit), cell_text_of<Row>(name)});
    constexpr bool kMayBeTime = std::is_arithmetic_v<Value> || std::is_same_v<Value, std::optional<std::int64_t>>;
    const bool is_time = info.unit == Unit::nanoseconds;
    if constexpr (kMayBeTime) {
      if (is_time) {
        row.def_property_readonly(
            name.c_str(), [value_of](const Row& self) { return seconds(value_of(self)); }, doc.c_str());
      }
    }
    if (!kMayBeTime || !is_time) {
      row.def_property_readonly(
          name.c_str(), [value_of](const Row& self) { return to_python<Value>(value_of(self)); }, doc.c_str());
    }
    if constexpr (std::is_same_v<Value, ByDType>) {
      const std::string self_or_not(of_self ? kSelf : "");
      row.def_property_readonly((self_or_not + "flops_by_dtype").c_str(),
                                [value_of](const Row& self) { return by_dtype(value_of(self), is_floating); },
                                "Those of floating-point types, by dtype.");
      row.def_property_readonly((self_or_not + "int_ops_by_dtype").c_str(),
                                [value_of](const Row& self) {
                                  return by_dtype(value_of(self), [](DType dtype) { return !is_floating(dtype); });
                                },
                                "Those of integer types and bool, by dtype.");
    }
  });
}

// ---- data frames

template <class Value>
py::object frame_cell(const Value& value) {
  using Known = typename OptionalTraits<Value>::type;
  if constexpr (std::is_arithmetic_v<Known> || std::is_same_v<Known, std::string>) {
    return py::cast(value);
  } else {
    return py::cast(detail::value_of(value).text);
  }
}

// Returns the rows by column, under the keys of CSV: numbers, texts and None.
AnyDict columns_of_rows(const Report& report, std::string_view by) {
  return visit_rows(report, by, [&]<class Row>(const std::vector<Row>& rows) {
    AnyDict columns;
    const auto add = [&](const std::string& key, auto cell_of_row) {
      py::list column(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) column[i] = cell_of_row(rows[i]);
      columns[py::str(key)] = column;
    };
    if constexpr (std::is_same_v<Row, GroupRow>) {
      const auto keys = split_keys(by);
      for (std::size_t k = 0; k < keys.size(); ++k)
        add(keys[k], [k](const Row& row) { return py::str(row.keys.at(k)); });
    }
    for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
      add(info.key_in(of_self), [&](const Row& row) { return frame_cell(value_of(row)); });
    });
    return columns;
  });
}

// ---- pickles: a tuple of what a row keeps

// Returns the row's members that the table of figures lacks, or has under other names.
template <class Row>
constexpr auto further_members() {
  if constexpr (std::is_same_v<Row, RooflineRow>) {
    return std::tuple(&Row::params_known, &Row::params, &Row::trainable_params, &Row::param_bytes, &Row::buffer_bytes);
  } else if constexpr (std::is_same_v<Row, GroupRow>) {
    return std::tuple(&Row::keys, &Row::phase, &Row::op, &Row::module, &Row::scope, &Row::dtype, &Row::shapes,
                      &Row::work_elsewhere);
  } else if constexpr (std::is_same_v<Row, Rank>) {
    return std::tuple(&Row::steps);
  } else if constexpr (std::is_same_v<Row, Collective>) {
    return std::tuple(&Row::ranks, &Row::hosts, &Row::dtype, &Row::phase);
  } else if constexpr (std::is_same_v<Row, KernelRow>) {
    return std::tuple(&Row::kind, &Row::phase);
  } else if constexpr (std::is_same_v<Row, MemoryRow>) {
    return std::tuple(&Row::phase);
  } else {
    return std::tuple();
  }
}

// Calls visit(member) for each, where member(row) is a reference to it.
template <class Row, class Visitor>
void for_each_kept(Visitor&& visit) {
  for_each_entry_of<Row>([&](const FigureInfo&, bool, auto member, auto part_of) {
    if constexpr (std::is_member_object_pointer_v<decltype(member)>) {
      visit([member, part_of](auto& row) -> auto& { return part_of(row).*member; });
    }
  });
  std::apply([&](auto... member) { (visit([member](auto& row) -> auto& { return row.*member; }), ...); },
             further_members<Row>());
}

template <class Row>
void bind_pickle(py::class_<Row>& bound) {
  bound.def(py::pickle(
      [](const Row& self) {
        py::list state;
        for_each_kept<Row>([&](auto member) {
          const auto& value = member(self);
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, Bound>) {
            state.append(py::make_tuple(static_cast<int>(value.kind), value.resource));
          } else if constexpr (std::is_enum_v<Value>) {
            state.append(static_cast<int>(value));
          } else if constexpr (std::is_same_v<Value, std::optional<Phase>>) {
            state.append(value ? static_cast<int>(*value) : -1);
          } else {
            state.append(value);
          }
        });
        return AnyTuple(state);
      },
      [](const AnyTuple& state) {
        Row self;
        std::size_t place = 0;
        for_each_kept<Row>([&](auto member) {
          auto& value = member(self);
          using Value = std::decay_t<decltype(value)>;
          const py::object stored = state[place++];
          if constexpr (std::is_same_v<Value, Bound>) {
            const auto pair = stored.cast<std::pair<int, std::string>>();
            value = {static_cast<BoundKind>(pair.first), pair.second};
          } else if constexpr (std::is_enum_v<Value>) {
            value = static_cast<Value>(stored.cast<int>());
          } else if constexpr (std::is_same_v<Value, std::optional<Phase>>) {
            if (const int phase = stored.cast<int>(); phase >= 0) value = static_cast<Phase>(phase);
          } else {
            value = stored.cast<Value>();
          }
        });
        return self;
      }));
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
          "unit", [](const BoundField& self) { return unit_in_python(self.info->unit); }, "Of the row's attribute.")
      .def_property_readonly(
          "needs", [](const BoundField& self) { return Texts(py::cast(names_of_facts(self.info->needs))); },
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
  py::class_<RooflineRow> row(
      module, "Row",
      "A module: what it did, with the modules inside. Figures with self in their names leave these out.");
  bind_fields(row, "row", fields);
  bind_pickle(row);
  row.def("__repr__", repr_of(+[](const RooflineRow& self) {
            return "<Row '" + self.path + "' " + self.type + ": " + std::to_string(self.macs) + " MACs, " +
                   std::to_string(self.flops) + " FLOPs, " + std::to_string(self.bytes) + " bytes>";
          }));

  py::class_<GroupRow> group(module, "GroupRow", "Sums over ops with the same keys.");
  bind_fields(group, "group", fields);
  bind_pickle(group);
  group.def_readonly("keys", &GroupRow::keys, "The value of each key of Report.group, in their order.")
      .def_property_readonly(
          "phase", [](const GroupRow& self) { return self.phase ? std::optional(name_of(*self.phase)) : std::nullopt; },
          "The key of that name; None: it is none of the keys. So are the next ones.")
      .def_readonly("op", &GroupRow::op, R"(The operator, "aten::conv2d".)")
      .def_readonly("module", &GroupRow::module, "The path of the module whose own ops they are.")
      .def_readonly("scope", &GroupRow::scope, R"(The innermost region, "outer/inner"; "": none was open.)")
      .def_readonly("dtype", &GroupRow::dtype, "The type that the ops count in.")
      .def_readonly("shapes", &GroupRow::shapes, "The sizes of the ops' inputs.");
  group.def("__repr__", repr_of(+[](const GroupRow& self) {
              std::string keys;
              for (const auto& key : self.keys) keys += (keys.empty() ? "" : ", ") + key;
              return "<GroupRow " + keys + ": " + counted(self.calls, "call") + ">";
            }));

  py::class_<KernelRow> kernel(module, "KernelRow",
                               "All launches of a kernel, copy or memset in one module, op and launch size.");
  bind_fields(kernel, "kernel", fields);
  bind_pickle(kernel);
  kernel.def("__repr__", repr_of(+[](const KernelRow& self) {
               return "<KernelRow " + self.name + ": " + counted(self.instances, "instance") + ">";
             }));

  py::class_<Rank> rank(module, "Rank", "One rank of a merged report.");
  bind_fields(rank, "rank", fields);
  bind_pickle(rank);
  rank.def("__repr__", repr_of(+[](const Rank& self) {
             return "<Rank " + std::to_string(self.rank) + " on " + self.device + ">";
           }));

  py::class_<Collective> collective(module, "Collective",
                                    "All calls of a collective in a module, phase, group and size.");
  bind_fields(collective, "collective", fields);
  bind_pickle(collective);
  collective.def("__repr__", repr_of(+[](const Collective& self) {
                   return "<Collective " + self.name + " of " + counted(self.ranks, "rank") + ": " +
                          counted(self.calls, "call") + ">";
                 }));

  py::class_<MemoryRow> memory(module, "MemoryRow",
                               "What of one category, module and phase was alive when most memory was.");
  bind_fields(memory, "memory", fields);
  bind_pickle(memory);
  memory.def("__repr__", repr_of(+[](const MemoryRow& self) {
               return "<MemoryRow " + self.category + " of '" + self.module + "': " + std::to_string(self.bytes) +
                      " bytes>";
             }));
  bind_table_of_figures(module, std::move(fields));
}

void bind_columns(py::module_& module) {
  module.def("columns_of_rows", &columns_of_rows, py::arg("report"), py::arg("by"));
}

}  // namespace roofprof::python
