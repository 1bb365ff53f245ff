#include "observe/bucket_table.h"

#include <exception>

#include "observe/op_signature.h"

namespace roofprof::observe {
namespace {

// Signatures that no hash is given to but by chance.
constexpr std::uint64_t kOtherShapes = ~std::uint64_t{0};
constexpr std::uint64_t kNotDescribed = kOtherShapes - 1;

std::int64_t first_elements(const std::vector<ops::Argument>& arguments) {
  for (const auto& argument : arguments) {
    if (!argument.tensors.empty()) return argument.tensors.front().numel();
  }
  return 0;
}

// Inputs read alike in every module and phase.
BucketKey anywhere(const BucketKey& key) { return {key.op, kModel, Phase::forward, key.signature}; }

}  // namespace

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

BucketTable::Index BucketTable::describe(const BucketKey& key, const ops::OpCall& call, Work& work) {
  bool costed = key.op->kind == OpKind::counted || key.op->kind == OpKind::view;
  work = Work{};
  if (key.op->kind == OpKind::counted) {
    try {
      const auto cost = ops::cost_of(call, key.op->cost);
      costed = cost.has_value();
      if (cost) work = *cost;
      work.input_elements = first_elements(call.arguments);
      work.output_elements = first_elements(call.results);
    } catch (const std::exception& error) {
      costed = false;
      failures.try_emplace(key.op->name, error.what());
    }
  }

  BucketKey stored = key;
  BucketKey any_shape = key;
  any_shape.signature = 0;
  const bool shared = ++shapes_seen_[any_shape] > kMaxShapes;
  if (shared) stored.signature = kOtherShapes;
  Index index = find(stored);
  if (index == kNone) {
    Bucket bucket;
    bucket.key = stored;
    bucket.dtype = call.compute_dtype();
    bucket.costed = costed;
    bucket.per_call = shared;
    if (key.op->kind == OpKind::counted) bucket.shapes = shared ? "other shapes" : shapes_of(call);
    bucket.work = work;
    index = insert(std::move(bucket));
  }
  buckets_[index].costed &= costed;
  return index;
}

const ops::OpCall* BucketTable::inputs_of(const BucketKey& key) const {
  const auto found = inputs_.find(anywhere(key));
  return found == inputs_.end() ? nullptr : found->second.get();
}

void BucketTable::keep_inputs(const BucketKey& key, std::unique_ptr<ops::OpCall> inputs) {
  if (inputs_.size() < kMaxInputs) inputs_.try_emplace(anywhere(key), std::move(inputs));
}

BucketTable::Index BucketTable::add_uncosted(BucketKey key) {
  key.signature = kNotDescribed;
  const Index found = find(key);
  if (found != kNone) return found;
  Bucket bucket;
  bucket.key = key;
  bucket.costed = false;
  return insert(std::move(bucket));
}

ModuleClock& BucketTable::clock(ModuleId module, Phase phase) {
  const auto place = static_cast<std::size_t>(module) * kPhaseCount + static_cast<std::size_t>(phase);
  if (place >= clocks_.size()) clocks_.resize((place / kPhaseCount + 64) * kPhaseCount);
  return clocks_[place];
}

void BucketTable::start_pass() {
  for (auto& bucket : buckets_) {
    bucket.calls = 0;
    bucket.ticks = 0;
    bucket.work_sum = Work{};
  }
  clocks_.clear();
  unknown_backward_nodes = 0;
}

}  // namespace roofprof::observe
