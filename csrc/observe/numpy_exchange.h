#pragma once
// Memory that left torch and memory that came in, as Tensor.numpy() and torch.from_numpy() do: what happened between
// is work that no op did. One thread's.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace roofprof::observe {

struct MemoryRange {
  const void* storage = nullptr;
  const char* begin = nullptr;
  const char* end = nullptr;
  // numpy hands the same memory back in another storage, and what holds no data has no addresses.
  bool overlaps(const MemoryRange& other) const {
    if (storage != nullptr && storage == other.storage) return true;
    return begin != nullptr && begin < other.end && other.begin < end;
  }
};

bool has_memory(const at::Tensor& tensor);
// Returns the whole storage of a tensor that has memory.
MemoryRange memory_of(const at::Tensor& tensor);

class NumpyExchange {
 public:
  std::size_t size() const { return all_.size(); }
  void exported(const at::Tensor& tensor, std::size_t running_ops);
  // Ignored where it is what was read out, a single number, or torch's own memory (torch.tensor([1, 2])).
  void imported(const at::Tensor& tensor, std::size_t running_ops);

  // Returns the memory that came in after a tensor had been read out. Both happened since there were `first` exchanges.
  std::vector<MemoryRange> results(std::size_t first) const;

  // These forget exchanges that are accounted for: all since there were `first`; those of them that came in; and those
  // inside of ops that ran above `running_ops` others.
  void forget(std::size_t first);
  void forget_results(std::size_t first);
  void forget_inside(std::size_t running_ops);

 private:
  struct Exchange {
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage;  // read out; empty: brought in
    MemoryRange memory;
    std::size_t running_ops = 0;
  };
  void add(Exchange exchange);

  std::vector<Exchange> all_;
};

}  // namespace roofprof::observe
