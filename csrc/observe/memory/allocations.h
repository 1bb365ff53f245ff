#pragma once
// Who allocates memory meanwhile: torch's allocators of the CPU and of the meta device, with a note taken of each block
// that they give and get back. They are put back when nobody listens any more; blocks that live on are freed as ever.
//
// The meta device allocates nothing: its blocks are the sizes of its tensors' storages.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "observe/memory/memory_ledger.h"

namespace roofprof::observe {

// What one pass allocated, from begin() to end(). A block is named by the context of its storage's DataPtr.
class Allocations {
 public:
  enum class Of : std::uint8_t { cpu, meta };
  // A call in both ledgers.
  struct Call {
    MemoryLedger::CallId cpu = 0;
    MemoryLedger::CallId meta = 0;
  };

  Allocations() = default;
  ~Allocations() { end(); }
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // Whose allocations the calling thread makes now; null: nobody's.
  using OfThread = Allocations* (*)();
  // Listens until end(). Where another allocator may not be put in place of the one that is there, why_not() says so.
  void begin(OfThread of_thread);
  void end();

  Call enter(ModuleId module, bool keeps);
  void returns(Call call, const std::vector<const void*>& blocks);
  void leave(Call call);

  // What was seen: `cpu` and `meta` apart.
  void result(Pass& pass) const;

 private:
  friend struct AllocationHub;
  bool listening_ = false;
  std::string why_not_;
  // Guarded by the hub's lock.
  MemoryLedger cpu_;
  MemoryLedger meta_;
};

}  // namespace roofprof::observe
