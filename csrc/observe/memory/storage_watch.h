#pragma once
// The memory of devices whose allocators cannot be listened to: storages that ops made, by their sizes, and which of
// them are gone. A weak reference to a storage keeps neither its memory nor its owners; nothing of it is changed.

#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/memory/memory_ledger.h"

namespace roofprof::observe {

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
