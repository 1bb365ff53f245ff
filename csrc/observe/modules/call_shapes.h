#pragma once
// Records the inputs and outputs of a module's call, as sizes.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/profile_data.h"

namespace roofprof::observe {

// Collects the sizes of tensors: of as many as people read.
class TensorShapes {
 public:
  void add(const at::Tensor& tensor);
  // Adds all tensors in any nest of containers.
  void add(const c10::IValue& value);
  const std::vector<std::vector<std::int64_t>>& all() const { return shapes_; }
  // Returns nothing where no tensor was added, or where the sizes of one do not give its bytes.
  std::optional<std::int64_t> bytes() const;

 private:
  bool full() const;

  std::vector<std::vector<std::int64_t>> shapes_;
  std::int64_t bytes_ = 0;
  bool known_ = true;
};

struct CallShapes {
  TensorShapes inputs;
  TensorShapes outputs;

  void write_to(Module& row) const;
};

// Keeps the shapes of the last call at each place, as the calls report them.
class LastShapes {
 public:
  // The run decides which passes listen.
  void listen(bool wanted) { wanted_.store(wanted, std::memory_order_relaxed); }
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  void keep(ModuleId place, CallShapes call);
  void write_to(std::vector<Module>& modules) const;

 private:
  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;
  std::map<ModuleId, CallShapes> calls_;
};

}  // namespace roofprof::observe
