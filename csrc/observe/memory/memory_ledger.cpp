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

void StorageWatch::was_read(const WeakStorage& storage) {
  const auto* impl = storage._unsafe_get_target();
  if (made_.find(impl) == made_.end()) before_.try_emplace(impl, storage);
}

void StorageWatch::was_given(const WeakStorage& weak) {
  const auto* impl = weak._unsafe_get_target();
  if (before_.find(impl) != before_.end()) return;
  const auto storage = weak.lock();
  if (!storage) return;  // made and dropped inside of the op
  const auto* block = storage->_mutable_data_ptr_no_checks().get_context();
  const auto size = storage->sym_nbytes().maybe_as_int();
  if (!size || (block == nullptr && *size > 0)) unknown_ = true;
  if (!size || block == nullptr) return;
  devices_.insert(storage->device().str());
  auto& made = made_.try_emplace(impl, Made{weak, nullptr}).first->second;
  if (made.block == block) {
    ledger_.resized(block, *size);
    return;
  }
  if (made.block != nullptr) ledger_.freed(made.block);  // it has got other memory
  made.block = block;
  ledger_.allocated(block, *size);
}

void StorageWatch::look() {
  for (auto made = made_.begin(); made != made_.end();) {
    if (!made->second.storage.expired()) {
      ++made;
      continue;
    }
    ledger_.freed(made->second.block);
    made = made_.erase(made);
  }
}

}  // namespace roofprof::observe
