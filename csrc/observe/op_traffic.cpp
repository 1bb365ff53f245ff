#include "observe/op_traffic.h"

#include <span>

#include "observe/memory/boundary_log.h"
#include "observe/memory/stable_places.h"
#include "observe/operators/operands.h"

namespace roofprof::observe {

void OpTraffic::place(const Lent& lent, std::size_t first) {
  if (first < operands.size()) lent.places->place(std::span(operands).subspan(first));
}

void OpTraffic::add_inputs(const Lent& lent, const OpInfo& op, const at::RecordFunction& fn) {
  const auto first = operands.size();
  observe::add_inputs(op, fn, operands);
  place(lent, first);
}

void OpTraffic::note(const Lent& lent, const at::RecordFunction& fn, const RunningOp& running, BucketTable::Index index,
                     const Work& work) {
  const auto inputs_end = operands.size();
  add_results(*running.op, fn, operands);
  place(lent, inputs_end);
  const auto& bucket = (*lent.table)[index];
  const auto own = std::span(operands).subspan(running.operands_before);
  const auto& moved = bucket.per_call ? work : bucket.cost.work;
  if (bucket.cost.costed) {
    lent.reuse->count({lent.table, index}, own, moved);
  } else {
    lent.reuse->touch(own);
  }
  if (!lent.boundaries) return;
  if (bucket.cost.costed && !running.op->communicates) {
    lent.boundaries->count({lent.table, index}, bucket.key.owner, own, moved);
  } else {
    lent.boundaries->touch(bucket.key.owner, own);
  }
}

}  // namespace roofprof::observe
