#include "observe/memory/boundary_log.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <tuple>

namespace roofprof::observe {

// ---- parts of a storage

namespace {

// The number of views with gaps that are kept apart; each touch of a further one counts in full.
constexpr std::size_t kMostParts = 64;

}  // namespace

std::int64_t TouchedParts::add(const View& view, std::int64_t bytes) {
  bytes = std::min(bytes, view.bytes);
  if (bytes <= 0) return 0;
  if (!pieces_) {
    if (begin_ <= view.begin && view.end <= end_) return 0;
    if (begin_ == end_ && view.is_dense() && bytes == view.bytes) {
      begin_ = view.begin;
      end_ = view.end;
      return bytes;
    }
    pieces_ = std::make_unique<Pieces>();
    if (begin_ < end_) pieces_->dense.emplace_back(begin_, end_);
  }
  return pieces_->add(view, bytes);
}

std::int64_t TouchedParts::Pieces::add(const View& view, std::int64_t bytes) {
  const auto around = std::ranges::find_if(
      dense, [&](const auto& part) { return part.first <= view.begin && view.end <= part.second; });
  if (around != dense.end()) return 0;
  if (view.is_dense() && bytes == view.bytes) return add_dense(view);
  auto part = std::ranges::find_if(others, [&](const Part& other) {
    return std::tie(other.view.begin, other.view.end, other.view.layout) == std::tie(view.begin, view.end, view.layout);
  });
  if (part == others.end()) {
    if (others.size() >= kMostParts) return bytes;
    part = others.insert(part, {view, 0});
  }
  const auto more = std::min(bytes, view.bytes - part->touched);
  part->touched += more;
  return more;
}

std::int64_t TouchedParts::Pieces::add_dense(const View& view) {
  std::int64_t fresh = view.bytes;
  std::erase_if(others, [&](const Part& part) {  // those inside of it are no longer apart
    const bool inside = view.begin <= part.view.begin && part.view.end <= view.end;
    if (inside) fresh -= part.touched;
    return inside;
  });
  auto [begin, end] = std::pair(view.begin, view.end);
  const auto first =
      std::ranges::lower_bound(dense, begin, {}, [](const auto& part) { return part.second; });  // they may touch
  auto last = first;
  for (; last != dense.end() && last->first <= view.end; ++last) {
    fresh -= std::max<std::int64_t>(std::min(view.end, last->second) - std::max(view.begin, last->first), 0);
    begin = std::min(begin, last->first);
    end = std::max(end, last->second);
  }
  dense.insert(dense.erase(first, last), {begin, end});
  return std::max<std::int64_t>(fresh, 0);
}

// ---- instances

BoundaryLog::Instance& BoundaryLog::at(Key key) {
  if (key >= instances_.size()) instances_.resize(std::max(key + 1, parents_.size() * kPhaseCount));
  return instances_[key];
}

void BoundaryLog::begin(Instance& instance, std::uint64_t around) {
  instance.id = ++last_id_;
  instance.around = around;
  chain_of_.reset();
}

void BoundaryLog::end(Key key) {
  if (at(key).id == 0) return;
  const Instance ended = std::exchange(instances_[key], {});
  const bool is_root = parents_[key / kPhaseCount] < 0;
  chain_of_.reset();
  for (const Key inside : ended.inside) {
    if (at(inside).around == ended.id && at(inside).calls == 0) end(inside);
  }
  for (const auto* known : ended.written) {
    const auto storage = storages_.find(known);
    if (storage == storages_.end()) continue;
    if (storage->second.storage.expired()) {
      is_gone(storage->second);
      storages_.erase(storage);
      continue;
    }
    auto& uses = storage->second.uses;
    const auto use = std::ranges::find(uses, ended.id, &Use::instance);
    if (use == uses.end()) continue;
    goes_out(*use);
    auto& unread = storage->second.unread;
    if (is_root) {  // it is a result of the model, or stays in it
      unread.clear();
    } else {
      if (use->first_write.bytes > 0) unread.push_back(use->first_write);
      unread.insert(unread.end(), use->more_writes.begin(), use->more_writes.end());
    }
    uses.erase(use);
  }
}

void BoundaryLog::enter(ModuleId module, Phase phase) {
  const std::lock_guard guard(mutex_);
  // A new forward of the model ends the backward of the last one, and what the program did in between.
  if (parent_of(module) < 0 && phase == Phase::forward && at(key_of(module, phase)).calls == 0) {
    for (const auto other : {Phase::backward, Phase::recompute}) end(key_of(module, other));
    for (std::size_t other = 0; other < kPhaseCount; ++other) end(key_of(kOutside, static_cast<Phase>(other)));
  }
  auto& instance = at(key_of(module, phase));
  if (instance.calls == 0) {
    end(key_of(module, phase));
    begin(instance, 0);
  }
  ++instance.calls;
}

void BoundaryLog::leave(ModuleId module, Phase phase) {
  const std::lock_guard guard(mutex_);
  auto& instance = at(key_of(module, phase));
  if (instance.calls == 0) return;
  --instance.calls;
  if (instance.calls == 0) end(key_of(module, phase));
}

void BoundaryLog::add_row(ModuleId row, ModuleId parent) {
  const std::lock_guard guard(mutex_);
  if (index_of(row) >= parents_.size()) parents_.resize(index_of(row) + 1, -1);
  parents_[index_of(row)] = parent;
}

void BoundaryLog::step() {
  const std::lock_guard guard(mutex_);
  end_all_but_calls();
}

void BoundaryLog::interrupt() {
  const std::lock_guard guard(mutex_);
  end_all_but_calls();
  for (const auto& instance : instances_) {
    for (const auto* known : instance.written) {
      const auto storage = storages_.find(known);
      if (storage == storages_.end() || storage->second.storage.expired()) continue;
      const auto use = std::ranges::find(storage->second.uses, instance.id, &Use::instance);
      if (use != storage->second.uses.end()) goes_out(*use);
    }
  }
}

void BoundaryLog::end_all_but_calls() {
  for (std::size_t module = 0; module < parents_.size(); ++module) {
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
      const auto key = key_of(static_cast<ModuleId>(module), static_cast<Phase>(phase));
      if (at(key).calls == 0) end(key);
    }
  }
}

void BoundaryLog::find_chain(const Owner& owner) {
  const auto own = key_of(owner.module, owner.phase);
  if (chain_of_ == own) return;
  chain_keys_.clear();
  for (auto module = owner.module; module >= 0; module = parent_of(module)) {
    chain_keys_.push_back(key_of(module, owner.phase));
  }
  chain_.resize(chain_keys_.size());
  for (auto level = chain_keys_.size(); level-- > 0;) {
    const auto key = chain_keys_[level];
    const bool is_root = level + 1 == chain_keys_.size();
    const auto around = is_root ? 0 : chain_[level + 1];
    auto* instance = &at(key);
    if (instance->calls == 0 && (instance->id == 0 || instance->around != around)) {
      end(key);
      begin(*instance, around);
      if (!is_root) at(chain_keys_[level + 1]).inside.push_back(key);
    }
    chain_[level] = instance->id;
  }
  chain_of_ = own;
}

// ---- storages

BoundaryLog::Storage& BoundaryLog::storage_of(const Operand& operand) {
  const auto known = storages_.find(operand.storage);
  if (known != storages_.end()) return known->second;
  auto* impl = static_cast<c10::StorageImpl*>(operand.storage);
  WeakStorage storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl));
  return storages_.emplace(operand.storage, Storage{std::move(storage), {}, {}}).first->second;
}

// Notes that the op made the storages of its results, unless they were there before.
void BoundaryLog::note_born(std::span<const Operand> operands) {
  for (const auto& operand : operands) {
    if (operand.kind != Operand::Kind::result || storages_.contains(operand.storage)) continue;
    const auto is_input = [&](const Operand& other) {
      return other.kind != Operand::Kind::result && other.storage == operand.storage;
    };
    if (std::ranges::any_of(operands, is_input)) continue;
    auto& storage = storage_of(operand);
    for (std::size_t level = 0; level < chain_.size(); ++level) use_of(storage, level).born = true;
  }
}

BoundaryLog::Use& BoundaryLog::use_of(Storage& storage, std::size_t level) {
  auto known = std::ranges::find(storage.uses, chain_keys_[level], &Use::module);
  if (known != storage.uses.end() && known->instance == chain_[level]) return *known;
  if (known == storage.uses.end()) {
    if (storage.uses.empty()) storage.uses.reserve(chain_.size());
    known = storage.uses.emplace(storage.uses.end());
  }
  *known = Use{};
  known->module = chain_keys_[level];
  known->instance = chain_[level];
  known->level = chain_.size() - 1 - level;
  return *known;
}

bool BoundaryLog::is_in_chain(const Use& use) const {
  return use.level < chain_.size() && chain_[chain_.size() - 1 - use.level] == use.instance;
}

void BoundaryLog::goes_out(Use& use) {
  if (use.is_out) return;
  use.is_out = true;
  const auto count = [&](const Written& written) {
    if (written.bytes > 0) bytes_of(written.place, written.level)[written.level].write += written.bytes;
  };
  count(use.first_write);
  for (const auto& written : use.more_writes) count(written);
}

std::vector<BoundaryLog::Bytes>& BoundaryLog::bytes_of(Place place, std::size_t level) {
  auto& buckets = by_table_[place.first];
  if (place.second >= buckets.size()) buckets.resize(place.second + 64);
  auto& bytes = buckets[place.second];
  if (level >= bytes.size()) bytes.resize(level + 1);
  return bytes;
}

void BoundaryLog::note_reads(std::span<const Operand> operands) {
  for (const auto& operand : operands) {
    if (operand.kind != Operand::Kind::result) read_by(operand.storage);
  }
}

void BoundaryLog::read_by_others(const void* storage) {
  const std::lock_guard guard(mutex_);
  read_by(storage);
}

void BoundaryLog::read_by(const void* storage) {
  if (const auto known = storages_.find(storage); known != storages_.end()) known->second.unread.clear();
}

void BoundaryLog::is_gone(const Storage& storage) {
  for (const auto& written : storage.unread)
    bytes_of(written.place, written.level)[written.level].unread += written.bytes;
}

void BoundaryLog::drop_dead() {
  std::erase_if(storages_, [&](const auto& storage) {
    if (!storage.second.storage.expired()) return false;
    is_gone(storage.second);
    return true;
  });
  drop_at_ = std::max(2 * storages_.size(), kFewest);
}

// ---- ops

void BoundaryLog::read(Place place, const Moved& moved) {
  auto& storage = storage_of(*moved.operand);
  for (auto& use : storage.uses) {
    if (use.first_write.bytes > 0 && !is_in_chain(use)) goes_out(use);
  }
  auto fresh = moved.bytes;
  for (std::size_t level = 0; level < chain_.size(); ++level) {
    auto& use = use_of(storage, level);
    fresh = use.born ? 0 : std::min(use.touched.add(moved.view, moved.bytes), fresh);
    if (fresh == 0) break;  // the modules around it have it, too
    bytes_of(place, level)[level].read += fresh;
  }
}

void BoundaryLog::write(Place place, const Moved& moved) {
  auto& storage = storage_of(*moved.operand);
  for (std::size_t level = 0; level < chain_.size(); ++level) {
    auto& use = use_of(storage, level);
    if (!use.born) use.touched.add(moved.view, moved.bytes);
    const auto fresh = use.written.add(moved.view, moved.bytes);
    if (fresh == 0) continue;
    if (use.first_write.bytes == 0) instances_[chain_keys_[level]].written.push_back(moved.operand->storage);
    if (use.is_out) {
      bytes_of(place, level)[level].write += fresh;
    } else if (use.first_write.bytes == 0) {
      use.first_write = {place, level, fresh};
    } else {
      use.more_writes.push_back({place, level, fresh});
    }
  }
}

// Takes what the op does not move from the largest operands: a lookup reads rows of its table. Returns the bytes that
// it moves beyond them.
std::int64_t BoundaryLog::distribute(std::vector<Moved>& moved, std::int64_t bytes) {
  std::int64_t sum = 0;
  for (const auto& one : moved) sum = saturating_add(sum, one.bytes);
  while (sum > bytes) {
    auto& largest = *std::ranges::max_element(moved, {}, &Moved::bytes);
    const auto less = std::min(sum - bytes, largest.bytes);
    largest.bytes -= less;
    sum -= less;
  }
  return bytes - sum;
}

namespace {

TouchedParts::View view_of(const Operand& operand) {
  const auto& memory = operand.memory;
  return {static_cast<std::int64_t>(memory.begin - operand.origin),
          static_cast<std::int64_t>(memory.end - operand.origin), memory.bytes, operand.layout};
}

}  // namespace

void BoundaryLog::touch(const Owner& owner, std::span<const Operand> operands) {
  const std::lock_guard guard(mutex_);
  find_chain(owner);
  note_born(operands);
  note_reads(operands);
  for (const auto& operand : operands) {
    if (operand.kind == Operand::Kind::input) continue;
    auto& storage = storage_of(operand);
    for (std::size_t level = 0; level < chain_.size(); ++level) {
      auto& use = use_of(storage, level);
      if (!use.born) use.touched.add(view_of(operand), operand.memory.bytes);
    }
  }
}

void BoundaryLog::count(Place place, const Owner& owner, std::span<const Operand> operands, const Work& work) {
  // More operands than this (foreach lists) are not compared with each other: the comparison is quadratic.
  constexpr std::size_t kMostCompared = 32;
  const std::lock_guard guard(mutex_);
  note_reads(operands);
  if (work.bytes() <= 0) return;
  find_chain(owner);
  note_born(operands);
  reads_.clear();
  writes_.clear();
  const auto add = [](std::vector<Moved>& to, const Operand& operand) {
    const Moved moved{&operand, view_of(operand), operand.memory.bytes};
    const auto is_same = [&](const Moved& other) {  // a repeated view moves once
      return other.operand->storage == operand.storage && other.view.begin == moved.view.begin &&
             other.view.end == moved.view.end && other.view.layout == moved.view.layout;
    };
    if (to.size() > kMostCompared || std::ranges::none_of(to, is_same)) to.push_back(moved);
  };
  for (const auto& operand : operands) {
    const bool updated = operand.kind == Operand::Kind::written_input && work.updated_bytes > 0;
    if (operand.kind == Operand::Kind::input || updated) add(reads_, operand);
    if (operand.kind != Operand::Kind::input) add(writes_, operand);
  }
  const auto more_read = distribute(reads_, work.read_bytes);
  const auto more_written = distribute(writes_, work.write_bytes);
  for (const auto& moved : reads_) {
    if (moved.bytes > 0) read(place, moved);
  }
  for (const auto& moved : writes_) {
    if (moved.bytes > 0) write(place, moved);
  }
  if (more_read > 0 || more_written > 0) {
    auto& bytes = bytes_of(place, chain_.size() - 1);
    for (std::size_t level = 0; level < chain_.size(); ++level) {
      bytes[level].read += more_read;
      bytes[level].write += more_written;
    }
  }
  if (storages_.size() >= drop_at_) drop_dead();
}

void BoundaryLog::collect(std::vector<Pass::Op>& ops, const std::function<std::int64_t(Place)>& op_of) {
  const std::lock_guard guard(mutex_);
  for (Key key = 0; key < instances_.size(); ++key) end(key);
  drop_dead();
  for (const auto& [table, buckets] : by_table_) {
    for (std::uint32_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (buckets[bucket].empty()) continue;
      const auto index = op_of({table, bucket});
      if (index < 0) continue;
      Crossings crossings;
      for (const auto& [read, write, unread] : buckets[bucket]) crossings.push_back({1, read, write, unread});
      add_crossings(ops[static_cast<std::size_t>(index)].crossings, crossings);
    }
  }
}

}  // namespace roofprof::observe
