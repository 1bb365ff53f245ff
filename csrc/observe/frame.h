#pragma once
// One open frame of a thread: the call, region, autograd node or TorchScript method that runs there. ThreadState opens
// and closes it; code that looks for a module's place reads the stack of frames.

#include <cstddef>

#include "core/profile.h"
#include "observe/clock/clock.h"
#include "observe/launches.h"
#include "observe/memory/allocations.h"
#include "observe/modules/calls.h"
#include "observe/modules/module_index.h"

namespace roofprof::observe {

struct Frame {
  ModuleId module = kModel;
  Phase phase = Phase::forward;
  FrameKind kind = FrameKind::module;
  bool grad_mode = false;        // node: grad mode at its start (on where the backward itself is differentiated)
  bool is_certain = true;        // module: it runs at this place, not at another one of the same object
  LastCall last = {};            // of a module, inside
  int graph_task = -1;           // node: the running backward that it is part of
  const void* token = nullptr;   // who opened it: the module object, the RecordFunction of a node
  Evidence evidence_before = 0;  // seen outside, before it was opened
  std::size_t exchanges_before = 0;
  LaunchMarks::Mark mark = 0;          // while a device is traced
  Allocations::Call memory = {};       // of a module's call, where memory is measured
  bool bounded = false;                // it has a boundary: a call, or a region with a row
  bool began_part = false;             // region: a part of the block began in it (memory/traffic_sample.h)
  bool opens_region = false;           // a region, or a call that is one: no region of its path was open
  RegionId region_before = kNoRegion;  // of a region: that around it
  Ticks opened = 0;                    // or moved to its module
  std::uint32_t event = 0;             // its id, where events are kept
};

}  // namespace roofprof::observe
