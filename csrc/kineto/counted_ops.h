#pragma once
// Which of a trace's ops count: today's counting rule (observe/rule), on what was recorded.

#include <cstdint>
#include <string>
#include <vector>

#include "kineto/host_tree.h"
#include "kineto/trace.h"
#include "observe/rule/counting_rule.h"
#include "ops/costed.h"

namespace roofprof::kineto {

// What is known of operators; torch answers it (kineto/costs), or a test.
class CallCosts {
 public:
  virtual ~CallCosts() = default;
  // Of a name that is no operator here, the class of one without a cost.
  virtual observe::OpClass class_of(const RecordedCall& call) = 0;
  // Of a call whose class is `counted` or `view`.
  virtual ops::Costed cost_of(const RecordedCall& call) = 0;
  // Arguments whose values the cost reads and the trace does not have: their defaults were taken.
  virtual std::string assumed(const RecordedCall& /*call*/) { return {}; }
};

struct CountedOps {
  // By event: the op whose work it is, itself or one around it; kNone: nobody's. Index of the event.
  std::vector<std::int32_t> owners;
  // By call: its cost, where an op with that call counts; else costed is false.
  std::vector<ops::Costed> costs;
};

// The outermost op with a cost counts, and what it dispatches does not; an op without one is listed where nothing that
// counts explains it. Ops that are no operators (Triton's kernels, functions of autograd's) are listed where they
// launched something themselves.
CountedOps counted_ops(const Trace& trace, const HostTree& tree, CallCosts& known);

}  // namespace roofprof::kineto
