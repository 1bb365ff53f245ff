#pragma once
// Records the memory that was allocated while modules ran: blocks by their addresses, nested calls, and for each call
// its peak and what it left behind. It does bookkeeping alone: allocations.h knows who allocates, and on which thread.

#include <cstdint>
#include <map>
#include <optional>
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

}  // namespace roofprof::observe
