#pragma once
// Decides which of a trace's ops count, by today's counting rule (observe/rule), and finds what ran inside what on the
// host's threads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kineto/trace.h"
#include "observe/rule/counting_rule.h"
#include "ops/registry.h"

namespace roofprof::kineto {

struct HostTree {
  // The index of the event around each event, or kNone. Events are in the order in which they begin, outer ones before
  // those inside them.
  std::vector<std::int32_t> parents;
  // True for an event that has another op of the same name inside. Autocast, vmap and tensor subclasses dispatch an op
  // again to do its work.
  std::vector<bool> dispatched_again;
};

// Sorts the events, and finds the tree. Clocks of different resolution make events cross the end of what is around
// them: these are taken to end there.
HostTree host_tree(std::vector<HostEvent>& events);

// Returns the innermost op around an event, or the event itself if it is one; kNone: there is none.
std::int32_t innermost_op(const std::vector<HostEvent>& events, const HostTree& tree, std::int32_t event);

// Answers what is known of operators: kineto/importer asks torch, a test has its own answers.
class CallCosts {
 public:
  virtual ~CallCosts() = default;
  // Returns the operator's class; for a name that this torch does not have, that of an operator without a cost.
  virtual observe::OpClass class_of(const RecordedCall& call) = 0;
  // Returns the cost of a call whose class is `counted` or `view`.
  virtual ops::Costed cost_of(const RecordedCall& call) = 0;
  // Returns the arguments whose defaults were taken, because the cost reads their values and the trace does not have
  // them.
  virtual std::string assumed(const RecordedCall& /*call*/) { return {}; }
  // Returns whether there is an operator of that qualified name.
  virtual bool is_operator(const std::string& /*name*/) { return false; }
};

// Returns the operators in a kernel that Inductor generated, which its name lists one behind the other:
// "triton_poi_fused_add_relu_5". Where names can be read in several ways, the longest come first. Text that is not
// made of operators of `known` stays whole. Returns nothing for other names.
std::vector<std::string> fused_ops(std::string_view kernel, CallCosts& known);

struct CountedOps {
  // Indexed by event: the index of the op whose work it is, itself or one around it; kNone: no op's.
  std::vector<std::int32_t> owners;
  // The cost of each call if an op with that call counts; else `costed` is false.
  std::vector<ops::Costed> costs;
};

// Decides which ops count. The outermost op with a cost does, and what it dispatches does not. An op without a cost is
// listed if nothing that counts explains it. Ops that are not operators (Triton's kernels, autograd's functions) are
// listed if they launched something themselves.
CountedOps counted_ops(const Trace& trace, const HostTree& tree, CallCosts& known);

}  // namespace roofprof::kineto
