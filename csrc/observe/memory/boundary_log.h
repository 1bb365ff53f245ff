#pragma once
// Finds out which bytes of ops cross the boundaries of modules: what comes into a module's call from outside, and what
// goes out of it. The rest stays inside, and a fused module need not move it.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/pass.h"
#include "observe/memory/memory_ledger.h"
#include "observe/reuse/reuse_log.h"

namespace roofprof::observe {

// The parts of one storage that were touched: each byte counts once.
class TouchedParts {
 public:
  // A view of a storage: `bytes` of those in [begin, end), which are fewer where it has gaps. Views with gaps that have
  // the same begin, end and layout are the same.
  struct View {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t bytes = 0;
    std::uint64_t layout = 0;

    bool is_dense() const { return bytes == end - begin; }
  };

  // Touches `bytes` of the view. Where these are not all of it (rows of a table), it is not known which: rows that were
  // touched later count as others, until all are touched. Returns the bytes that were not touched before.
  std::int64_t add(const View& view, std::int64_t bytes);

 private:
  // All of it, where it is not one piece without gaps: most is, and then nothing is allocated.
  struct Pieces {
    struct Part {
      View view;
      std::int64_t touched = 0;
    };
    std::vector<std::pair<std::int64_t, std::int64_t>> dense;  // disjoint, by their begin
    std::vector<Part> others;                                  // with gaps, or touched in part

    std::int64_t add(const View& view, std::int64_t bytes);
    std::int64_t add_dense(const View& view);
  };

  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::unique_ptr<Pieces> pieces_;
};

// Follows the instances of modules: what runs between the begin and the end of one is inside it. An instance of a
// module is one call. A module that is not called (a container, every module in the backward) has one instance in each
// instance of the module around it. In the backward the model's own instance ends when the next forward of the model
// begins, or the pass ends.
//
// Threads share the log.
class BoundaryLog {
 public:
  // The place where an op was counted: a thread's table and the bucket in it.
  using Place = ReuseLog::Place;

  // `parents`: of each module of the model's tree.
  explicit BoundaryLog(std::vector<ModuleId> parents) : parents_(std::move(parents)) {}

  // Begins and ends a call of a module.
  void enter(ModuleId module, Phase phase);
  void leave(ModuleId module, Phase phase);
  // Adds the row of a region below that of `parent`.
  void add_row(ModuleId row, ModuleId parent);
  // Ends all instances that are not calls: a step of the program is over.
  void step();
  // Ends them, too, and lets all go out that calls wrote and others may read: they do not tell from now on, or did not
  // until now.
  void interrupt();

  // Counts a call of an op that ended. What it moves beyond the memory of its operands crosses all boundaries.
  void count(Place place, const Owner& owner, std::span<const Operand> operands, const Work& work);
  // Notes the operands of a call whose bytes do not count: what it writes is known inside from then on.
  void touch(const Owner& owner, std::span<const Operand> operands);
  // Notes that code other than ops may read the storage: it was handed to NumPy.
  void read_by_others(const void* storage);

  // Sets Pass::Op::crossings when the pass is over. `op_of` returns the index of a bucket's op; -1: it is none of them.
  void collect(std::vector<Pass::Op>& ops, const std::function<std::int64_t(Place)>& op_of);

 private:
  using Key = std::size_t;  // a module in a phase
  struct Instance {
    std::uint64_t id = 0;              // 0: none is open
    std::uint64_t around = 0;          // the id of the instance around it
    int calls = 0;                     // that are open; 0: the instance is not a call
    std::vector<const void*> written;  // storages
    std::vector<Key> inside;           // those that are not calls
  };
  // Holds what the ops of one instance did to one storage.
  struct Written {
    Place place;
    std::size_t level = 0;  // modules between that of the op and that of the instance
    std::int64_t bytes = 0;
  };
  struct Use {
    Key module = 0;
    std::uint64_t instance = 0;
    std::size_t level = 0;  // modules around that of the instance
    bool born = false;      // the storage was made inside
    bool is_out = false;    // what was written counts as gone out
    TouchedParts touched;
    TouchedParts written;
    Written first_write;  // no bytes: there was none
    std::vector<Written> more_writes;
  };
  struct Storage {
    WeakStorage storage;
    std::vector<Use> uses;        // one for each module and phase: that of its last instance
    std::vector<Written> unread;  // what went out when calls ended, and was not read since
  };
  struct Bytes {
    std::int64_t read = 0;
    std::int64_t write = 0;
    std::int64_t unread = 0;
  };
  struct Moved {
    const Operand* operand = nullptr;
    TouchedParts::View view;
    std::int64_t bytes = 0;
  };

  static Key key_of(ModuleId module, Phase phase) { return index_of(module) * kPhaseCount + static_cast<Key>(phase); }
  ModuleId parent_of(ModuleId module) const { return parents_[index_of(module)]; }
  Instance& at(Key key);
  void end_all_but_calls();
  void begin(Instance& instance, std::uint64_t around);
  void end(Key key);
  void find_chain(const Owner& owner);
  bool is_in_chain(const Use& use) const;
  Storage& storage_of(const Operand& operand);
  void note_born(std::span<const Operand> operands);
  Use& use_of(Storage& storage, std::size_t level);
  void read(Place place, const Moved& moved);
  void write(Place place, const Moved& moved);
  static std::int64_t distribute(std::vector<Moved>& moved, std::int64_t bytes);
  void goes_out(Use& use);
  void note_reads(std::span<const Operand> operands);
  void read_by(const void* storage);
  void is_gone(const Storage& storage);
  std::vector<Bytes>& bytes_of(Place place, std::size_t level);
  void drop_dead();

  std::mutex mutex_;  // guards what follows; threads rarely share a pass
  std::vector<ModuleId> parents_;
  std::vector<Instance> instances_;
  std::uint64_t last_id_ = 0;
  // The modules of the op that is counted, from its own upwards, and their instances' ids.
  std::vector<std::uint64_t> chain_;
  std::vector<Key> chain_keys_;
  std::optional<Key> chain_of_;  // the one of this key, where no instance began or ended since
  // Storages that are gone are dropped once there are so many, and then when there are twice those that were left.
  static constexpr std::size_t kFewest = 1 << 8;
  // Keyed by address: no other storage has the same one while a reference exists.
  std::unordered_map<const void*, Storage> storages_;
  std::size_t drop_at_ = kFewest;
  std::map<const void*, std::vector<std::vector<Bytes>>> by_table_;  // by bucket, by level
  // Scratch for one op, kept so that its memory is used again.
  std::vector<Moved> reads_;
  std::vector<Moved> writes_;
};

}  // namespace roofprof::observe
