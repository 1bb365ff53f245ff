#pragma once
// Finds what recorded calls cost: it dispatches each again, on tensors without data (the meta device).

#include <string>
#include <unordered_map>
#include <vector>

#include "kineto/counted_ops.h"

namespace c10 {
struct OperatorName;
}

namespace roofprof::kineto {

// Operators are found by name, and among overloads the first whose schema takes the recorded arguments. Users' costs
// (OpCosts) count for operators that this torch does not have, too. Where Python's interpreter runs, it must be held:
// many operators' shapes are computed there.
class MetaCosts final : public CallCosts {
 public:
  MetaCosts();
  ~MetaCosts() override;
  observe::OpClass class_of(const RecordedCall& call) override;
  ops::Costed cost_of(const RecordedCall& call) override;
  std::string assumed(const RecordedCall& call) override;
  bool is_operator(const std::string& name) override { return !overloads_of(name).empty(); }

 private:
  const std::vector<c10::OperatorName>& overloads_of(const std::string& op);
  // Returns whether the call is costed by its arguments alone: torch does not have the operator, or a line names its
  // arguments, of which traces may lack those that torch would need.
  bool needs_no_schema(const RecordedCall& call);

  std::unordered_map<std::string, std::vector<c10::OperatorName>> overloads_;
};

}  // namespace roofprof::kineto
