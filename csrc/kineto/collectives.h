#pragma once
// The collectives of a trace: which calls they are, how many bytes each is about, in which group, and when it ran.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/collective_data.h"
#include "core/collective_kinds.h"
#include "core/note_codes.h"
#include "core/pass.h"
#include "kineto/counted_ops.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

// ---- what the reader asks

// Returns true if an event describes a collective: c10d's record of it, or a range of its backend.
bool is_message(HostKind kind, std::string_view name);
// Returns the message in an event's arguments. `name` is the event's; a kernel's arguments name the collective
// themselves.
Message message_of(std::string_view name, std::string_view args);
// Takes rank, number of ranks, backend and groups from "distributedInfo".
void take_distributed_facts(std::string_view facts, Trace& trace);

// ---- what the record is made of

// Answers for collectives by their messages, and asks `others` for all other calls.
class CollectiveCosts final : public CallCosts {
 public:
  CollectiveCosts(CallCosts& others, const Trace& trace) : others_(others), trace_(trace) {}
  observe::OpClass class_of(const RecordedCall& call) override;
  ops::Costed cost_of(const RecordedCall& call) override;
  std::string assumed(const RecordedCall& call) override { return others_.assumed(call); }
  bool is_operator(const std::string& name) override { return others_.is_operator(name); }

 private:
  CallCosts& others_;
  const Trace& trace_;
};

class Collectives {
 public:
  // Takes the ranges of gloo, which last until the collective is done: the tree cuts them off at the end of the op
  // around them. To be called before host_tree().
  void see_ranges(const Trace& trace);
  // Finds the ops that are collectives, and gives each the call that its message describes.
  void find(Trace& trace, const HostTree& tree);
  // Takes the kernels that compute, also those that are in no row: what they hide is not exposed.
  void see_kernels(const DeviceTrace& device);
  // Takes a kernel that an op (or what is inside of it) launched.
  void launched(std::size_t op, const KernelRecord& record, const std::string& kernel);

  // `bucket_of_event`: the index in `ops` of each event that counts.
  PassCollectives of_pass(const Trace& trace, const CountedOps& counted,
                          const std::vector<std::int32_t>& bucket_of_event, const std::vector<Pass::Op>& ops);
  // Returns notes on what the trace lacks about collectives. Call it after of_pass().
  std::vector<Note> notes() const;

 private:
  struct Called {
    Message message;  // its elements are kNone where they are not known
    CollectiveKind kind = CollectiveKind::all_reduce;
  };
  struct Range {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Interval interval;
  };
  std::int64_t group_of(const Message& message, const Trace& trace, bool on_device, PassCollectives& pass) const;
  // Returns the range of the call, which is not given again; an interval that ends before it begins: there is none.
  Interval range_of(CollectiveKind kind, std::int64_t begin_ns);

  std::map<std::size_t, Called> calls_;  // by the op's event
  std::vector<Range> ranges_;            // by their begin
  std::map<CollectiveKind, std::size_t> next_range_;
  std::map<std::size_t, Interval> kernels_;  // by the op's event: from the first one's begin to the last one's end
  Intervals computed_;
  bool on_device_ = false;
  std::int64_t untimed_ = 0;
  std::int64_t without_group_ = 0;
  std::int64_t without_bytes_ = 0;
  std::int64_t uneven_ = 0;
};

}  // namespace roofprof::kineto
