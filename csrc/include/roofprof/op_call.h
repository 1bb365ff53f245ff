#pragma once
// One call of an operator, as far as its cost can depend on it. Knows nothing of torch: the observer or a test fills
// it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "roofprof/dtype.h"
#include "roofprof/error.h"

namespace roofprof::ops {

struct TensorDesc {
  DType dtype = DType::other;  // complex types are described by their component: complex64 is fp32, is_complex
  bool is_complex = false;
  std::int64_t item_bytes = 0;  // 0: a Python number, which is held in no memory
  std::vector<std::int64_t> sizes;
  // The dimensions that are expanded (stride 0): memory holds nothing for them. Empty: none.
  std::vector<bool> expanded;
  // True if another tensor read by this call is the very same view (storage, offset, sizes, strides): its bytes count
  // once.
  bool repeated = false;
  // True if channels are innermost in memory (torch.channels_last, channels_last_3d).
  bool channels_last = false;
  // The index in its list of tensors; a None there has an index too.
  std::size_t place = 0;
  // torch's number of the element type (c10::ScalarType), which is finer than `dtype`; -1: not known.
  int element_type = -1;
  // Sparse formats hold only some of the elements (non-zeros; whole blocks where there are blocks), and their
  // positions.
  std::optional<std::int64_t> stored;
  std::int64_t index_bytes = 0;
  // A nested tensor: the sizes of each component. `sizes` then is their number, and kRagged where they differ.
  std::vector<std::vector<std::int64_t>> components;
  static constexpr std::int64_t kRagged = -1;
  // A size in `sizes` that is symbolic and has no value in this run.
  static constexpr std::int64_t kUnknown = -2;

  [[nodiscard]] bool is_sparse() const { return stored.has_value(); }
  [[nodiscard]] bool is_nested() const { return !components.empty(); }
  [[nodiscard]] bool is_known() const;            // none of its sizes is kUnknown
  [[nodiscard]] std::int64_t numel() const;       // logical elements; saturating
  [[nodiscard]] std::int64_t held_numel() const;  // elements really held: expanded dimensions count once
  [[nodiscard]] std::int64_t stored_numel()
      const;  // elements that take part in arithmetic: those stored where sparse, else all
  [[nodiscard]] std::int64_t held_bytes() const;   // indices of sparse formats included; saturating
  [[nodiscard]] std::int64_t size(int dim) const;  // negative dims from the end; throws OutOfRange, also where ragged
  [[nodiscard]] int dim() const { return static_cast<int>(sizes.size()); }
};

// monostate: None, or a value that no cost of this op declares. A list of booleans is a list of 0 and 1.
using Scalar = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                            std::vector<double>>;

enum class ArgumentKind : std::uint8_t {
  tensor,
  tensor_list,
  scalar,
  dtype,  // a scalar that is the number of an element type
};

// One argument or result in schema order: a tensor or tensor list (tensors), or a declared scalar.
struct Argument {
  std::string name;
  std::vector<TensorDesc> tensors;  // absent optional tensors: empty
  Scalar scalar;
  // True for an argument that the op writes to by its schema (in-place self, out=), and for a result that is one.
  bool written = false;
  ArgumentKind kind = ArgumentKind::tensor;
  bool keyword_only = false;
  bool unknown = false;  // the scalar is a symbolic integer without a value in this run
};

// The kind of an operator without a cost, by its schema and tags.
enum class Trait : std::uint8_t { none, view, view_copy, pointwise, reduction };

struct OpCall {
  std::string name;      // "aten::conv2d"
  std::string overload;  // "out", "Tensor", ""
  Trait trait = Trait::none;
  std::vector<Argument> arguments;
  std::vector<Argument> results;

  // Returns the one tensor at that position or of that name; throws OutOfRange naming op and argument where
  // absent.
  [[nodiscard]] const TensorDesc& tensor(std::size_t position) const;
  [[nodiscard]] const TensorDesc& tensor(std::string_view argument) const;
  // Returns null where the argument is absent (None, or not in this schema).
  [[nodiscard]] const TensorDesc* find_tensor(std::string_view argument) const;
  [[nodiscard]] const std::vector<TensorDesc>& tensors(std::string_view argument) const;
  [[nodiscard]] bool has_argument(std::string_view argument) const {
    return find(argument) != nullptr;
  }  // in this schema
  [[nodiscard]] const TensorDesc& result(std::size_t position = 0) const;
  [[nodiscard]] bool has_result(std::size_t position) const;

  // Return declared scalars; the default where the call leaves them None.
  // Throws LogicError where the op's table line does not declare the name (it would not be in the bucket's key),
  // and where the value is of another type.
  [[nodiscard]] std::int64_t integer(std::string_view argument, std::int64_t otherwise) const;
  [[nodiscard]] bool boolean(std::string_view argument, bool otherwise) const;
  [[nodiscard]] double number(std::string_view argument, double otherwise) const;
  [[nodiscard]] std::vector<std::int64_t> integers(
      std::string_view argument) const;  // a single int reads as a list of one
  [[nodiscard]] std::string text(std::string_view argument) const;
  [[nodiscard]] std::vector<double> numbers(std::string_view argument) const;  // a single number reads as a list of one

  // Returns the dtype of the arithmetic: the first floating tensor's; where a Python number alone is floating, the
  // result's; else the first tensor's.
  [[nodiscard]] DType compute_dtype() const;

  // The scalar names that the op's table line declares, "*" for all (set by the registry while it evaluates the cost).
  std::string_view declared_scalars;

 private:
  const Argument* find(std::string_view argument) const;
  const Scalar& declared(std::string_view argument) const;
};

}  // namespace roofprof::ops
