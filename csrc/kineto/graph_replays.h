#pragma once
// Finds what the kernels of a graph's replay are: the trace of the graph's capture has their launches, with the ops and
// modules around them.

#include <string_view>
#include <vector>

#include "kineto/captured_graphs.h"
#include "kineto/counted_ops.h"
#include "kineto/trace.h"
#include "roofprof/note.h"

namespace roofprof::kineto {

// The row of kernels of replays whose launches in a capture are not known.
inline constexpr std::string_view kGraphReplay = "(graph replay)";

// Adds what the captures know of the trace's replays: behind each launch of a graph come the captured ops, modules and
// launches, without time of the host; `captured` of the records names these launches. Adds notes that say which capture
// was taken for how many kernels, and which kernels match nothing. Throws TraceError if captures that the user gave fit
// no replay.
void give_replays(Trace& trace, HostTree& tree, std::vector<Capture> captures, std::vector<Note>& notes);

}  // namespace roofprof::kineto
