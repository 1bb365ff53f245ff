#pragma once
// The memory of storages as it was at one moment, put back into the same storages. A storage may be shorter than the
// tensors in it say: `untyped_storage().resize_(0)` frees it, as FSDP and streamed weights do.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace roofprof::run {

// Returns whether the elements lie in a storage of the tensor itself: not so for sparse and nested tensors, for those
// that Python dispatches (fake and distributed tensors, wrappers), and for wrappers of torch.func.
bool is_dense(const at::Tensor& tensor);

// The address and size of a dense tensor's memory at one moment.
struct StorageState {
  const void* data = nullptr;
  std::int64_t bytes = 0;

  bool operator==(const StorageState&) const = default;
};
StorageState storage_state(const at::Tensor& tensor);

// Returns whether the memory of all elements is there. For sparse and nested tensors it checks the parts.
bool holds_its_elements(const at::Tensor& tensor);

class KeptStorages {
 public:
  // Keeps the size of a dense tensor's storage; with `by_value` also all bytes of it that the tensor has.
  void add(const at::Tensor& tensor, bool by_value);
  // Copies each byte once, however many tensors lie on it. Call it after the last add().
  void copy();
  // Puts sizes and copied bytes back.
  void restore();
  // Returns whether the tensor's storage could be put back at its size. Call it after restore().
  bool restored(const at::Tensor& tensor) const;

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct Copy {
    at::Tensor place;  // a view of the storage
    at::Tensor values;
  };
  struct Kept {
    at::Storage storage;
    std::int64_t bytes = 0;
    std::vector<Range> ranges{};       // of bytes, to be copied as a whole
    std::vector<at::Tensor> spread{};  // tensors with gaps, which are others'
    std::vector<Copy> copies{};
    bool failed = false;
  };
  static std::vector<Range> merged(std::vector<Range> ranges);
  static void copy_into(Kept& kept);
  static void restore_one(Kept& kept);

  std::unordered_map<const void*, Kept> all_;
};

}  // namespace roofprof::run
