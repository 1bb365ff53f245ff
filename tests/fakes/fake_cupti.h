#pragma once
// What the parts of the fake libcupti share.

#include <cuda.h>
#include <cupti.h>

namespace fake {

// Calls the subscriber back on this thread, if it wants that callback; fake_calls("callback") counts them.
void tell_subscriber(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);

// What the clock of activity records says when the simulated machine's says now_ns: the same, or what a client's
// callback makes of it.
long long by_clock_of_records(long long now_ns);

}  // namespace fake
