#include "observe/memory/memory_ledger.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace roofprof::observe {

namespace {

MemoryCategory category_of_new(const MemoryOrigin& origin, MemoryUses uses, bool lives_on, bool backward_ran) {
  const auto is = [uses](MemoryUses any) { return (uses & any) != 0; };
  if (is(uses::parameter)) return MemoryCategory::parameters;
  if (is(uses::buffer)) return MemoryCategory::buffers;
  if (is(uses::gradient)) return MemoryCategory::gradients;
  switch (origin.owner.phase) {
    case Phase::optimizer:
      return is(uses::freed_in_optimizer) ? MemoryCategory::temporaries : MemoryCategory::optimizer_state;
    case Phase::backward:
      return is(uses::freed_in_backward) ? MemoryCategory::temporaries : MemoryCategory::gradients;
    default:
      break;
  }
  const bool recomputed = origin.owner.phase == Phase::recompute;
  if (!origin.in_model && is(uses::read_by_model)) return MemoryCategory::inputs;
  if (is(uses::read_by_backward)) return MemoryCategory::activations;
  if (!recomputed && is(uses::read_by_recompute | uses::freed_in_backward)) return MemoryCategory::activations;
  if (is(uses::output)) return MemoryCategory::outputs;
  if (!lives_on && !is(uses::left_by_model)) return MemoryCategory::temporaries;
  return origin.with_grad && !backward_ran ? MemoryCategory::activations : MemoryCategory::other;
}

MemoryCategory category_of_earlier(MemoryUses uses) {
  if ((uses & uses::parameter) != 0) return MemoryCategory::parameters;
  if ((uses & uses::buffer) != 0) return MemoryCategory::buffers;
  if ((uses & uses::gradient) != 0) return MemoryCategory::gradients;
  return (uses & uses::read_by_optimizer) != 0 ? MemoryCategory::optimizer_state : MemoryCategory::inputs;
}

// Adds storages up by category, module and phase.
class AliveSums {
 public:
  void add(MemoryCategory category, ModuleId module, Phase phase, bool before, std::int64_t bytes) {
    if (bytes <= 0) return;
    auto& sum =
        sums_.try_emplace({category, module, phase}, AliveMemory{category, module, phase, before, 0, 0}).first->second;
    ++sum.storages;
    sum.bytes += bytes;
  }
  std::vector<AliveMemory> take() {
    std::vector<AliveMemory> rows;
    for (const auto& [key, sum] : sums_) rows.push_back(sum);
    return rows;
  }

 private:
  std::map<std::tuple<MemoryCategory, ModuleId, Phase>, AliveMemory> sums_;
};

}  // namespace

void MemoryCurve::begin_op(const Owner& owner) {
  ++op_;
  while (std::cmp_less_equal(points_.size(), op_ / width_)) {
    if (points_.size() < kMostPoints) {
      points_.push_back({live_, owner.module, owner.phase});
      continue;
    }
    for (std::size_t i = 0; i < kMostPoints / 2; ++i) {
      points_[i] = points_[2 * i].bytes >= points_[2 * i + 1].bytes ? points_[2 * i] : points_[2 * i + 1];
    }
    points_.resize(kMostPoints / 2);
    width_ *= 2;
    if (peak_point_ >= 0) peak_point_ /= 2;
  }
}

void MemoryCurve::note(std::int64_t live, const Owner& owner) {
  if (points_.empty()) begin_op(owner);
  live_ = live;
  if (live > points_.back().bytes) points_.back() = {live, owner.module, owner.phase};
}

void MemoryLedger::note_live(const Owner& owner) {
  curve_.note(live_, owner);
  if (live_ <= peak_) return;
  peak_ = live_;
  peak_at_ = changes_;
  freed_since_.clear();
  curve_.note_peak();
}

void MemoryLedger::allocated(const void* block, std::int64_t bytes, const MemoryOrigin& origin) {
  freed(block);  // an address that comes again was freed unseen
  ++changes_;
  blocks_[block] = {.bytes = bytes, .since = last_call_, .origin = origin, .born = changes_};
  live_ += bytes;
  note_live(origin.owner);
  for (auto& call : open_) {
    call.inside += bytes;
    call.peak = std::max(call.peak, live_);
  }
}

void MemoryLedger::resized(const void* block, std::int64_t bytes) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  auto& known = found->second;
  const auto more = bytes - known.bytes;
  if (more == 0) return;
  ++changes_;
  if (was_at_peak(known) && known.resized_at <= peak_at_) known.bytes_before = known.bytes;
  known.resized_at = changes_;
  known.bytes = bytes;
  live_ += more;
  note_live(known.origin.owner);
  for (auto& call : open_) {
    if (call.id <= known.since) call.inside += more;
    call.peak = std::max(call.peak, live_);
  }
}

void MemoryLedger::freed(const void* block, MemoryUses how) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  found->second.uses |= how;
  const Block known = found->second;
  blocks_.erase(found);
  ++changes_;
  live_ -= known.bytes;
  curve_.note(live_, known.origin.owner);
  if (was_at_peak(known)) freed_since_.push_back(known);
  for (auto& call : open_) {
    if (call.id <= known.since) call.inside -= known.bytes;
  }
}

bool MemoryLedger::use(const void* block, MemoryUses more) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return false;
  found->second.uses |= more;
  return true;
}

void MemoryLedger::begin_op(const Owner& owner) {
  backward_ran_ |= owner.phase == Phase::backward;
  curve_.begin_op(owner);
}

std::vector<AliveMemory> MemoryLedger::alive_at_peak() const {
  AliveSums sums;
  const auto add = [&](const Block& block, bool lives_on) {
    const auto& [module, phase, region] = block.origin.owner;
    sums.add(category_of_new(block.origin, block.uses, lives_on, backward_ran_), module, phase, false,
             block.resized_at > peak_at_ ? block.bytes_before : block.bytes);
  };
  for (const auto& [address, block] : blocks_) {
    if (was_at_peak(block)) add(block, true);
  }
  for (const auto& block : freed_since_) add(block, false);
  return sums.take();
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
    if (found == blocks_.end()) continue;
    if (call->module == kModel) found->second.uses |= uses::output;
    if (id <= found->second.since) *call->returned += found->second.bytes;
  }
}

void MemoryLedger::leave(CallId id) {
  const auto call = std::ranges::find(open_, id, &Call::id);
  if (call == open_.end()) return;
  if (call->module == kModel && call->keeps) {
    for (auto& [address, block] : blocks_) block.uses |= id <= block.since ? uses::left_by_model : 0;
  }
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
  result.alive = alive_at_peak();
  result.timeline = curve_.result();
  for (const auto& [module, calls] : ended_) {
    result.modules.push_back({module, calls.peak, calls.kept_unknown ? std::nullopt : calls.kept});
  }
  return result;
}

void EarlierStorages::use(const c10::Storage& storage, const MemoryLedger& ledger, MemoryUses more, ModuleId module) {
  const auto* address = storage.unsafeGetStorageImpl();
  auto found = known_.find(address);
  if (found == known_.end()) {
    const auto bytes = storage.sym_nbytes().maybe_as_int().value_or(0);
    found = known_.emplace(address, Known{storage.getWeakStorageImpl(), &ledger, bytes, 0, module}).first;
    may_go_.push_back(&found->second);
  }
  auto& known = found->second;
  known.uses |= more;
  if (known.module < 0) known.module = module;
}

void EarlierStorages::look() {
  std::erase_if(may_go_, [](Known* known) {
    if ((known->uses & (uses::parameter | uses::buffer)) != 0) return true;
    if (!known->storage.expired()) return false;
    known->until = known->ledger->changes();
    return true;
  });
}

std::vector<AliveMemory> EarlierStorages::alive(const MemoryLedger& ledger) const {
  AliveSums sums;
  for (const auto& [address, known] : known_) {
    if (known.ledger != &ledger || known.until < ledger.peak_at()) continue;
    const auto category = category_of_earlier(known.uses);
    const auto nobodys = category == MemoryCategory::optimizer_state ? kOptimizer : kOutside;
    sums.add(category, known.module >= 0 ? known.module : nobodys, Phase::forward, true, known.bytes);
  }
  return sums.take();
}

void StorageWatch::was_read(const WeakStorage& storage) {
  const auto* impl = storage._unsafe_get_target();
  if (made_.find(impl) == made_.end()) before_.try_emplace(impl, storage);
}

void StorageWatch::was_given(const WeakStorage& weak, const MemoryOrigin& origin) {
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
  ledger_.allocated(block, *size, origin);
}

void StorageWatch::look(MemoryUses how) {
  for (auto made = made_.begin(); made != made_.end();) {
    if (!made->second.storage.expired()) {
      ++made;
      continue;
    }
    ledger_.freed(made->second.block, how);
    made = made_.erase(made);
  }
}

}  // namespace roofprof::observe
