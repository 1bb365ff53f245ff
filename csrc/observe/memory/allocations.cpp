#include "observe/memory/allocations.h"

#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/forks.h"
#include "observe/operators/operands.h"
#include "observe/operators/tensor_format.h"

namespace roofprof::observe {

// Holds the listeners, and the lock of all ledgers: taken for each allocation, and only while there are listeners.
struct AllocationHub {
  ForkMutex mutex;
  std::vector<Allocations*> listeners;
  std::atomic<int> count{0};
  std::atomic<Allocations::OfThread> of_thread{nullptr};

  void allocated(Allocations::Of device, const void* block, std::size_t bytes) {
    const auto whose = of_thread.load(std::memory_order_relaxed);
    const auto place = whose == nullptr ? Allocations::Place{} : whose();
    auto* const allocations = place.allocations;
    if (allocations == nullptr) return;
    const std::lock_guard lock(mutex);
    if (std::ranges::find(listeners, allocations) == listeners.end()) return;
    allocations->allocated(device, block, static_cast<std::int64_t>(bytes), place);
  }

  // Called before the block is given back, as another thread may get it next.
  void freed(Allocations::Of device, const void* block) {
    if (count.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex);
    for (auto* listener : listeners) listener->freed(device, block);
  }
};

namespace {

AllocationHub& hub();

constexpr c10::DeviceType type_of(Allocations::Of device) {
  return device == Allocations::Of::cpu ? c10::DeviceType::CPU : c10::DeviceType::Meta;
}

// Stands in front of the present allocator. Storages keep it as their allocator, so it is never destroyed and goes on
// working when nobody listens.
template <Allocations::Of device>
class ListeningAllocator final : public c10::Allocator {
 public:
  static ListeningAllocator& instance() {
    static auto* allocator = new ListeningAllocator;
    return *allocator;
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    auto data = behind_.load(std::memory_order_acquire)->allocate(bytes);
    if (hub().count.load(std::memory_order_relaxed) == 0) return data;
    if constexpr (device == Allocations::Of::meta) {
      void* token = new std::byte;
      hub().allocated(device, token, bytes);
      return {nullptr, token, &freed, data.device()};
    } else {
      // Known before anybody can free it.
      if (data.get_context() != nullptr && data.compare_exchange_deleter(behind_deleter(), &freed)) {
        hub().allocated(device, data.get_context(), bytes);
      }
      return data;
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return device == Allocations::Of::meta ? behind_deleter() : &freed; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    behind_.load(std::memory_order_acquire)->copy_data(to, from, bytes);
  }

  // Puts this allocator in place of the one that is there. Returns false where that may not be replaced.
  bool install() {
    auto* there = c10::GetAllocator(type_of(device));
    if (there == this) return true;
    const auto deleter = there->raw_deleter();
    // Blocks of the allocator of an earlier time would come back to another one.
    const auto* before = behind_.load(std::memory_order_relaxed);
    if (deleter == nullptr || (before != nullptr && there != before)) return false;
    behind_deleter_.store(deleter, std::memory_order_relaxed);
    behind_.store(there, std::memory_order_release);
    c10::SetAllocator(type_of(device), this);
    return c10::GetAllocator(type_of(device)) == this;
  }
  void uninstall() {
    auto* behind = behind_.load(std::memory_order_relaxed);
    if (behind != nullptr && c10::GetAllocator(type_of(device)) == this) c10::SetAllocator(type_of(device), behind);
  }

 private:
  static void freed(void* block) {
    hub().freed(device, block);
    if constexpr (device == Allocations::Of::meta) {
      delete static_cast<std::byte*>(block);
    } else {
      instance().behind_deleter()(block);
    }
  }
  c10::DeleterFnPtr behind_deleter() const { return behind_deleter_.load(std::memory_order_relaxed); }

  // Threads that got this from torch in an earlier run may still allocate by it.
  std::atomic<c10::Allocator*> behind_{nullptr};
  std::atomic<c10::DeleterFnPtr> behind_deleter_{nullptr};
};

using CpuAllocator = ListeningAllocator<Allocations::Of::cpu>;
using MetaAllocator = ListeningAllocator<Allocations::Of::meta>;

void uninstall() {
  CpuAllocator::instance().uninstall();
  MetaAllocator::instance().uninstall();
}

// Removes all listeners in a child: they belong to the parent.
void leave_listeners() {
  hub().listeners.clear();
  hub().count = 0;
  uninstall();
}

AllocationHub& hub() {
  static auto* instance = [] {
    handle_forks({.in_child = &leave_listeners});
    return new AllocationHub;  // outlives every tensor
  }();
  return *instance;
}

}  // namespace

void Allocations::begin(OfThread of_thread, const std::vector<OwnedStorage>& owned) {
  std::vector<c10::Storage> storages;  // let go of after the lock, because freeing one takes it
  for (const auto& one : owned) storages.emplace_back(one.storage.lock());
  auto& all = hub();
  const std::lock_guard lock(all.mutex);
  watches_cpu_ = !CpuAllocator::instance().install();
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (storages[i]) use(storages[i], owned[i].uses, owned[i].module);
  }
  if (!MetaAllocator::instance().install()) {
    why_not_ = "another allocator of the meta device is in use, which may not be listened to";
    return;
  }
  all.of_thread.store(of_thread, std::memory_order_relaxed);
  all.listeners.push_back(this);
  all.count.store(static_cast<int>(all.listeners.size()), std::memory_order_relaxed);
  listening_ = true;
}

void Allocations::end() {
  if (!listening_) return;
  auto& all = hub();
  const std::lock_guard lock(all.mutex);
  std::erase(all.listeners, this);
  all.count.store(static_cast<int>(all.listeners.size()), std::memory_order_relaxed);
  listening_ = false;
  if (all.listeners.empty()) uninstall();
}

Allocations::Call Allocations::enter(ModuleId module, bool keeps) {
  const std::lock_guard lock(hub().mutex);
  look();
  return {cpu_.enter(module, keeps), meta_.enter(module, keeps), watched_.ledger().enter(module, keeps)};
}

void Allocations::returns(Call call, const std::vector<const void*>& blocks) {
  const std::lock_guard lock(hub().mutex);
  cpu_.returns(call.cpu, blocks);
  meta_.returns(call.meta, blocks);
  watched_.ledger().returns(call.watched, blocks);
}

void Allocations::leave(Call call) {
  const std::lock_guard lock(hub().mutex);
  look();
  cpu_.leave(call.cpu);
  meta_.leave(call.meta);
  watched_.ledger().leave(call.watched);
}

MemoryLedger& Allocations::ledger_of(c10::DeviceType device) {
  if (watches(device)) return watched_.ledger();
  return device == c10::DeviceType::Meta ? meta_ : cpu_;
}

void Allocations::use(const c10::Storage& storage, MemoryUses more, ModuleId module) {
  const auto* block = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get_context();
  auto& ledger = ledger_of(storage.device_type());
  if (ledger.use(block, more) || unfinished_.contains(block)) return;
  if (watches(storage.device_type())) watched_.was_read(storage.getWeakStorageImpl());
  earlier_.use(storage, ledger, more, module);
}

MemoryUses Allocations::how_freed() const {
  // Autograd frees what a node has kept after the node, but on its engine's thread.
  return (torch::autograd::get_current_graph_task_id() != -1 ? uses::freed_in_backward : 0) |
         (optimizers_.load(std::memory_order_relaxed) > 0 ? uses::freed_in_optimizer : 0);
}

void Allocations::look() {
  watched_.look(how_freed());
  earlier_.look();
}

void Allocations::allocated(Of device, const void* block, std::int64_t bytes, const Place& place) {
  if (device == Of::cpu) {
    cpu_.allocated(block, bytes, place.origin);
  } else if (place.op == nullptr) {
    meta_.allocated(block, bytes, place.origin);
  } else {
    unfinished_[block] = {bytes, place.op, place.origin};
  }
}

void Allocations::freed(Of device, const void* block) {
  if (device == Of::cpu) {
    cpu_.freed(block, how_freed());
  } else if (unfinished_.erase(block) == 0) {
    meta_.freed(block, how_freed());
  }
}

void Allocations::op_ended(const void* thread, const std::vector<SizedBlock>& results,
                           const std::vector<WeakStorage>& watched, const MemoryOrigin& origin) {
  const std::lock_guard lock(hub().mutex);
  for (auto block = unfinished_.begin(); block != unfinished_.end();) {
    if (block->second.thread != thread) {
      ++block;
      continue;
    }
    meta_.allocated(block->first, block->second.bytes, block->second.origin);
    block = unfinished_.erase(block);
  }
  for (const auto& [block, bytes] : results) {
    if (bytes) {
      meta_.resized(block, *bytes);
    } else {
      meta_unsized_ = true;
    }
  }
  const auto inside = inside_.find(thread);
  if (watched.empty() && inside == inside_.end()) return;
  watched_.look(how_freed());
  if (inside != inside_.end()) {
    for (const auto& storage : inside->second) watched_.was_given(storage, origin);
    inside_.erase(inside);
  }
  for (const auto& storage : watched) watched_.was_given(storage, origin);
}

bool Allocations::watches(c10::DeviceType device) const {
  return device != c10::DeviceType::Meta && (watches_cpu_ || device != c10::DeviceType::CPU);
}

void Allocations::op_reads(const std::vector<const c10::Storage*>& inputs, const MemoryOrigin& origin) {
  const auto& owner = origin.owner;
  const auto read = owner.phase == Phase::backward    ? uses::read_by_backward
                    : owner.phase == Phase::recompute ? uses::read_by_recompute
                    : owner.phase == Phase::optimizer ? uses::read_by_optimizer
                    : origin.in_model                 ? uses::read_by_model
                                                      : 0;
  const std::lock_guard lock(hub().mutex);
  for (auto* ledger : {&cpu_, &meta_, &watched_.ledger()}) ledger->begin_op(owner);
  for (const auto* storage : inputs) use(*storage, read);
}

void Allocations::is_gradient(const c10::Storage& storage) {
  const std::lock_guard lock(hub().mutex);
  use(storage, uses::gradient);
}

void Allocations::made_inside(const void* thread, const std::vector<WeakStorage>& results) {
  const std::lock_guard lock(hub().mutex);
  auto& inside = inside_[thread];
  inside.insert(inside.end(), results.begin(), results.end());
}

MemorySeen Allocations::result() const {
  const std::lock_guard lock(hub().mutex);
  MemorySeen seen;
  seen.cpu = cpu_.result();
  seen.meta = meta_.result();
  seen.meta_unsized = meta_unsized_;
  seen.watched = watched_.ledger().result();
  for (const auto& [ledger, of_device] :
       {std::pair(&cpu_, &seen.cpu), std::pair(&meta_, &seen.meta), std::pair(&watched_.ledger(), &seen.watched)}) {
    const auto earlier = earlier_.alive(*ledger);
    of_device->alive.insert(of_device->alive.end(), earlier.begin(), earlier.end());
    std::ranges::stable_sort(of_device->alive, std::ranges::greater{}, &AliveMemory::bytes);
  }
  seen.watched_devices.assign(watched_.devices().begin(), watched_.devices().end());
  seen.watched_unknown = watched_.unknown();
  seen.watches_cpu = watches_cpu_;
  seen.why_not = why_not_;
  return seen;
}

namespace {

// Adds the tensor's storage where its device is watched. (storage() of a tensor without one throws.)
void add_watched(const Allocations& memory, const at::TensorImpl& tensor, std::vector<WeakStorage>& found) {
  if (!tensor.has_storage()) return;
  const auto& storage = tensor.unsafe_storage();
  if (storage && memory.watches(storage.device_type())) found.push_back(storage.getWeakStorageImpl());
}

void add_owned(const at::Tensor& tensor, MemoryUses uses, ModuleId module, std::vector<OwnedStorage>& owned) {
  if (!tensor.defined() || !tensor.has_storage() || !tensor.storage()) return;
  owned.push_back({tensor.storage().getWeakStorageImpl(), uses, module});
}

}  // namespace

void add_owned_parameter(const at::Tensor& parameter, ModuleId module, std::vector<OwnedStorage>& owned) {
  add_owned(parameter, uses::parameter, module, owned);
  if (parameter.defined() && parameter.is_leaf()) add_owned(parameter.grad(), uses::gradient, module, owned);
}

void add_owned_buffer(const at::Tensor& buffer, ModuleId module, std::vector<OwnedStorage>& owned) {
  add_owned(buffer, uses::buffer, module, owned);
}

bool tell_inputs(Allocations& memory, const at::RecordFunction& fn, const OpInfo& op, const MemoryOrigin& origin) {
  std::vector<const c10::Storage*> inputs;
  bool watched = false;
  for (const auto& input : inputs_of(fn, op)) {
    for_each_tensor(input, [&](const at::TensorImpl& tensor, std::size_t) {
      if (!tensor.has_storage() || !tensor.unsafe_storage()) return;
      inputs.push_back(&tensor.unsafe_storage());
      watched |= memory.watches(inputs.back()->device_type());
    });
  }
  memory.op_reads(inputs, origin);
  return watched;
}

void tell_inside(Allocations& memory, const void* thread, const at::RecordFunction& fn) {
  const OpInfo* op = op_info(fn);
  if (op == nullptr) return;
  std::vector<WeakStorage> results;
  for (const auto& result : results_of(fn, *op)) {
    for_each_tensor(result, [&](const at::TensorImpl& tensor, std::size_t) { add_watched(memory, tensor, results); });
  }
  if (!results.empty()) memory.made_inside(thread, results);
}

void tell_results(Allocations& memory, const void* thread, const at::RecordFunction* fn, const OpInfo& op,
                  const MemoryOrigin& origin) {
  std::vector<SizedBlock> blocks;
  std::vector<WeakStorage> watched;
  const auto see = [&](const at::TensorImpl& tensor, std::size_t) {
    add_watched(memory, tensor, watched);
    if (!tensor.has_storage() || tensor.storage().device_type() != c10::kMeta) return;
    auto& storage = *tensor.storage().unsafeGetStorageImpl();
    blocks.push_back({storage._mutable_data_ptr_no_checks().get_context(), known_value(storage.sym_nbytes())});
  };
  if (fn != nullptr) {
    for (const auto& result : results_of(*fn, op)) for_each_tensor(result, see);
  }
  memory.op_ended(thread, blocks, watched, origin);
}

}  // namespace roofprof::observe
