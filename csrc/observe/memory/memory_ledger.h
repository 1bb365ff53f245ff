#pragma once
// Records the memory that was allocated while modules ran: blocks by their addresses, nested calls, and for each call
// its peak and what it left behind. It does bookkeeping alone: allocations.h knows who allocates, and on which thread.

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

// Not thread-safe: allocations.h locks.
class MemoryLedger {
 public:
  using CallId = std::uint64_t;

  void allocated(const void* block, std::int64_t bytes);
  // Does nothing for a block that the ledger does not know: it was there before.
  void resized(const void* block, std::int64_t bytes);
  void freed(const void* block);

  // Begins a module's call. `keeps`: what it keeps is measured, which is done in the forward alone.
  CallId enter(ModuleId module, bool keeps);
  // Notes that the call returns these blocks. Without this, what it keeps is unknown.
  void returns(CallId call, const std::vector<const void*>& blocks);
  // Ends the call, whichever others are open.
  void leave(CallId call);

  // Returns the bytes that are allocated and not freed.
  std::int64_t live() const { return live_; }
  PassMemory result() const;

 private:
  struct Block {
    std::int64_t bytes = 0;
    CallId since = 0;  // calls up to this one had begun when it was allocated
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

  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
  CallId last_call_ = 0;
  std::unordered_map<const void*, Block> blocks_;
  std::vector<Call> open_;  // of all threads
  std::map<ModuleId, Calls> ended_;
};

// Keeps a ledger of devices whose allocators cannot be listened to: it holds weak references to the storages that ops
// made, and looks which of them are gone. A weak reference keeps neither a storage's memory nor its owners alive.

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

// Not thread-safe: allocations.h locks.
class StorageWatch {
 public:
  // Notes that an op reads the storage: if it is not known yet, it was there before, and stays out of the ledger.
  void was_read(const WeakStorage& storage);
  // Notes that an op that ended returned the storage, or made it for itself: unless it was there before, it is in the
  // ledger from now on.
  void was_given(const WeakStorage& storage);
  // Takes storages that are no longer held out of the ledger.
  void look();

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
