#pragma once
// What the parts of the fake libcupti share.

#include <cuda.h>
#include <cupti.h>

#include <set>
#include <utility>

namespace fake {

// Who subscribed to callbacks, and to which.
struct Subscriber {
  bool subscribed = false;
  CUpti_CallbackFunc callback = nullptr;
  void* data = nullptr;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> enabled;

  bool wants(CUpti_CallbackDomain domain, CUpti_CallbackId id) const {
    return subscribed && enabled.contains({domain, id});
  }
};
Subscriber subscribed();

// What the clock of activity records says when the simulated machine's says now_ns: the same, or what a client's
// callback makes of it.
long long by_clock_of_records(long long now_ns);

}  // namespace fake
