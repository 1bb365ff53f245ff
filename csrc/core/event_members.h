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
  visit_owner(&Event::owner, Written::always, visit);
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
  visit_owner(&LaunchEvent::owner, Written::always, visit);
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
