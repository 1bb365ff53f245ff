// The roofs of a machine as a table of their own: `roofprof ceilings`.

#include "report/ceilings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/phrases.h"
#include "report/document.h"
#include "report/units.h"
#include "report/utf8.h"

namespace roofprof {
namespace {

// A roof, a published one, or both of the same dtype or level.
struct Row {
  std::string roof;
  std::string unit;
  std::optional<double> value;
  std::optional<double> published;
  std::int64_t capacity_bytes = 0;
  const Provenance* provenance = nullptr;  // of the roof, else of the published one
};

std::vector<Row> compute_rows(const Ceilings& ceilings, const Ceilings* published) {
  const auto unit = [](DType dtype) { return is_floating(dtype) ? "FLOP/s" : "op/s"; };
  std::vector<Row> rows;
  for (const auto& own : ceilings.compute) {
    Row row{std::string(name_of(own.dtype)), unit(own.dtype), own.operations_per_second, {}, 0, &own.provenance};
    if (const auto* theirs = published ? published->compute_for(own.dtype) : nullptr) {
      row.published = theirs->operations_per_second;
    }
    rows.push_back(std::move(row));
  }
  if (published == nullptr) return rows;
  for (const auto& theirs : published->compute) {
    if (ceilings.compute_for(theirs.dtype) != nullptr) continue;
    rows.push_back({std::string(name_of(theirs.dtype)),
                    unit(theirs.dtype),
                    {},
                    theirs.operations_per_second,
                    0,
                    &theirs.provenance});
  }
  return rows;
}

std::vector<Row> memory_rows(const Ceilings& ceilings, const Ceilings* published) {
  std::vector<Row> rows;
  for (const auto& own : ceilings.memory) {
    Row row{own.level, "B/s", own.bytes_per_second, {}, own.capacity_bytes, &own.provenance};
    if (const auto* theirs = published ? published->memory_level(own.level) : nullptr) {
      row.published = theirs->bytes_per_second;
    }
    rows.push_back(std::move(row));
  }
  if (published == nullptr) return rows;
  for (const auto& theirs : published->memory) {
    if (ceilings.memory_level(theirs.level) != nullptr) continue;
    rows.push_back({theirs.level, "B/s", {}, theirs.bytes_per_second, theirs.capacity_bytes, &theirs.provenance});
  }
  return rows;
}

std::string rate(const std::optional<double>& value, const std::string& unit) {
  return value ? human_count(*value, unit) : "n/a";
}

void add(Table& table, const Row& row, bool beside_published) {
  const Provenance& provenance = *row.provenance;
  std::vector<Cell> cells = {Cell(row.roof), Cell(rate(row.value, row.unit))};
  if (beside_published) {
    cells.emplace_back(rate(row.published, row.unit));
    cells.emplace_back(row.value && row.published ? human_percent(100 * *row.value / *row.published) : "n/a");
  }
  cells.emplace_back(row.capacity_bytes > 0 ? human_bytes(static_cast<double>(row.capacity_bytes)) : "");
  cells.emplace_back(provenance.spread ? human_percent(*provenance.spread * 100) : "n/a");
  cells.emplace_back(provenance.source);
  cells.emplace_back(provenance.date);
  cells.emplace_back(provenance.method);
  table.add(std::move(cells));
}

// Every other point, where the working sets double, and the last.
Table curve_table(const BandwidthCurve& curve) {
  Table table{{{"working set", false, 0, 0},
               {"read", false, 0, 0},
               {"triad", false, 0, 0},
               {"copy", false, 0, 0},
               {"write", false, 0, 0},
               {"in place", false, 0, 0},
               {"spread", false, 0, 1}}};
  table.title = "bandwidth by working set";
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (i % 2 != 0 && i + 1 < curve.points.size()) continue;
    const BandwidthPoint& point = curve.points[i];
    const auto cell = [](double rate) { return Cell(human_count(rate, "B/s")); };
    table.add({Cell(human_bytes(static_cast<double>(point.working_set_bytes))), cell(point.read), cell(point.triad),
               cell(point.copy), cell(point.write), cell(point.update),
               Cell(curve.provenance.spread ? human_percent(point.spread * 100) : "n/a")});
  }
  return table;
}

Table network_table(const std::vector<NetworkCeiling>& network) {
  Table table{{{"collective", true, 0, 0},
               {"ranks", false, 0, 0},
               {"backend", true, 0, 0},
               {"latency", false, 0, 0},
               {"bus bandwidth", false, 0, 0},
               {"spread", false, 0, 1},
               {"date", true, 0, 2},
               {"method", true, 20, 3}}};
  table.title = "network";
  for (const auto& roof : network) {
    const auto& provenance = roof.provenance;
    table.add({roof.collective, std::to_string(roof.ranks), roof.backend, human_time(roof.latency_ns),
               human_count(roof.bytes_per_second, "B/s"),
               provenance.spread ? human_percent(*provenance.spread * 100) : "n/a", provenance.date,
               provenance.method});
  }
  return table;
}

}  // namespace

std::string sustained_text(const Ceilings& ceilings) {
  std::string text;
  double seconds = 0;
  for (const auto& peak : ceilings.compute) {
    if (!peak.sustained) continue;
    const auto& [rate, over, clock_hz, power_watts] = *peak.sustained;
    seconds = std::max(seconds, over);
    std::string item =
        std::string(name_of(peak.dtype)) + " " + human_count(rate, is_floating(peak.dtype) ? "FLOP/s" : "op/s");
    const double lower = 1 - rate / peak.operations_per_second;
    if (lower > 0) item += ", " + human_percent(100 * lower) + " lower";
    if (clock_hz > 0) item += ", at " + fixed_text(clock_hz / 1e6, 0) + " MHz";
    if (power_watts > 0) item += clock_hz > 0 ? " and " : ", at ";
    if (power_watts > 0) item += fixed_text(power_watts, 0) + " W";
    text += (text.empty() ? "" : "; ") + item;
  }
  return text.empty() ? "" : "over " + fixed_text(seconds, 0) + " s: " + text;
}

std::string fastest_text(const Ceilings& ceilings) {
  std::vector<std::string> items;
  std::map<std::string, std::string> missing;  // dtypes by the reason
  for (const auto& peak : ceilings.compute) {
    if (!peak.fastest) continue;
    const auto& [shape, kernel, why] = *peak.fastest;
    const auto dtype = name_of(peak.dtype);
    items.push_back(fmt::format("{}: {}{}{}", dtype, shape, kernel.empty() ? "" : " by ", kernel));
    if (kernel.empty()) add_item(missing[why], dtype);
  }
  for (const auto& [why, dtypes] : missing) items.push_back(fmt::format("kernels of {}: n/a because {}", dtypes, why));
  return fmt::format("{}", fmt::join(items, "; "));
}

Document ceilings_document(const Ceilings& ceilings, const Ceilings* published) {
  if (published != nullptr && published->empty()) published = nullptr;
  Document document;
  const auto add_network = [&] {
    if (!ceilings.network.empty()) document.add(network_table(ceilings.network));
  };
  if (ceilings.empty() && published == nullptr) {
    document.add(Heading{ceilings.network.empty() ? "no roofs" : ceilings.device});
    add_network();
    return document;
  }
  std::vector<TableColumn> columns = {{"roof", true, 0, 0}, {"value", false, 0, 0}};
  if (published != nullptr) {
    columns.push_back({"published", false, 0, 0});
    columns.push_back({"share", false, 0, 0});
  }
  columns.insert(columns.end(), {{"holds", false, 0, 3},
                                 {"spread", false, 0, 0},
                                 {"source", true, 0, 1},
                                 {"date", true, 0, 2},
                                 {"method", true, 20, 4}});
  Table table{std::move(columns), "roofs"};
  for (const auto& row : compute_rows(ceilings, published)) add(table, row, published != nullptr);
  table.add_rule();
  for (const auto& row : memory_rows(ceilings, published)) add(table, row, published != nullptr);
  document.add(Heading{ceilings.device.empty() && published != nullptr ? published->device : ceilings.device});
  document.add(std::move(table));
  if (ceilings.curve.provenance.source != "published" && !ceilings.curve.empty()) {
    document.add(curve_table(ceilings.curve));
  }
  add_network();
  const auto say = [&](std::string label, std::string text, bool apart = true) {
    document.add(Paragraph{.label = std::move(label), .text = std::move(text), .apart = apart});
  };
  if (ceilings.busy_share > 0) {
    say("busy", "other programs used " + human_percent(ceilings.busy_share * 100) +
                    " of the processors meanwhile: these roofs may be too low");
  }
  if (const auto fastest = fastest_text(ceilings); !fastest.empty()) say("fastest", fastest);
  if (const auto sustained = sustained_text(ceilings); !sustained.empty()) say("sustained", sustained);
  const auto is_published = [](const ComputeCeiling& peak) { return peak.provenance.source == "published"; };
  if (!ceilings.curve.empty() && ceilings.curve.provenance.source == "measured" && !ceilings.curve.provenance.spread) {
    say("spread", "n/a, because one round was measured");
  }
  if (published != nullptr || std::ranges::any_of(ceilings.compute, is_published)) {
    say("clock",
        "published peaks are for boost clocks: under load power and heat may hold a card below them, and its "
        "peaks in proportion");
  }
  if (published != nullptr) say("share", "of the published value of " + published->device, false);
  return document;
}

std::string ceilings_table(const Ceilings& ceilings, std::size_t width, const Ceilings* published) {
  return render_text(ceilings_document(ceilings, published), width);
}

}  // namespace roofprof
