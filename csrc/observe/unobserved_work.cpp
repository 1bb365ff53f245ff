#include "observe/unobserved_work.h"

#include <mutex>

#include "observe/thread_state.h"

namespace roofprof::observe {

void note_unobserved(ThreadState& state, std::string_view name, Unobserved kind) {
  note_unobserved(state, name, kind, state.now().module, 1);
}

void note_unobserved(ThreadState& state, std::string_view name, Unobserved kind, ModuleId module, std::int64_t calls) {
  BucketTable::Index index = BucketTable::kNone;
  {
    const std::lock_guard guard(state.lent.table->lock);
    index = state.lent.table->add_uncosted(
        {.op = named_op(name, kind), .owner = {module, state.now().phase, state.region}});
  }
  state.count(index, 0, Work{}, calls);
  state.bypass.evidence |= kWorkSeen;  // what encloses it is explained
}

}  // namespace roofprof::observe
