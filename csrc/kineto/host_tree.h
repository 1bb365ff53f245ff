#pragma once
// What ran inside what, on each thread of the host.

#include <cstdint>
#include <vector>

#include "kineto/trace.h"

namespace roofprof::kineto {

struct HostTree {
  // By event, the events in order of their begin and what is around before what is inside. Index or kNone.
  std::vector<std::int32_t> parents;
  // Another op of the same name runs inside: autocast, vmap and tensor subclasses dispatch an op again to do its work.
  std::vector<bool> dispatched_again;
};

// Sorts the events, and finds the tree. Events that cross the end of what is around them, which clocks of different
// resolution make, are taken to end there.
HostTree host_tree(std::vector<HostEvent>& events);

}  // namespace roofprof::kineto
