#pragma once
// Keeps what calls of a model change, so that further calls can be undone.
//
// The list of what is put back, the same behind both front ends:
// - tensors: the parameters and buffers of the model and the tensors among the arguments, each with its values, its
//   storage (set_data moves a tensor to another one) and how long that is (`resize_(0)` frees it), its gradient, and
//   whether it requires one. Versions are not raised, so that the backward of an earlier call still runs
//   (TensorSnapshot);
// - the grad mode, and autocast's cache, which is cleared (AmbientState);
// - random numbers: the generators of the CPU and of all CUDA devices (AmbientState);
// - containers: of TorchScript all attributes and arguments, however deep (observe/script/script_tree.h); C++'s
//   arguments are copied for each call (roofprof/detail/call.h).
// Python adds, in roofprof/calls/arguments.py and state.py: dicts, lists, sets, deques and attributes of the user's
// objects, however deep, numpy's arrays, the generators of random and numpy, and generators among the user's values.
//
// Not put back are other members of C++ modules, files, and what belongs to threads and processes.

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace roofprof::run {

// The memory of storages as it was at one moment, put back into the same storages. A storage may be shorter than the
// tensors in it say: `untyped_storage().resize_(0)` frees it, as FSDP and streamed weights do.

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

// The limit for keeping tensors by value that no call was seen to write: torch does not report writes to tensors made
// in inference mode or through variable_data() (`tensor.data` in Python).
inline constexpr std::int64_t kBytesKept = 1 << 28;

// The random numbers of the CPU and of CUDA devices, the grad mode, and what autocast has cast already.
class AmbientState {
 public:
  AmbientState();
  void restore() const;

 private:
  bool grad_mode_;
  std::vector<std::pair<at::Generator, at::Tensor>> random_;
};

// Returns the gradient of a leaf, which may be undefined; empty for other tensors, and for those that do not give it.
std::optional<at::Tensor> gradient_of(const at::Tensor& tensor);

struct ToKeep {
  at::Tensor tensor;
  bool by_value = false;
};

// Tensors as they were when this was made. None of the user's code runs: the caller must also pass what a wrapper
// holds.
class KeptTensors {
 public:
  explicit KeptTensors(const std::vector<ToKeep>& tensors);
  // Puts back storages, values, gradients and whether a tensor requires one. Returns how many tensors could not be put
  // back: they were written but not kept by value, or their memory could not be allocated.
  std::int64_t restore();

 private:
  struct Kept {
    at::Tensor tensor;
    at::Tensor alias;   // stays with the storage when set_data() moves the tensor on; undefined: a wrapper
    at::Tensor values;  // in a format that does not use a storage
    std::optional<std::int64_t> version;
    std::optional<StorageState> state;  // of a dense tensor
    std::optional<at::Tensor> gradient;
    bool requires_grad = false;
    bool by_value = false;
    bool written = false;
  };
  static bool is_written(const Kept& kept);
  // Returns false where the tensor could not be put back.
  bool put_back(Kept& kept) const;

  std::vector<Kept> all_;
  KeptStorages storages_;
};

// The tensors within reach of a call. It keeps by value those that the first call wrote, as further calls will; of the
// others as many as `bytes_kept` allows, of inputs only those whose writes torch does not report.
class TensorSnapshot {
 public:
  // Must be made before the first call.
  TensorSnapshot(std::vector<at::Tensor> tensors, const std::vector<at::Tensor>& inputs,
                 std::int64_t bytes_kept = kBytesKept);
  // Call these two after the first call. Returns why no further call may be made, as the end of a sentence: an operator
  // on freed memory ends the process. Empty: it may.
  std::string why_only_once() const;
  // Keeps the tensors that are within reach by then.
  void keep(const std::vector<at::Tensor>& tensors);
  // Puts back what was kept. Returns how many tensors could not be put back, because only further calls wrote to them.
  std::int64_t restore() { return kept_ ? kept_->restore() : 0; }

 private:
  struct Seen {
    std::optional<std::int64_t> version;
    StorageState storage;
    bool holds_its_elements = true;
  };
  static Seen seen(const at::Tensor& tensor);

  std::vector<at::Tensor> held_;  // so that no other tensor gets the address of one of these
  std::unordered_map<const void*, Seen> before_;
  std::unordered_set<const void*> inputs_;
  std::int64_t bytes_kept_;
  std::optional<KeptTensors> kept_;
};

}  // namespace roofprof::run
