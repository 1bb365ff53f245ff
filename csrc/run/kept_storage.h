#pragma once
// The memory of storages as it was at one moment, put back into the same storages. A storage may be shorter than the
// tensors in it say: `untyped_storage().resize_(0)` frees it, as FSDP and streamed weights do.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace roofprof::run {

// Whether elements lie in a storage of the tensor's own: not so for sparse and nested tensors, for those that Python
// dispatches (fake and distributed tensors, wrappers), and for wrappers of torch.func.
bool is_dense(const at::Tensor& tensor);

// What there is of a dense tensor's memory at one moment.
struct StorageState {
  const void* data = nullptr;
  std::int64_t bytes = 0;

  bool operator==(const StorageState&) const = default;
};
StorageState storage_state(const at::Tensor& tensor);

// Whether the memory of all elements is there. Of sparse and nested tensors that of their parts is looked at.
bool holds_its_elements(const at::Tensor& tensor);

class KeptStorages {
 public:
  // The size of a dense tensor's storage; with `by_value` all that the tensor has of it, too.
  void add(const at::Tensor& tensor, bool by_value);
  // After the last add(): copies each byte once, however many tensors lie on it.
  void copy();
  // Sizes and what was copied are put back.
  void restore();
  // Whether the tensor's storage could be put back at its size. After restore().
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
