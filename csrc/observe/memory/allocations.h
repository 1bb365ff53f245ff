#pragma once
// Listens to torch's allocators of the CPU and of the meta device, and notes each block that they give and get back.
// The original allocators return when nobody listens any more; blocks that live on are freed as ever.
//
// The meta device allocates nothing: there, a token stands for the block of each storage, fake tensors' included. What
// an op makes for itself there and drops before it ends is left out: shape functions often compute by other ops than
// the kernels that they stand for. Of other devices, whose allocators cannot be listened to, storages are watched
// (StorageWatch), and so they are on the CPU where its allocator may not be replaced; sizes between ops, again.

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "observe/memory/memory_ledger.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {

// A storage's block, named by the context of its DataPtr, and the storage's size. Empty: it is not known.
struct SizedBlock {
  const void* block = nullptr;
  std::optional<std::int64_t> bytes;
};

// Records what one pass allocated, from begin() to end().
class Allocations {
 public:
  enum class Of : std::uint8_t { cpu, meta };
  // A call in each ledger.
  struct Call {
    MemoryLedger::CallId cpu = 0;
    MemoryLedger::CallId meta = 0;
    MemoryLedger::CallId watched = 0;
  };
  // The pass that a thread allocates for now; null: none.
  struct Place {
    Allocations* allocations = nullptr;
    const void* op = nullptr;  // inside an op that counts as a whole: the thread, for op_ended()
    MemoryOrigin origin = {};
  };

  Allocations() = default;
  ~Allocations() { end(); }
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  using OfThread = Place (*)();
  // Listens until end(). Where the present allocator may not be replaced, the result says so. `owned`: of the model.
  void begin(OfThread of_thread, const std::vector<OwnedStorage>& owned = {});
  void end();

  Call enter(ModuleId module, bool keeps);
  void returns(Call call, const std::vector<const void*>& blocks);
  void leave(Call call);
  // Notes that the outermost op that counts as a whole ended on that thread, with results in these blocks of the meta
  // device: some storages get their size after they were allocated.
  void op_ended(const void* thread, const std::vector<SizedBlock>& results, const std::vector<WeakStorage>& watched,
                const MemoryOrigin& origin = {});

  // Returns whether made_inside() and op_ended() must report storages of such a device.
  bool watches(c10::DeviceType device) const;
  // Notes that an op that counts as a whole starts, and which storages it reads.
  void op_reads(const std::vector<const c10::Storage*>& inputs, const MemoryOrigin& origin);
  // Notes that the storage is a leaf's gradient.
  void is_gradient(const c10::Storage& storage);
  // Notes that an optimizer's step begins or ends.
  void optimizer_begins() { optimizers_.fetch_add(1, std::memory_order_relaxed); }
  void optimizer_ends() { optimizers_.fetch_sub(1, std::memory_order_relaxed); }
  // Notes that an op inside of the outermost one made these on that thread: they count if they outlive that one.
  void made_inside(const void* thread, const std::vector<WeakStorage>& results);

  MemorySeen result() const;

 private:
  friend struct AllocationHub;
  struct Unfinished {
    std::int64_t bytes = 0;
    const void* thread = nullptr;
    MemoryOrigin origin;
  };

  void allocated(Of device, const void* block, std::int64_t bytes, const Place& place);
  void freed(Of device, const void* block);
  MemoryLedger& ledger_of(c10::DeviceType device);
  void use(const c10::Storage& storage, MemoryUses more, ModuleId module = -1);
  MemoryUses how_freed() const;
  void look();

  bool listening_ = false;
  bool watches_cpu_ = false;
  std::string why_not_;
  // Guarded by the hub's lock.
  MemoryLedger cpu_;
  MemoryLedger meta_;
  StorageWatch watched_;
  std::map<const void*, std::vector<WeakStorage>> inside_;  // of watched devices, of ops that run on these threads
  std::map<const void*, Unfinished> unfinished_;            // blocks of the meta device of ops that run
  bool meta_unsized_ = false;
  EarlierStorages earlier_;
  std::atomic<int> optimizers_{0};  // whose steps are under way
};

// Adds the storage of a parameter and that of its gradient, or that of a buffer, where they have one.
void add_owned_parameter(const at::Tensor& parameter, ModuleId module, std::vector<OwnedStorage>& owned);
void add_owned_buffer(const at::Tensor& buffer, ModuleId module, std::vector<OwnedStorage>& owned);

// ---- what ops report to the Allocations of a pass that measures memory; `thread` identifies the thread

// Reports the inputs of an op that starts and counts as a whole. Returns true if it reads tensors of a watched device:
// then tell_inside must report the ops inside it, too.
bool tell_inputs(Allocations& memory, const at::RecordFunction& fn, const OpInfo& op, const MemoryOrigin& origin);
// Reports the results of an op that ended inside such an op.
void tell_inside(Allocations& memory, const void* thread, const at::RecordFunction& fn);
// Reports the results of an op that ended and is not part of another op's work, though an op around it may still run.
// The memory that the op made for itself is dropped by now. `fn` is null where its results are not known.
void tell_results(Allocations& memory, const void* thread, const at::RecordFunction* fn, const OpInfo& op,
                  const MemoryOrigin& origin);

}  // namespace roofprof::observe
