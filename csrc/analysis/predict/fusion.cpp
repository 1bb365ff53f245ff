#include "analysis/predict/fusion.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <unordered_map>

#include "analysis/predict/scaling.h"

namespace roofprof {

namespace {

// Returns whether the op can read what a chain holds in registers. Pooling and interpolation read elements several
// times, so these lie in memory.
bool joins(const OpFeatures& op) { return op.op != OpClass::pooling && op.op != OpClass::interpolation; }

bool can_fuse(const OpFeatures& op) {
  return op.is_known &&
         (op.op == OpClass::elementwise || op.op == OpClass::row_norm || op.op == OpClass::softmax ||
          op.op == OpClass::reduction || op.op == OpClass::copy || op.op == OpClass::concatenation || !joins(op));
}

// The tensor that an op made, as it was before anything was fused.
struct ChainTensor {
  std::size_t place = 0;  // of the op that made it
  std::int64_t elements = 0;
  double bytes = 0;  // that it wrote
};

class Chains {
 public:
  Chains(const Profile& data, std::vector<OpFeatures>& features) : data_(data), features_(features) {}

  void run() {
    for (std::size_t place = 0; place < features_.size(); ++place) {
      if (!features_[place].is_free) next(place);
    }
    leave_modules(-1, std::numeric_limits<double>::infinity());
  }

 private:
  void next(std::size_t place) {
    OpFeatures& here = features_[place];
    const auto& bucket = data_.counts.ops[place];
    const auto shapes = sized_shapes(bucket);
    leave_modules(bucket.owner.module, here.calls);
    if (!can_fuse(here)) {
      write_again(shapes);
      if (before_) join_later_call(parent_of(data_.counts.ops[before_->place].owner.module), false);
      take_casts(here);
      before_.reset();
      return;
    }
    const ChainTensor made{place, bucket.work.output_elements / std::max<std::int64_t>(bucket.calls, 1),
                           here.write_bytes};
    here.cast_bytes = here.indexed_elements = here.planes = 0;
    if (!joins(here)) before_.reset();
    // All rows must have been read before the first of them is used.
    if (before_ && takes_statistics_of_columns(shapes)) before_.reset();
    if (!before_ || !takes_statistics_of_rows(shapes)) write_again(shapes);
    const double read = here.read_bytes;
    const double joined = before_ ? join(here, shapes, place) : 0;
    unwritten_.erase(made.elements);
    if (here.calls > 1) {
      later_calls_[made.elements] = {place, here.calls - std::max(joined, 1.0), read, is_sum(shapes, made.elements)};
    }
    if (here.op == OpClass::reduction) reduced_ = largest_of(shapes);
    reduces_ = here.op == OpClass::reduction || (reduces_ && joined > 0);
    before_ = last_of_[bucket.owner.module] = made;
  }

  ModuleId parent_of(ModuleId module) const { return data_.tree.modules[index_of(module)].parent; }

  static bool is_sum(const std::vector<Shape>& shapes, std::int64_t elements) {
    return operands_of_size(shapes, elements) > 1;
  }

  static std::int64_t largest_of(const std::vector<Shape>& shapes) {
    std::int64_t largest = 0;
    for (const auto& shape : shapes) largest = std::max(largest, elements_of(shape));
    return largest;
  }

  static std::int64_t operands_of_size(const std::vector<Shape>& shapes, std::int64_t elements) {
    return std::ranges::count_if(shapes, [&](const auto& shape) { return elements_of(shape) == elements; });
  }

  // Returns the share of the op's operands that the chain holds in registers: what the op before made.
  double share_of_chain(const std::vector<Shape>& shapes, bool every) const {
    double all = 0;
    for (const auto& shape : shapes) all += static_cast<double>(elements_of(shape));
    const auto operands = operands_of_size(shapes, before_->elements);
    if (operands == 0 || all == 0) return 0;
    return static_cast<double>((every ? operands : 1) * before_->elements) / all;
  }

  // Returns whether the op takes the tensor that the chain has reduced together with the statistics of its rows. These
  // are held in registers, or expanded to the tensor's size.
  bool takes_statistics_of_rows(const std::vector<Shape>& shapes) const {
    const auto largest = largest_of(shapes);
    return reduces_ && largest == reduced_ && before_->elements < largest && shapes.size() > 1 &&
           operands_of_size(shapes, largest) + operands_of_size(shapes, before_->elements) > 1;
  }

  // Returns whether the op takes a tensor together with the statistics of its columns, which the chain has computed.
  bool takes_statistics_of_columns(const std::vector<Shape>& shapes) const {
    if (!reduces_) return false;
    const auto largest = largest_of(shapes);
    return largest > before_->elements && std::ranges::any_of(shapes, [&](const auto& shape) {
             return elements_of(shape) == before_->elements && !shape.empty() && shape.back() != 1;
           });
  }

  // An op can read a result from before the chain's last one only if it was written: counts that write again.
  void write_again(const std::vector<Shape>& shapes) {
    for (const auto& shape : shapes) {
      const auto elements = elements_of(shape);
      if (before_ && before_->elements == elements) continue;
      const auto found = unwritten_.find(elements);
      if (found == unwritten_.end()) continue;
      features_[found->second.place].write_bytes += found->second.bytes;
      unwritten_.erase(found);
    }
  }

  // Returns how many calls of the op joined the chain.
  double join(OpFeatures& here, const std::vector<Shape>& shapes, std::size_t place) {
    OpFeatures& before = features_[before_->place];
    // Ops of one module that follow each other compute one expression: all operands are in registers, and of the calls
    // that share a bucket only one reads from memory or writes there.
    const bool same_expression = data_.counts.ops[place].owner == data_.counts.ops[before_->place].owner;
    const double read =
        same_expression && takes_statistics_of_rows(shapes) ? 1 : share_of_chain(shapes, same_expression);
    if (read == 0) return 0;
    const double joined = std::min(here.calls, before.calls);
    here.read_bytes *= 1 - read * joined / here.calls;
    if (same_expression || here.calls >= before.calls) {  // else nobody knows who reads what the other calls wrote
      unwritten_[before_->elements] = {before_->place, before_->elements, before.write_bytes};
      before.write_bytes = 0;
    }
    here.fused = here.in_chain = before.in_chain = true;
    if (same_expression) {
      before.read_bytes *= joined / before.calls;
      here.write_bytes *= joined / here.calls;
    }
    return joined;
  }

  // The op before writes the narrow type that the product reads, and no cast is left.
  void take_casts(OpFeatures& here) {
    if (!before_ || here.cast_bytes == 0) return;
    here.cast_bytes = 0;
    features_[before_->place].write_bytes /= 2;
  }

  // Calls that share a bucket stand where the first of them ran. A later call may read the chain's last result: a call
  // of a sibling module (an activation that is called twice), or of the parent module that ends here (a residual sum).
  void join_later_call(ModuleId outer, bool outer_ends) {
    const auto found = later_calls_.find(before_->elements);
    if (found == later_calls_.end() || found->second.place == before_->place) return;
    auto& [place, calls, read, is_sum] = found->second;
    OpFeatures& before = features_[before_->place];
    OpFeatures& later = features_[place];
    const auto module = data_.counts.ops[place].owner.module;
    const bool reads_it = outer_ends ? module == outer : !is_sum && parent_of(module) == outer;
    if (!reads_it || module == data_.counts.ops[before_->place].owner.module || calls < before.calls) return;
    const auto shapes = sized_shapes(data_.counts.ops[place]);
    later.read_bytes =
        std::max(later.read_bytes - read * share_of_chain(shapes, false) * before.calls / later.calls, 0.0);
    before.write_bytes = 0;
    later.in_chain = before.in_chain = true;
    calls -= before.calls;
  }

  // Leaves the modules that `next` is not in. Where a module calls one op several times, the last call makes the
  // module's result, and the next op reads it.
  void leave_modules(ModuleId next, double calls) {
    for (auto module = module_; module >= 0 && !is_within(next, module, data_.tree.modules);
         module = parent_of(module)) {
      if (before_) join_later_call(module, true);
      const auto own = last_of_.find(module);
      if (own != last_of_.end() && features_[own->second.place].calls > calls) before_ = own->second;
    }
    module_ = next;
  }

  struct LaterCalls {
    std::size_t place = 0;
    double calls = 0;     // that joined no chain so far
    double read = 0;      // bytes that one call read before any joined
    bool is_sum = false;  // of two tensors of equal size
  };

  const Profile& data_;
  std::vector<OpFeatures>& features_;
  std::optional<ChainTensor> before_;                         // the chain's last op
  bool reduces_ = false;                                      // the chain has a reduction
  std::int64_t reduced_ = 0;                                  // elements that the last reduction took
  ModuleId module_ = -1;                                      // of the last op
  std::unordered_map<std::int64_t, ChainTensor> unwritten_;   // that stay in registers, by their elements
  std::unordered_map<ModuleId, ChainTensor> last_of_;         // of each module's own ops
  std::unordered_map<std::int64_t, LaterCalls> later_calls_;  // by the elements of what they make
};

}  // namespace

void fuse_chains(const Profile& data, std::vector<OpFeatures>& features) { Chains(data, features).run(); }

}  // namespace roofprof
