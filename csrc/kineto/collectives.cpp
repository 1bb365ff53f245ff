#include "kineto/collectives.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <set>

#include "core/phrases.h"
#include "kineto/json_text.h"
#include "kineto/recorded_arguments.h"

namespace roofprof::kineto {

namespace {

constexpr std::string_view kRecord = "record_param_comms";
constexpr std::string_view kOfGloo = "gloo:";
constexpr std::array<std::string_view, 3> kBackends = {kOfGloo, "nccl:", "xccl:"};

// The names that c10d's backends give their collectives, in records and in ranges, and the operators that call them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kOperators = {{
    {"allreduce", "c10d::allreduce_"},
    {"all_reduce", "c10d::allreduce_"},
    {"allreduce_sparse", "c10d::allreduce_"},
    {"allreduce_coalesced", "c10d::allreduce_coalesced_"},
    {"broadcast", "c10d::broadcast_"},
    {"_broadcast_oop", "c10d::broadcast_"},
    {"reduce", "c10d::reduce_"},
    {"_reduce_oop", "c10d::reduce_"},
    {"allgather", "c10d::allgather_"},
    {"all_gather", "c10d::allgather_"},
    {"_allgather_base", "c10d::_allgather_base_"},
    {"_all_gather_base", "c10d::_allgather_base_"},
    {"allgather_into_tensor_coalesced", "c10d::allgather_into_tensor_coalesced_"},
    {"all_gather_into_tensor_coalesced", "c10d::allgather_into_tensor_coalesced_"},
    {"reduce_scatter", "c10d::reduce_scatter_"},
    {"_reduce_scatter_base", "c10d::_reduce_scatter_base_"},
    {"reduce_scatter_tensor_coalesced", "c10d::reduce_scatter_tensor_coalesced_"},
    {"all_to_all", "c10d::alltoall_base_"},
    {"all_to_allv", "c10d::alltoall_base_"},
    {"alltoall", "c10d::alltoall_"},
    {"alltoall_base", "c10d::alltoall_base_"},
    {"gather", "c10d::gather_"},
    {"scatter", "c10d::scatter_"},
    {"send", "c10d::send"},
    {"recv", "c10d::recv_"},
    {"barrier", "c10d::barrier"},
    {"monitored_barrier", "c10d::monitored_barrier_"},
}};

// Returns the operator; empty if the name is not a collective's ("wait", "coalesced").
std::string_view operator_of(std::string_view name) {
  const auto* found = std::ranges::find(kOperators, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kOperators.end() ? std::string_view{} : found->second;
}

// Returns the number of elements of one tensor's "[8, 1024]"; kNone for anything else.
std::int64_t elements_of(std::string_view sizes) {
  if (!sizes.starts_with('[')) return kNone;
  std::int64_t elements = 1;
  JsonItems items(sizes);
  while (items.next()) {
    const auto size = integer(items.value());
    if (!size || *size < 0) return kNone;
    elements = saturating_multiply(elements, *size);
  }
  return elements;
}

// Returns whether parts of "[3, 3, 3]" differ, or are not all written ("[3, 3, ...]"). "[]": all are equal.
bool is_uneven(std::string_view splits) {
  std::optional<std::string_view> first;
  auto list = splits;
  if (list.starts_with('[')) list.remove_prefix(1);
  if (list.ends_with(']')) list.remove_suffix(1);
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    auto item = list.substr(0, end);
    while (item.starts_with(' ')) item.remove_prefix(1);
    if (first && item != *first) return true;
    first = item;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool knows_elements(const Message& message) { return message.in != kNone && message.out != kNone; }

// The bytes that the operator reads and writes on this rank, as ops/communication counts them from its arguments. Of
// gather and scatter only the rank's own part: what the root has of all ranks is not known.
Work work_of_message(CollectiveKind kind, const Message& message, std::int64_t element_bytes) {
  const auto in = saturating_multiply(message.in, element_bytes);
  const auto out = saturating_multiply(message.out, element_bytes);
  Work work;
  switch (kind) {
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
    case CollectiveKind::send:
      work.read_bytes = in;
      break;
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
    case CollectiveKind::recv:
      work.write_bytes = out;
      break;
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      work.read_bytes = in;
      work.write_bytes = out;
      break;
    case CollectiveKind::barrier:
      break;
  }
  return work;
}

}  // namespace

bool is_message(HostKind kind, std::string_view name) {
  if (kind == HostKind::op) return name == kRecord;
  return kind == HostKind::range &&
         std::ranges::any_of(kBackends, [&](std::string_view backend) { return name.starts_with(backend); });
}

Message message_of(std::string_view name, std::string_view args) {
  Message message;
  bool is_range = false;
  if (const auto colon = name.find(':'); colon != name.npos) {  // "nccl:all_reduce", "nccl:send 0->1"
    is_range = true;
    const auto rest = name.substr(colon + 1);
    message.name = rest.substr(0, rest.find(' '));
  }
  std::int64_t elements = kNone;
  JsonMembers members(args);
  while (members.next()) {
    const auto key = members.key();
    const auto value = members.value();
    if (is_range) {
      if (key == "Input Dims" || key == "Input dims") {
        JsonItems items(value);
        if (items.next()) elements = elements_of(items.value());
      } else if (key == "Input type") {
        JsonItems items(value);
        if (items.next()) message.dtype = decoded(items.value());
      }
    } else if (key == "Collective name") {
      message.name = decoded(value);
    } else if (key == "dtype") {
      message.dtype = decoded(value);
    } else if (key == "In msg nelems") {
      message.in = std::max(integer(value).value_or(kNone), std::int64_t{kNone});
    } else if (key == "Out msg nelems") {
      message.out = std::max(integer(value).value_or(kNone), std::int64_t{kNone});
    } else if (key == "Process Group Name") {
      message.group = decoded(value);
    } else if (key == "Process Group Ranks") {
      message.members = decoded(value);
    } else if (key == "Group size") {
      message.ranks = std::max<std::int64_t>(integer(value).value_or(0), 0);
    } else if (key == "In split size" || key == "Out split size") {
      message.uneven = message.uneven || is_uneven(unquoted(value));
    } else if (key == "Seq") {
      message.number = std::max(integer(value).value_or(kNone), std::int64_t{kNone});
    }
  }
  const auto kind = collective_of(operator_of(message.name));
  if (!is_range || !kind || elements == kNone) return message;
  // A range has the first tensor that is sent. What a rank gets of the others depends on their number.
  switch (*kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send:
    case CollectiveKind::recv:
      message.in = message.out = elements;
      break;
    default:
      break;
  }
  return message;
}

void take_distributed_facts(std::string_view facts, Trace& trace) {
  JsonMembers members(facts);
  while (members.next()) {
    if (members.key() == "rank") {
      trace.rank = integer(members.value()).value_or(kNone);
    } else if (members.key() == "world_size") {
      trace.world_size = integer(members.value()).value_or(kNone);
    } else if (members.key() == "backend") {
      trace.backend = decoded(members.value());
    } else if (members.key() == "pg_config") {
      JsonItems groups(members.value());
      while (groups.next()) {
        ListedGroup group;
        JsonMembers of_group(groups.value());
        while (of_group.next()) {
          if (of_group.key() == "pg_name") group.name = decoded(of_group.value());
          if (of_group.key() == "backend_config") group.backend = decoded(of_group.value());
          if (of_group.key() == "pg_size") group.ranks = integer(of_group.value()).value_or(0);
          if (of_group.key() == "ranks") group.members = std::string(of_group.value());
        }
        trace.groups.push_back(std::move(group));
      }
    }
  }
}

// ---- costs

observe::OpClass CollectiveCosts::class_of(const RecordedCall& call) {
  if (call.message == kNone && !collective_of(call.op)) return others_.class_of(call);
  observe::OpClass known;  // it counts, even if its bytes are not known
  known.kind = observe::OpKind::counted;
  return known;
}

ops::Costed CollectiveCosts::cost_of(const RecordedCall& call) {
  if (call.message == kNone) {
    return call.described || !collective_of(call.op) ? others_.cost_of(call) : ops::Costed{};
  }
  const auto& message = trace_.messages[at(call.message)];
  const auto kind = collective_of(call.op);
  const auto* element = element_of(message.dtype);
  auto cost = call.described ? others_.cost_of(call) : ops::Costed{};
  cost.failure.clear();
  const bool of_parts = kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  if (!kind || element == nullptr || (cost.costed && of_parts)) return cost;  // the arguments are more exact
  cost.work = work_of_message(*kind, message, element->bytes);
  cost.costed = true;
  cost.dtype = element->dtype;
  if (cost.shapes.empty() && *kind != CollectiveKind::barrier) {
    cost.shapes.tensors = {{message.out}};
    if (message.in != message.out) cost.shapes.tensors.push_back({message.in});
  }
  return cost;
}

// ---- calls

void Collectives::see_ranges(const Trace& trace) {
  for (const auto& event : trace.host) {
    if (event.message == kNone || event.kind != HostKind::range) continue;
    if (!std::string_view(trace.names[event.name]).starts_with(kOfGloo)) continue;
    if (const auto kind = collective_of(operator_of(trace.messages[at(event.message)].name))) {
      ranges_.push_back({*kind, {event.begin_ns, event.end_ns}});
    }
  }
  std::ranges::stable_sort(ranges_, {}, [](const Range& range) { return range.interval.begin_ns; });
}

Interval Collectives::range_of(CollectiveKind kind, std::int64_t begin_ns) {
  const auto is_known = [&](const Range& range) { return range.kind == kind; };
  // gloo reduces all and keeps a part.
  if (kind == CollectiveKind::reduce_scatter && std::ranges::none_of(ranges_, is_known)) {
    kind = CollectiveKind::all_reduce;
  }
  auto& next = next_range_[kind];
  while (next < ranges_.size() && (ranges_[next].kind != kind || ranges_[next].interval.begin_ns < begin_ns)) ++next;
  return next < ranges_.size() ? ranges_[next++].interval : Interval{0, -1};
}

void Collectives::find(Trace& trace, const HostTree& tree) {
  std::vector<bool> is_collective;  // by name
  for (const auto& name : trace.names) is_collective.push_back(name == kRecord || collective_of(name));
  const auto outermost = [&](std::size_t event) {
    auto found = kNone;
    for (auto i = static_cast<std::int32_t>(event); i != kNone; i = tree.parents[at(i)]) {
      const auto& around = trace.host[at(i)];
      if (around.kind == HostKind::op && is_collective[around.name]) found = i;
    }
    return found;
  };
  // Each op's messages by source, the most reliable first: c10d's records, their backends' ranges, kernels.
  std::map<std::size_t, std::array<std::vector<std::int32_t>, 3>> by_source;
  for (std::size_t i = 0; i < trace.host.size(); ++i) {
    const auto& event = trace.host[i];
    auto message = event.message;
    std::size_t source = event.kind == HostKind::op ? 0 : 1;
    if (event.kind == HostKind::launch) {
      const auto known = trace.kernel_messages.find(event.correlation);
      if (known == trace.kernel_messages.end()) continue;
      message = known->second;
      source = 2;
    } else if (message == kNone && (event.kind != HostKind::op || !is_collective[event.name])) {
      continue;
    }
    const auto op = outermost(i);
    if (op == kNone) continue;
    auto& of_op = by_source[at(op)];
    if (message != kNone && !operator_of(trace.messages[at(message)].name).empty()) of_op[source].push_back(message);
  }
  std::map<std::tuple<std::int32_t, std::uint32_t, Message>, std::int32_t> calls;
  for (const auto& [index, sources] : by_source) {
    auto& event = trace.host[index];
    const auto source = std::ranges::find_if(sources, [](const auto& messages) { return !messages.empty(); });
    const bool is_record = trace.names[event.name] == kRecord;
    if (is_record && source == sources.end()) continue;
    Called called;
    if (source != sources.end()) {
      called.message = trace.messages[at(source->front())];
      for (std::size_t i = 1; i < source->size(); ++i) {
        const auto& more = trace.messages[at((*source)[i])];
        if (more.name != called.message.name || more.dtype != called.message.dtype || !knows_elements(more)) {
          called.message.in = called.message.out = kNone;
        } else if (knows_elements(called.message)) {
          called.message.in = saturating_add(called.message.in, more.in);
          called.message.out = saturating_add(called.message.out, more.out);
        }
        called.message.uneven = called.message.uneven || more.uneven;
      }
      if (!knows_elements(called.message) && source == sources.begin() && !sources[1].empty()) {
        const auto& range = trace.messages[at(sources[1].front())];  // older records have only a name
        if (sources[1].size() == 1) {
          called.message.in = range.in;
          called.message.out = range.out;
          if (called.message.dtype.empty()) called.message.dtype = range.dtype;
        }
      }
      // An op that calls others, such as an all_gather of uneven parts, which broadcasts each.
      if (!is_record && collective_of(operator_of(called.message.name)) != collective_of(trace.names[event.name])) {
        called.message.in = called.message.out = kNone;
      }
    }
    if (is_record) {
      const std::string op(operator_of(called.message.name));
      const auto known = std::ranges::find(trace.names, op);
      event.name = static_cast<std::uint32_t>(known - trace.names.begin());
      if (known == trace.names.end()) trace.names.push_back(op);
    }
    called.kind = *collective_of(trace.names[event.name]);
    auto key = called.message;
    key.number = kNone;
    const auto [call, fresh] =
        calls.try_emplace({event.call, event.name, key}, static_cast<std::int32_t>(trace.calls.size()));
    if (fresh) {
      auto own = trace.calls[at(event.call)];
      own.op = trace.names[event.name];
      if (is_record) {
        own = {};
        own.op = trace.names[event.name];
      }
      const auto* element = element_of(called.message.dtype);
      if (element != nullptr && !own.list_type.empty()) own.list_type = element->cpp;
      if (knows_elements(called.message) && element != nullptr) {
        own.message = static_cast<std::int32_t>(trace.messages.size());
        trace.messages.push_back(called.message);
      }
      trace.calls.push_back(std::move(own));
    }
    event.call = call->second;
    calls_.emplace(index, std::move(called));
  }
}

// ---- times

void Collectives::see_kernels(const DeviceTrace& device) {
  on_device_ = !device.records.empty();
  std::vector<bool> computes;  // by name
  for (const auto& name : device.names) computes.push_back(!is_kernel_of_collectives(name));
  for (const auto& record : device.records) {
    if (record.kind == KernelKind::kernel && computes[record.name]) {
      computed_.push_back({record.start_ns, record.end_ns});
    }
  }
}

void Collectives::launched(std::size_t op, const KernelRecord& record, const std::string& kernel) {
  if (record.kind != KernelKind::kernel || !calls_.contains(op) || !is_kernel_of_collectives(kernel)) return;
  const auto [known, fresh] = kernels_.try_emplace(op, Interval{record.start_ns, record.end_ns});
  if (fresh) return;
  known->second.begin_ns = std::min(known->second.begin_ns, record.start_ns);
  known->second.end_ns = std::max(known->second.end_ns, record.end_ns);
}

std::int64_t Collectives::group_of(const Message& message, const Trace& trace, bool on_device,
                                   PassCollectives& pass) const {
  ProcessGroup group{
      .name = message.group, .backend = trace.backend, .ranks = message.ranks, .members = message.members};
  const auto listed = message.group.empty() && trace.groups.size() == 1
                          ? trace.groups.begin()
                          : std::ranges::find(trace.groups, message.group, &ListedGroup::name);
  if (listed != trace.groups.end()) {
    group.name = listed->name;
    group.ranks = listed->ranks;
    group.members = listed->members;
    group.backend = listed->backend;
    // "cpu:gloo,cuda:nccl"
    const std::string_view device = on_device ? "cuda:" : "cpu:";
    if (const auto begin = group.backend.find(device); begin != std::string::npos) {
      group.backend = group.backend.substr(begin + device.size());
      group.backend.resize(std::min(group.backend.find(','), group.backend.size()));
    }
  }
  const auto known = std::ranges::find(pass.groups, group);
  if (known != pass.groups.end()) return known - pass.groups.begin();
  pass.groups.push_back(std::move(group));
  return std::ssize(pass.groups) - 1;
}

PassCollectives Collectives::of_pass(const Trace& trace, const CountedOps& counted,
                                     const std::vector<std::int32_t>& bucket_of_event,
                                     const std::vector<Pass::Op>& ops) {
  PassCollectives pass;
  pass.of_kernels = on_device_;
  pass.all_ran = false;  // where code ran meanwhile is not followed
  const auto absolute = [&](std::int64_t ns) { return saturating_add(trace.base_ns, ns); };
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t> counts;  // by bucket and group
  std::vector<std::int64_t> given;                                       // numbers of calls, by group
  for (const auto& [event, called] : calls_) {
    const auto time = on_device_ ? kernels_.find(event) : kernels_.end();
    const auto range = on_device_ ? Interval{0, -1} : range_of(called.kind, trace.host[event].begin_ns);
    if (std::cmp_not_equal(counted.owners[event], event)) continue;
    const auto bucket = bucket_of_event[event];
    const auto group = group_of(called.message, trace, on_device_, pass);
    if (std::cmp_greater_equal(group, given.size())) given.push_back(0);
    const auto [count, fresh] = counts.try_emplace({bucket, group}, std::ssize(pass.counts));
    if (fresh) pass.counts.push_back({bucket, group, 0, called.message.uneven});
    ++pass.counts[static_cast<std::size_t>(count->second)].calls;
    if (pass.groups[static_cast<std::size_t>(group)].ranks <= 0) ++without_group_;
    if (!ops[at(bucket)].costed) ++without_bytes_;
    if (called.message.uneven) ++uneven_;
    auto number = kNone + std::int64_t{0};
    if (called.kind != CollectiveKind::send && called.kind != CollectiveKind::recv) {
      number = given[static_cast<std::size_t>(group)]++;
      if (called.message.number != kNone) number = called.message.number;
    }
    const bool is_timed = on_device_ ? time != kernels_.end() : range.end_ns >= range.begin_ns;
    if (!is_timed) {
      ++untimed_;
    } else if (std::ssize(pass.calls) >= kCollectivesTimed) {
      ++pass.left_out;
    } else {
      const auto begin = on_device_ ? time->second.begin_ns : trace.host[event].begin_ns;
      const auto end = on_device_ ? time->second.end_ns : range.end_ns;
      pass.calls.push_back({count->second, number, absolute(begin), absolute(end)});
    }
  }
  if (!on_device_) {
    for (std::size_t i = 0; i < trace.host.size(); ++i) {
      if (std::cmp_not_equal(counted.owners[i], i)) continue;
      const auto& op = ops[at(bucket_of_event[i])];
      if (op.has_work() && !is_communication(op.op)) {
        computed_.push_back({trace.host[i].begin_ns, trace.host[i].end_ns});
      }
    }
  }
  if (pass.counts.empty()) return pass;
  for (const auto& one : computed_) pass.computed.push_back({absolute(one.begin_ns), absolute(one.end_ns)});
  return pass;
}

std::vector<Note> Collectives::notes() const {
  std::vector<Note> notes;
  if (untimed_ > 0) {
    add_note(notes, "collectives-untimed",
             counted(untimed_, "call") + " of collectives " + (untimed_ == 1 ? "has" : "have") + " no times: " +
                 (on_device_ ? "no kernel of the trace is known to be theirs (those that are called as one by a "
                               "coalescing manager have one kernel, which no operator launches)"
                             : "the trace does not say when they ended"));
  }
  if (without_group_ > 0) {
    add_note(notes, "trace-lacks",
             "the trace does not say in which group " + counted(without_group_, "call") + " of collectives " +
                 (without_group_ == 1 ? "was" : "were") +
                 " made, so what of them crosses the network (bus bandwidth, wire bytes) is not known");
  }
  if (without_bytes_ > 0) {
    add_note(notes, "trace-lacks",
             "the trace does not say how many bytes " + counted(without_bytes_, "call") + " of collectives " +
                 (without_bytes_ == 1 ? "is" : "are") + " about: record with record_shapes=True");
  }
  if (uneven_ > 0) {
    add_note(
        notes, "trace-lacks",
        "in " + counted(uneven_, "call") +
            " of collectives the ranks give each other parts of different sizes: what the busiest rank sends is not "
            "in the trace of one, so they have no bus bandwidth");
  }
  return notes;
}

}  // namespace roofprof::kineto
