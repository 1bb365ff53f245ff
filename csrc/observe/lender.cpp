#include "observe/lender.h"

#include <ATen/record_function.h>

#include <utility>

#include "observe/sequence_ring.h"

namespace roofprof::observe {

// Threads whose backward may still come.
static constexpr std::size_t kMaxRings = 256;

void Lent::keep(TimedEvent event) const {
  event.thread = at::RecordFunction::currentThreadId();
  const std::lock_guard guard(table->lock);
  if (event.id == 0) {
    ++table->events.left_out;
  } else {
    table->events.events.push_back(event);
  }
}

void Lender::start_pass(Lent of_pass) {
  const std::lock_guard lock(mutex_);
  for (auto& table : tables_) {
    const std::lock_guard table_lock(table->lock);
    table->start_pass();
  }
  lent_before_ = lent_now();
  of_pass_ = std::move(of_pass);
}

void Lender::forget_marker() {
  const std::lock_guard lock(mutex_);
  of_pass_.marker = nullptr;
}

Lent Lender::of_pass() const {
  const std::lock_guard lock(mutex_);
  return of_pass_;
}

Lent Lender::lend() {
  const std::lock_guard lock(mutex_);
  if (free_tables_.empty()) free_tables_.push_back(tables_.emplace_back(std::make_unique<BucketTable>()).get());
  auto lent = of_pass_;
  lent.table = free_tables_.back();
  lent.ring = ring_of_this_thread();
  free_tables_.pop_back();
  return lent;
}

void Lender::take_back(const Lent& lent) {
  const std::lock_guard lock(mutex_);
  free_tables_.push_back(lent.table);
}

std::int64_t Lender::lent_in_pass() const {
  const std::lock_guard lock(mutex_);
  return lent_now() - lent_before_;
}

std::vector<BucketTable*> Lender::tables() const {
  const std::lock_guard lock(mutex_);
  std::vector<BucketTable*> tables;
  for (const auto& table : tables_) tables.push_back(table.get());
  return tables;
}

std::shared_ptr<SequenceRing> Lender::ring_of_this_thread() {
  auto& ring = rings_[at::RecordFunction::currentThreadId()];
  if (!ring) ring = std::make_shared<SequenceRing>();
  auto result = ring;
  if (rings_.size() > kMaxRings) rings_.erase(rings_.begin());
  return result;
}

std::optional<ModuleId> Lender::module_of_node(std::uint64_t forward_thread, std::uint64_t sequence_number) const {
  const std::lock_guard lock(mutex_);
  const auto ring = rings_.find(forward_thread);
  return ring == rings_.end() ? std::nullopt : ring->second->find(sequence_number);
}

}  // namespace roofprof::observe
