#include "observe/declared_work.h"

#include <algorithm>

#include "observe/memory/boundary_log.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// Returns a hash of the counts. Different work under the same name thus gets different buckets, as different shapes of
// an op do.
std::uint64_t signature_of(const Work& work) {
  std::uint64_t hash = 0x452821E638D01377ULL;
  const auto mix = [&hash](std::int64_t count) {
    hash = (hash ^ static_cast<std::uint64_t>(count)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  for (const auto count : {work.macs, work.causal_macs, work.read_bytes, work.write_bytes}) mix(count);
  for (const auto count : work.operations) mix(count);
  return hash;
}

DType leading_dtype(const Work& work) {
  const auto most = std::ranges::max_element(work.operations);
  return *most > 0 ? static_cast<DType>(most - work.operations.begin()) : DType::other;
}

BucketKey key_of(const ThreadState& state, std::string_view name, const Work& work) {
  return {.op = named_op(name, Unobserved::no), .owner = state.now(), .signature = signature_of(work)};
}

BucketTable::Index bucket_of(ThreadState& state, const BucketKey& key, const Work& work) {
  if (const auto found = state.lent.table->find(key); found != BucketTable::kNone) return found;
  const std::lock_guard guard(state.lent.table->lock);
  return state.lent.table->add(
      key, key.signature, {.costed = true, .work = work, .dtype = leading_dtype(work), .shapes = {}, .failure = {}});
}

}  // namespace

bool declare_work(std::string_view name, const Work& work) {
  auto& state = thread_state();
  if (!state.is_observed() || state.in_owned_work()) return false;
  const auto index = bucket_of(state, key_of(state, name, work), work);
  state.bypass.evidence |= kWorkSeen;
  if (!state.ops.empty()) {  // the ops around it count as transparent
    state.ops.back().inside.add(work);
    state.ops.back().inside.declared = true;
  }
  state.count(index, 0, work);
  if (state.lent.boundaries) state.lent.boundaries->count({state.lent.table, index}, state.now(), {}, work);
  return true;
}

void open_work(std::string_view name, const Work& work, const void* token) {
  auto& state = thread_state();
  if (!state.is_observed() || state.in_owned_work()) return;
  RunningOp running;
  running.record = token;
  running.key = key_of(state, name, work);
  running.op = running.key.op;
  running.nested_work = NestedWork::owned;
  running.declared = bucket_of(state, running.key, work);
  running.event = state.lent.next_event();
  running.operands_before = state.traffic.operands.size();
  if (state.marks.wanted()) running.mark = state.marks.push(running.key, LaunchLevel::op, running.event);
  state.ops.push_back(std::move(running));
  state.ops.back().start = now_ticks();
}

void close_work(const void* token) {
  const Ticks now = now_ticks();
  auto& state = thread_state();
  const auto open = std::find_if(state.ops.begin(), state.ops.end(), [token](const RunningOp& op) {
    return op.record == token && op.declared != BucketTable::kNone;
  });
  if (open == state.ops.end()) return;
  const auto index = open->declared;
  const Ticks ticks = now - open->start;
  state.marks.end(open->mark);
  const bool observed = state.is_observed();
  if (observed) keep_op(state.lent, *open, index, now);
  state.ops.erase(open, state.ops.end());  // it owns what is nested, so nothing stands above it
  if (!observed) return;
  if (!state.ops.empty()) state.ops.back().inner_ticks += ticks;
  state.count(index, ticks, Work{}, 0);
}

}  // namespace roofprof::observe
