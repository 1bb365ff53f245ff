#include "observe/memory/memory_ledger.h"

#include <algorithm>
#include <set>

namespace roofprof::observe {

void MemoryLedger::allocated(const void* block, std::int64_t bytes) {
  freed(block);  // an address that comes again was freed unseen
  blocks_[block] = {bytes, last_call_};
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  for (auto& call : open_) {
    call.inside += bytes;
    call.peak = std::max(call.peak, live_);
  }
}

void MemoryLedger::resized(const void* block, std::int64_t bytes) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  const auto more = bytes - found->second.bytes;
  found->second.bytes = bytes;
  live_ += more;
  peak_ = std::max(peak_, live_);
  for (auto& call : open_) {
    if (call.id <= found->second.since) call.inside += more;
    call.peak = std::max(call.peak, live_);
  }
}

void MemoryLedger::freed(const void* block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  const auto [bytes, since] = found->second;
  blocks_.erase(found);
  live_ -= bytes;
  for (auto& call : open_) {
    if (call.id <= since) call.inside -= bytes;
  }
}

MemoryLedger::CallId MemoryLedger::enter(ModuleId module, bool keeps) {
  Call call;
  call.id = ++last_call_;
  call.module = module;
  call.keeps = keeps;
  call.live_before = call.peak = live_;
  open_.push_back(call);
  return call.id;
}

void MemoryLedger::returns(CallId id, const std::vector<const void*>& blocks) {
  const auto call = std::ranges::find(open_, id, &Call::id);
  if (call == open_.end()) return;
  call->returned = 0;
  for (const auto* block : std::set<const void*>(blocks.begin(), blocks.end())) {
    const auto found = blocks_.find(block);
    if (found != blocks_.end() && id <= found->second.since) *call->returned += found->second.bytes;
  }
}

void MemoryLedger::leave(CallId id) {
  const auto call = std::ranges::find(open_, id, &Call::id);
  if (call == open_.end()) return;
  auto& calls = ended_[call->module];
  calls.peak = std::max(calls.peak, call->peak - call->live_before);
  if (call->keeps && call->returned) {
    calls.kept = calls.kept.value_or(0) + call->inside - *call->returned;
  } else if (call->keeps) {
    calls.kept_unknown = true;
  }
  open_.erase(call);
}

PassMemory MemoryLedger::result() const {
  PassMemory result;
  result.peak_bytes = peak_;
  for (const auto& [module, calls] : ended_) {
    result.modules.push_back({module, calls.peak, calls.kept_unknown ? std::nullopt : calls.kept});
  }
  return result;
}

}  // namespace roofprof::observe
