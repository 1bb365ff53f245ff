#pragma once
// Gives storages addresses that follow from the program alone, for figures that ask which memory was touched before.
// The real ones also follow from what the process allocated and freed earlier, so that one call would have other
// figures each time.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/memory/memory_ledger.h"
#include "observe/reuse/reuse_log.h"

namespace roofprof::observe {

// A storage has its place as long as it lives. A new one takes the place of one that is gone, as allocators do: of the
// last one that had its size, else of the smallest of up to twice its size, else a fresh place. Storages that live in
// the same memory are in the same place.
//
// Threads share it.
class StablePlaces {
 public:
  // Moves operands of an op, all inputs or all results, from their addresses to their places, each to its device's.
  // Their storages must be alive.
  void place(std::span<Operand> operands);

 private:
  struct Placed {
    WeakStorage storage;
    std::int32_t device = 0;
    std::uint64_t number = 0;  // of all: another storage may have its address later
    std::uint64_t last_op = 0;
    std::uintptr_t begin = 0;
    std::int64_t bytes = 0;     // 0: in another one's place
    std::uintptr_t origin = 0;  // its address when it was new
  };
  struct Use {
    std::uint64_t op = 0;
    std::uint64_t number = 0;
    const void* storage = nullptr;
  };
  using Held = std::vector<c10::intrusive_ptr<c10::StorageImpl>>;

  Placed& placed(const Operand& operand, std::int64_t bytes, Held& held);
  const Placed* same_memory(const Operand& operand, Held& held);
  void take_place(Placed& storage, std::int64_t bytes);
  void free_place(const Placed& storage);
  void drop_recent();
  void drop_all();

  // The calls of place() whose operands are looked at when the next storage is new, those of four ops: most are gone
  // soon after their last use.
  static constexpr std::uint64_t kRecentOps = 8;
  static constexpr std::size_t kMostRecent = 1 << 10;
  // All storages are looked at once there are so many, and then when there are twice those that were left.
  static constexpr std::size_t kFewest = 1 << 8;

  std::mutex mutex_;  // guards what follows; threads rarely share a pass
  std::uint64_t op_ = 0;
  std::uint64_t last_number_ = 0;
  // Keyed by address: no other storage has the same one while a reference exists.
  std::unordered_map<const void*, Placed> known_;
  std::size_t drop_at_ = kFewest;
  std::deque<Use> recent_;                                                             // with the op
  std::map<std::pair<std::int32_t, std::uintptr_t>, const void*> by_origin_;           // by device and address
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::uintptr_t>> free_;  // by device and size
  std::uintptr_t next_ = kAlignment;
  static constexpr std::int64_t kAlignment = 64;
};

}  // namespace roofprof::observe
