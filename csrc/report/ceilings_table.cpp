// The roofs of a machine as a table of their own: `roofprof ceilings`.

#include "report/ceilings_table.h"

#include <fmt/format.h>

#include "report/text_table.h"
#include "report/units.h"

namespace roofprof {
namespace {

void add_row(TextTable& table, const std::string& roof, const std::string& value, const std::string& holds,
             const Provenance& provenance) {
  table.add({TextCell(roof), TextCell(value), TextCell(holds),
             TextCell(provenance.spread ? human_percent(*provenance.spread * 100) : "n/a"), TextCell(provenance.source),
             TextCell(provenance.date), TextCell(provenance.method)});
}

}  // namespace

std::string ceilings_table(const Ceilings& ceilings, std::size_t width) {
  if (ceilings.empty()) return "no roofs\n";
  TextTable table({{"roof", true, 0, 0},
                   {"value", false, 0, 0},
                   {"holds", false, 0, 3},
                   {"spread", false, 0, 0},
                   {"source", true, 0, 1},
                   {"date", true, 0, 2},
                   {"method", true, 20, 4}});
  for (const auto& ceiling : ceilings.compute) {
    const auto* unit = is_floating(ceiling.dtype) ? "FLOP/s" : "op/s";
    add_row(table, std::string(name_of(ceiling.dtype)), human_count(ceiling.operations_per_second, unit), "",
            ceiling.provenance);
  }
  table.add_rule();
  for (const auto& ceiling : ceilings.memory) {
    const auto holds =
        ceiling.capacity_bytes > 0 ? human_bytes(static_cast<double>(ceiling.capacity_bytes)) : std::string();
    add_row(table, ceiling.level, human_count(ceiling.bytes_per_second, "B/s"), holds, ceiling.provenance);
  }
  return ceilings.device + "\n\n" + table.render(width);
}

}  // namespace roofprof
