#pragma once
// Keeps torch from boxing the results of a call that nobody reads.

#include <ATen/record_function.h>

namespace roofprof::observe {

// Lets a function reach the record's private member: names in an explicit instantiation are not checked for access.
template <auto kMember>
struct StepCallbacksOf {
  friend at::StepCallbacks& step_callbacks_of(at::RecordFunction& record) { return record.*kMember; }
};
at::StepCallbacks& step_callbacks_of(at::RecordFunction& record);
template struct StepCallbacksOf<&at::RecordFunction::step_callbacks_>;

// Tells torch that this record needs no results; to be called in its start callback. The dispatcher asks the record
// after its start callbacks, while callbacks can only say for all records what they need. Does nothing where others
// listen, too: they may read the results.
[[gnu::always_inline]] inline void leave_results(const at::RecordFunction& record) {
  // The dispatcher made it, and not const.
  auto& step = step_callbacks_of(const_cast<at::RecordFunction&>(record));  // NOLINT(*-const-cast)
  if (step.callbacks_.size() == 1) step.needs_outputs_ = false;
}

}  // namespace roofprof::observe
