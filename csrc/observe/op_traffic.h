#pragma once
// The memory that the running ops of one thread touch. The observer passes the ops whose traffic is logged
// (Lent::logs_traffic), and OpTraffic adds it to the pass's logs of reuse and of what crosses boundaries.

#include <cstddef>
#include <vector>

#include "observe/lent.h"
#include "observe/reuse/reuse_log.h"
#include "observe/running_op.h"

namespace at {
struct RecordFunction;
}

namespace roofprof::observe {

struct OpTraffic {
  std::vector<Operand> operands;  // that the running ops took, the outermost first

  // Adds the inputs of an op that begins, at their stable places: TorchScript's interpreter may have freed them when it
  // ends.
  void add_inputs(const Lent& lent, const OpInfo& op, const at::RecordFunction& fn);
  // Notes the reuse and the crossings of an op that was counted there and adds its results; `work` as for
  // ThreadState::count().
  void note(const Lent& lent, const at::RecordFunction& fn, const RunningOp& running, BucketTable::Index index,
            const Work& work);

 private:
  void place(const Lent& lent, std::size_t first);
};

}  // namespace roofprof::observe
