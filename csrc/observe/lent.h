#pragma once
// Holds what a session lends to a thread (lender.h): everything that the observer writes to while the thread has frames
// of the session open.

#include <cstdint>
#include <memory>

#include "core/device_data.h"
#include "observe/bucket_table.h"
#include "observe/memory/traffic_sample.h"

namespace roofprof::observe {

class Allocations;
class BoundaryLog;
class CollectiveLog;
class ParameterReads;
class ReuseLog;
class SequenceRing;
class StablePlaces;

struct Lent {
  BucketTable* table = nullptr;
  std::shared_ptr<SequenceRing> ring;  // this thread's, in that session
  // The same for all threads of a pass:
  LaunchMarker* marker = nullptr;       // null: no device is traced
  ParameterReads* reads = nullptr;      // null: nobody wants to know
  EventIds* event_ids = nullptr;        // null: no events are kept
  std::shared_ptr<Allocations> memory;  // null: nobody wants to know
  std::shared_ptr<CollectiveLog> collectives;
  std::shared_ptr<ReuseLog> reuse;          // null: nobody wants to know
  std::shared_ptr<StablePlaces> places;     // where reuse is tracked
  std::shared_ptr<BoundaryLog> boundaries;  // null: nobody wants to know
  std::shared_ptr<TrafficSample> sample;    // null: the traffic of all ops is logged

  // Returns where to record what an op of that key reads; null: nowhere. What the optimizer and the user's own code
  // read does not count as a module's read.
  ParameterReads* reads_by(const BucketKey& key) const {
    return key.owner.phase == Phase::forward && key.owner.module != kOutside ? reads : nullptr;
  }
  // Returns whether the traffic of an op that starts now is logged.
  bool logs_traffic() const { return reuse != nullptr && (sample == nullptr || sample->logs_op()); }
  // Returns the id of an op or frame that begins now; 0: it is not kept.
  std::uint32_t next_event() const { return event_ids == nullptr ? 0 : event_ids->next(); }
  // Keeps an event of this thread. Called where events are kept.
  void keep(TimedEvent event) const;
};

}  // namespace roofprof::observe
