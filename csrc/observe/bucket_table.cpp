#include "observe/bucket_table.h"

#include <algorithm>

namespace roofprof::observe {
namespace {

// Signatures with a meaning of their own: a hash equals one of them only by accident.
constexpr std::uint64_t kOtherShapes = kAnyInputs;
constexpr std::uint64_t kNotDescribed = kOtherShapes - 1;

Pass::Op::Kind kind_of(const OpInfo& op) {
  if (&op == compiled_region()) return Pass::Op::Kind::compiled_region;
  switch (op.unobserved) {
    case Unobserved::function:
    case Unobserved::numpy:  // these two too: no op that was observed elsewhere can explain their work
    case Unobserved::script:
      return Pass::Op::Kind::unobserved_function;
    case Unobserved::module:
      return Pass::Op::Kind::unobserved_module;
    case Unobserved::no:
      break;
  }
  return Pass::Op::Kind::op;
}

}  // namespace

Pass::Op op_of(const Bucket& bucket) {
  Pass::Op op;
  const OpKey key = bucket.key.plain();
  op.op = bucket.key.op->name;
  op.owner = key.owner;
  describe(op, bucket.cost);
  op.number = key.op;
  op.signature = key.signature;
  op.inputs = bucket.inputs;
  op.kind = kind_of(*bucket.key.op);
  op.without_data = bucket.key.without_data;
  return op;
}

BucketTable::Index BucketTable::find(const BucketKey& key) const {
  if (slots_.empty()) return kNone;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = BucketKeyHash{}(key)&mask;; slot = (slot + 1) & mask) {
    const Index index = slots_[slot];
    if (index == kNone || buckets_[index].key == key) return index;
  }
}

void BucketTable::grow() {
  slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, kNone);
  const std::size_t mask = slots_.size() - 1;
  for (Index index = 0; index < buckets_.size(); ++index) {
    std::size_t slot = BucketKeyHash{}(buckets_[index].key) & mask;
    while (slots_[slot] != kNone) slot = (slot + 1) & mask;
    slots_[slot] = index;
  }
}

BucketTable::Index BucketTable::insert(Bucket bucket) {
  buckets_.push_back(std::move(bucket));
  if (buckets_.size() * 2 > slots_.size()) {
    grow();
  } else {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = BucketKeyHash{}(buckets_.back().key) & mask;
    while (slots_[slot] != kNone) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<Index>(buckets_.size() - 1);
  }
  return static_cast<Index>(buckets_.size() - 1);
}

BucketTable::Index BucketTable::add(const BucketKey& key, std::uint64_t inputs, const Costed& costed) {
  if (!costed.failure.empty()) failures.try_emplace(key.op->name, costed.failure);
  BucketKey stored = key;
  BucketKey any_shape = key;
  any_shape.signature = 0;
  const bool shared = ++shapes_seen_[any_shape] > kMaxShapes;
  if (shared) stored.signature = kOtherShapes;
  Index index = find(stored);
  if (index == kNone) {
    Bucket bucket;
    bucket.key = stored;
    bucket.cost = costed;
    bucket.per_call = shared;
    bucket.inputs = shared ? kAnyInputs : inputs;
    if (shared && !costed.shapes.empty()) bucket.cost.shapes = {.tensors = {}, .others = true};
    index = insert(std::move(bucket));
  }
  auto& bucket = buckets_[index];
  bucket.cost.costed &= costed.costed;
  bucket.inside.add(costed.work);
  bucket.inside.uncosted |= !bucket.cost.costed;
  return index;
}

bool BucketTable::looks_up_inputs(const Inputs& inputs) {
  if (!inputs_.contains(inputs)) return false;
  known_inputs_[inputs.second % known_inputs_.size()] = inputs;
  return true;
}

const ops::OpCall* BucketTable::inputs_of(const OpInfo& op, std::uint64_t signature) const {
  const auto found = inputs_.find({&op, signature});
  return found == inputs_.end() ? nullptr : &found->second;
}

void BucketTable::keep_inputs(const OpInfo& op, std::uint64_t signature, const ops::OpCall& inputs) {
  if (inputs_.size() < kMaxInputs) inputs_.try_emplace({&op, signature}, inputs);
}

LaunchId BucketTable::launch_of(const BucketKey& key) const {
  const auto found = launches_.find(key);
  return found == launches_.end() ? kNoLaunch : found->second;
}

void BucketTable::keep_launch(const BucketKey& key, LaunchId id) {
  if (launches_.size() < kMaxInputs) launches_.try_emplace(key, id);
}

BucketTable::Index BucketTable::add_uncosted(BucketKey key) {
  key.signature = kNotDescribed;
  const Index found = find(key);
  if (found != kNone) return found;
  Bucket bucket;
  bucket.key = key;
  bucket.inputs = kAnyInputs;
  bucket.inside.uncosted = true;
  return insert(std::move(bucket));
}

ModuleClock& BucketTable::clock(const Owner& owner) {
  if (owner.region != kNoRegion) return region_clocks_[owner];
  const auto index = index_of(owner.module) * kPhaseCount + static_cast<std::size_t>(owner.phase);
  if (index >= clocks_.size()) clocks_.resize((index / kPhaseCount + 64) * kPhaseCount);
  return clocks_[index];
}

void BucketTable::count_call(const Owner& owner) {
  ++clock(owner).calls;
  if (index_of(owner.module) >= called_.size()) called_.resize(index_of(owner.module) + 64);
  called_[index_of(owner.module)] = true;
}

void BucketTable::add_clocks(std::map<Owner, ModuleClock>& to) const {
  const auto add = [&](const Owner& owner, const ModuleClock& clock) {
    if (clock.calls == 0 && clock.self_ticks == 0) return;
    auto& sum = to[owner];
    sum.calls += clock.calls;
    sum.self_ticks += clock.self_ticks;
  };
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    add({static_cast<ModuleId>(i / kPhaseCount), static_cast<Phase>(i % kPhaseCount), kNoRegion}, clocks_[i]);
  }
  for (const auto& [owner, clock] : region_clocks_) add(owner, clock);
}

bool BucketTable::was_called(ModuleId module) const {
  return index_of(module) < called_.size() && called_[index_of(module)];
}

void BucketTable::start_pass() {
  for (auto& bucket : buckets_) {
    bucket.calls = 0;
    bucket.ticks = 0;
    bucket.left_out_calls = 0;
    bucket.left_out_bytes = {};
    bucket.work_sum = Work{};
    bucket.step = 0;
    bucket.calls_before_step = 0;
    bucket.work_sum_of_step = Work{};
  }
  clocks_.clear();
  region_clocks_.clear();
  regions_.clear();
  called_.clear();
  unknown_backward_nodes = 0;
  differentiated_whole.clear();
  uncertain_places.clear();
  events.events.clear();
  events.left_out = 0;
}

}  // namespace roofprof::observe
