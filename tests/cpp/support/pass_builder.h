#pragma once
// Passes written by hand, and what is observed with them.

#include <string>
#include <utility>
#include <vector>

#include "core/run_record.h"
#include "join/join.h"
#include "support/profile_builder.h"

namespace roofprof::testing {

inline std::vector<std::string> texts_of(const std::vector<Note>& notes) {
  std::vector<std::string> texts;
  for (const auto& note : notes) texts.push_back(note.text);
  return texts;
}

// One op, which has work; another number is another operator.
inline Pass::Op op_in_pass(std::uint32_t number, const std::string& name, ModuleId module, std::int64_t calls,
                           std::int64_t time_ns, Phase phase = Phase::forward) {
  Pass::Op op;
  op.op = name;
  op.owner = {module, phase};
  op.number = number;
  op.signature = 1;
  op.dtype = DType::fp32;
  op.calls = calls;
  op.time_ns = time_ns;
  op.work = work_of(1'000 * calls, 100 * calls);
  add_reuse(op.reuse, {100, op.work.read_bytes, op.work.write_bytes, op.work.updated_bytes});  // of one call alone
  op.work.input_elements = 1;
  op.inputs = 1;
  return op;
}

// A run of a model "Net" on the CPU, whose passes the test fills in.
class ObservedBuilder {
 public:
  ObservedBuilder() {
    const ProfileBuilder empty;
    observed.run = empty.data.run;
    observed.tree = empty.data.tree;
    observed.roofs = empty.data.roofs;
  }

  ModuleId module(const std::string& path, const std::string& type, ModuleId parent = kModel) {
    Module module;
    module.path = path;
    module.type = type;
    module.parent = parent;
    observed.tree.modules.push_back(std::move(module));
    return static_cast<ModuleId>(observed.tree.modules.size() - 1);
  }

  Derived derived() const { return Derived(join(observed)); }

  RunRecord observed;
};

}  // namespace roofprof::testing
