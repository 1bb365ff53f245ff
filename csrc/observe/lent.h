#pragma once
// What a session lends to a thread.

#include <memory>

#include "core/device_data.h"

namespace roofprof::observe {

class Allocations;
class BoundaryLog;
class BucketTable;
class CollectiveLog;
class EventIds;
class ParameterReads;
class ReuseLog;
class SequenceRing;
class StablePlaces;
class TrafficSample;

// Lent while the thread has frames of the session open.
struct Lent {
  BucketTable* table = nullptr;
  std::shared_ptr<SequenceRing> ring;  // this thread's, in that session
  LaunchMarker* marker = nullptr;      // null: no device is traced
  ParameterReads* reads = nullptr;     // null: nobody wants to know
  EventIds* event_ids = nullptr;       // null: no events are kept
  // Of the pass:
  std::shared_ptr<Allocations> memory;  // null: nobody wants to know
  std::shared_ptr<CollectiveLog> collectives;
  std::shared_ptr<ReuseLog> reuse;          // null: nobody wants to know
  std::shared_ptr<StablePlaces> places;     // where reuse is tracked
  std::shared_ptr<BoundaryLog> boundaries;  // null: nobody wants to know
  std::shared_ptr<TrafficSample> sample;    // null: the traffic of all ops is logged
};

}  // namespace roofprof::observe
