#pragma once
// Records the memory that was allocated while modules ran: blocks by their addresses, nested calls, and for each call
// its peak and what it left behind; and what was alive when most was. It does bookkeeping alone: allocations.h knows
// who allocates, and on which thread.

#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/pass.h"

namespace roofprof::observe {

// A set of the uses of a piece of memory, from which its category follows.
using MemoryUses = std::uint32_t;
namespace uses {
inline constexpr MemoryUses parameter = 1U << 0U;
inline constexpr MemoryUses buffer = 1U << 1U;
inline constexpr MemoryUses gradient = 1U << 2U;       // it was or became some leaf's
inline constexpr MemoryUses output = 1U << 3U;         // the model returned it
inline constexpr MemoryUses read_by_model = 1U << 4U;  // by ops inside the model's forward
inline constexpr MemoryUses read_by_backward = 1U << 5U;
inline constexpr MemoryUses read_by_recompute = 1U << 6U;
inline constexpr MemoryUses read_by_optimizer = 1U << 7U;
inline constexpr MemoryUses freed_in_backward = 1U << 8U;
inline constexpr MemoryUses freed_in_optimizer = 1U << 9U;
inline constexpr MemoryUses left_by_model = 1U << 10U;  // it was there when the model's forward returned
}  // namespace uses

// The place where memory was allocated.
struct MemoryOrigin {
  Owner owner = {};
  bool in_model = false;   // inside a call of one of its modules
  bool with_grad = false;  // where autograd records
};

// Keeps a timeline of bounded length: of each interval of ops the most bytes. It halves its points where they become
// too many.
class MemoryCurve {
 public:
  static constexpr std::size_t kMostPoints = 1024;

  // Begins the next op, of that owner.
  void begin_op(const Owner& owner);
  // Notes that so many bytes are allocated now.
  void note(std::int64_t live, const Owner& owner);
  // Notes that this is more than ever before.
  void note_peak() { peak_point_ = static_cast<std::int64_t>(points_.size()) - 1; }
  MemoryTimeline result() const { return {width_, peak_point_, points_}; }

 private:
  std::int64_t op_ = -1;
  std::int64_t width_ = 1;  // ops in an interval
  std::int64_t live_ = 0;
  std::int64_t peak_point_ = -1;
  std::vector<MemoryPoint> points_;
};

// Not thread-safe: allocations.h locks.
class MemoryLedger {
 public:
  using CallId = std::uint64_t;

  void allocated(const void* block, std::int64_t bytes, const MemoryOrigin& origin = {});
  // Does nothing for a block that the ledger does not know: it was there before.
  void resized(const void* block, std::int64_t bytes);
  // `how`: the uses freed_in_backward and freed_in_optimizer.
  void freed(const void* block, MemoryUses how = 0);
  // Adds uses of the block. Returns false where the ledger does not know it.
  bool use(const void* block, MemoryUses more);
  // Begins the next op of the timeline.
  void begin_op(const Owner& owner);

  // Begins a module's call. `keeps`: what it keeps is measured, which is done in the forward alone.
  CallId enter(ModuleId module, bool keeps);
  // Notes that the call returns these blocks. Without this, what it keeps is unknown.
  void returns(CallId call, const std::vector<const void*>& blocks);
  // Ends the call, whichever others are open.
  void leave(CallId call);

  // Returns the bytes that are allocated and not freed.
  std::int64_t live() const { return live_; }
  // Returns the number of changes so far, and how many there were when most memory was allocated.
  std::uint64_t changes() const { return changes_; }
  std::uint64_t peak_at() const { return peak_at_; }
  PassMemory result() const;

 private:
  struct Block {
    std::int64_t bytes = 0;
    CallId since = 0;  // calls up to this one had begun when it was allocated
    MemoryOrigin origin;
    MemoryUses uses = 0;
    std::uint64_t born = 0;  // by changes_
    std::uint64_t resized_at = 0;
    std::int64_t bytes_before = 0;  // before it was resized first after the peak
  };
  struct Call {
    CallId id = 0;
    ModuleId module = kModel;
    bool keeps = false;
    std::int64_t live_before = 0;
    std::int64_t peak = 0;                 // of all live memory
    std::int64_t inside = 0;               // allocated since it began, and live
    std::optional<std::int64_t> returned;  // of these, what it returns
  };
  struct Calls {
    std::int64_t peak = 0;
    std::optional<std::int64_t> kept;
    bool kept_unknown = false;
  };

  bool was_at_peak(const Block& block) const { return block.born <= peak_at_; }
  void note_live(const Owner& owner);
  std::vector<AliveMemory> alive_at_peak() const;

  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
  std::uint64_t changes_ = 0;
  std::uint64_t peak_at_ = 0;
  CallId last_call_ = 0;
  std::unordered_map<const void*, Block> blocks_;
  std::vector<Block> freed_since_;  // since the peak, which they were part of
  MemoryCurve curve_;
  bool backward_ran_ = false;
  std::vector<Call> open_;  // of all threads
  std::map<ModuleId, Calls> ended_;
};

// ---- storages

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

// A storage of the model's, known before a pass: a parameter, a buffer or a gradient.
struct OwnedStorage {
  WeakStorage storage;
  MemoryUses uses = 0;
  ModuleId module = kModel;
};

// The storages that were there before a pass: the model's, and those that its ops read. Weak references keep none of
// them alive. Not thread-safe: allocations.h locks.
class EarlierStorages {
 public:
  // Adds uses of a storage that the ledger of its device does not know. `module`: whose it is; -1: nobody's.
  void use(const c10::Storage& storage, const MemoryLedger& ledger, MemoryUses more, ModuleId module = -1);
  // Notes which are gone. Parameters and buffers stay.
  void look();
  // Returns those that were alive when the ledger had most.
  std::vector<AliveMemory> alive(const MemoryLedger& ledger) const;

 private:
  struct Known {
    WeakStorage storage;
    const MemoryLedger* ledger = nullptr;
    std::int64_t bytes = 0;
    MemoryUses uses = 0;
    ModuleId module = -1;
    std::uint64_t until = ~std::uint64_t{0};  // the ledger's changes that it lived to see
  };
  std::unordered_map<const c10::StorageImpl*, Known> known_;
  std::vector<Known*> may_go_;  // of these; each call of a module looks at them
};

// Keeps a ledger of devices whose allocators cannot be listened to: it holds weak references to the storages that ops
// made, and looks which of them are gone. A weak reference keeps neither a storage's memory nor its owners alive.
// Not thread-safe: allocations.h locks.
class StorageWatch {
 public:
  // Notes that an op reads the storage: if it is not known yet, it was there before, and stays out of the ledger.
  void was_read(const WeakStorage& storage);
  // Notes that an op that ended returned the storage, or made it for itself: unless it was there before, it is in the
  // ledger from now on.
  void was_given(const WeakStorage& storage, const MemoryOrigin& origin = {});
  // Takes storages that are no longer held out of the ledger. `how` as of MemoryLedger::freed.
  void look(MemoryUses how = 0);

  MemoryLedger& ledger() { return ledger_; }
  const MemoryLedger& ledger() const { return ledger_; }
  // Returns the devices of the storages that were made.
  const std::set<std::string>& devices() const { return devices_; }
  // Returns true where the size or the place of a storage that was made is not known.
  bool unknown() const { return unknown_; }

 private:
  struct Made {
    WeakStorage storage;
    const void* block = nullptr;
  };

  MemoryLedger ledger_;
  // Keyed by address: no other storage has the same one while a reference exists. `before_` keeps a reference to each
  // parameter and input until the pass ends.
  std::unordered_map<const c10::StorageImpl*, Made> made_;
  std::unordered_map<const c10::StorageImpl*, WeakStorage> before_;
  std::set<std::string> devices_;
  bool unknown_ = false;
};

}  // namespace roofprof::observe
