#pragma once
// The members of collectives (core/members.h).

#include "core/collective_data.h"
#include "core/member_list.h"

namespace roofprof {

template <>
inline constexpr bool is_table_row<CollectiveCall> = true;

template <class Visitor>
void for_each_member(Of<ProcessGroup>, Visitor&& visit) {
  visit("name", &ProcessGroup::name, Written::always);
  visit("backend", &ProcessGroup::backend, Written::always);
  visit("ranks", &ProcessGroup::ranks, Written::always);
  visit("hosts", &ProcessGroup::hosts, Written::unless_default);
  visit("members", &ProcessGroup::members, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<CollectiveCall>, Visitor&& visit) {
  visit("collective", &CollectiveCall::collective, Written::always);
  visit("sequence", &CollectiveCall::sequence, Written::always);
  visit("begin_ns", &CollectiveCall::begin_ns, Written::always);
  visit("end_ns", &CollectiveCall::end_ns, Written::always);
}

template <class Visitor>
void for_each_member(Of<CollectiveBucket>, Visitor&& visit) {
  visit("bucket", &CollectiveBucket::bucket, Written::always);
  visit("group", &CollectiveBucket::group, Written::always);
  visit("calls", &CollectiveBucket::calls, Written::always);
  visit("timed_calls", &CollectiveBucket::timed_calls, Written::unless_default);
  visit("time_ns", &CollectiveBucket::time_ns, Written::unless_default);
  visit("exposed_ns", &CollectiveBucket::exposed_ns, Written::unless_default);
  visit("exposed_known", &CollectiveBucket::exposed_known, Written::unless_default);
  visit("waited_calls", &CollectiveBucket::waited_calls, Written::unless_default);
  visit("wait_ns", &CollectiveBucket::wait_ns, Written::unless_default);
  visit("transfer_ns", &CollectiveBucket::transfer_ns, Written::unless_default);
  visit("uneven", &CollectiveBucket::uneven, Written::unless_default);
  visit("algorithm", &CollectiveBucket::algorithm, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<ExposedIn>, Visitor&& visit) {
  visit("collective", &ExposedIn::collective, Written::always);
  visit_owner(&ExposedIn::owner, Written::unless_default, visit);
  visit("exposed_ns", &ExposedIn::exposed_ns, Written::always);
}

template <class Visitor>
void for_each_member(Of<CollectiveData>, Visitor&& visit) {
  visit("groups", &CollectiveData::groups, Written::always);
  visit("collectives", &CollectiveData::collectives, Written::always);
  visit("exposed_in", &CollectiveData::exposed_in, Written::unless_default);
  visit("calls", &CollectiveData::calls, Written::unless_default);
  visit("time_ns", &CollectiveData::time_ns, Written::unless_default);
  visit("exposed_ns", &CollectiveData::exposed_ns, Written::unless_default);
}

}  // namespace roofprof
