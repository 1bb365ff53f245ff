#pragma once
// The members of events (core/members.h).

#include <string_view>

#include "core/member_list.h"
#include "core/profile_data.h"

namespace roofprof {

template <class Visitor>
void for_each_member(Of<Event>, Visitor&& visit) {
  visit("id", &Event::id, Written::always);
  visit("kind", &Event::kind, Written::always);
  visit("thread", &Event::thread, Written::always);
  visit("module", &Event::module, Written::always);
  visit("phase", &Event::phase, Written::always);
  visit("region", &Event::region, Written::always);
  visit("name", &Event::name, Written::always);
  visit("bucket", &Event::bucket, Written::always);
  visit("begin_ns", &Event::begin_ns, Written::always);
  visit("end_ns", &Event::end_ns, Written::always);
}

template <class Visitor>
void for_each_member(Of<LaunchEvent>, Visitor&& visit) {
  visit("kind", &LaunchEvent::kind, Written::always);
  visit("name", &LaunchEvent::name, Written::always);
  visit("event", &LaunchEvent::event, Written::always);
  visit("device", &LaunchEvent::device, Written::always);
  visit("stream", &LaunchEvent::stream, Written::always);
  visit("module", &LaunchEvent::module, Written::always);
  visit("phase", &LaunchEvent::phase, Written::always);
  visit("region", &LaunchEvent::region, Written::always);
  visit("bucket", &LaunchEvent::bucket, Written::always);
  visit("begin_ns", &LaunchEvent::begin_ns, Written::always);
  visit("end_ns", &LaunchEvent::end_ns, Written::always);
}

template <class Visitor>
void for_each_member(Of<Events>, Visitor&& visit) {
  visit("kept", &Events::kept, Written::always);
  visit("names", &Events::names, Written::always);
  visit("host", &Events::host, Written::always);
  visit("device", &Events::device, Written::always);
  visit("left_out", &Events::left_out, Written::always);
}

}  // namespace roofprof
