#include "join/script_times.h"

#include <set>

#include "core/note_codes.h"
#include "join/module_paths.h"

namespace roofprof {
OtherOps other_ops(const Pass& counting, const Pass& timed, const std::vector<Module>& modules) {
  std::set<OpKey> counted;
  for (const auto& op : counting.ops) counted.insert(op.key());
  std::set<std::string> where;
  std::set<std::string> names;
  OtherOps others;
  for (const auto& op : timed.ops) {
    if (op.is_unobserved() || op.kind == Pass::Op::Kind::tracing || counted.contains(op.key())) continue;
    auto& other = others.ops.emplace_back(op);
    other.calls = 0;
    other.work = {};
    other.reuse.clear();
    other.costed = true;
    if (!op.has_work()) continue;
    where.insert(modules[index_of(op.owner.module)].path);
    names.insert(op.op);
  }
  if (!names.empty()) {
    others.note = make_note("script-other-ops",
                            "TorchScript's executor ran other operators than the code of its modules has (" +
                                first_paths(names) + " in " + first_paths(where) +
                                "): their work is in the rows of the modules whose code has it, their time in the rows "
                                "of those that ran them",
                            {where.begin(), where.end()});
  }
  return others;
}

std::optional<Note> note_on_differentiated(const Pass& counting, const std::vector<Module>& modules) {
  std::set<std::string> where;
  for (const auto module : counting.differentiated_whole) where.insert(modules[index_of(module)].path);
  if (where.empty()) return std::nullopt;
  return make_note("script-differentiated",
                   "TorchScript differentiated parts of " + first_paths(where) +
                       " as a whole: their backward, and all work whose module is unknown there, is in those rows",
                   {where.begin(), where.end()});
}

}  // namespace roofprof
