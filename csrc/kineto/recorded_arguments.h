#pragma once
// The arguments of a recorded call, one by one, and the element types that traces leave out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kineto/trace.h"
#include "roofprof/dtype.h"

namespace roofprof::kineto {

struct RecordedTensor {
  std::string type;  // C++'s name of the element type; empty: not known
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // empty where the trace does not say
  bool operator==(const RecordedTensor&) const = default;
};

struct RecordedArgument {
  enum class Kind : std::uint8_t { absent, tensor, tensor_list, other };
  Kind kind = Kind::absent;  // absent: None, a tensor that is not defined, or a value that traces leave out
  std::vector<RecordedTensor> tensors;
  std::string value;  // of other: as Python prints it, "[1, 1]", "True"
  bool operator==(const RecordedArgument&) const = default;
};

struct ElementType {
  std::string_view name;  // in c10d's records: "BFloat16"
  std::string_view cpp;   // C++'s, in the types of arguments: "c10::BFloat16"
  DType dtype;
  std::int64_t bytes;
};
// Returns the type of that name, of either kind; null: it is not known.
const ElementType* element_of(std::string_view name);

// Returns the arguments in the schema's order. Sizes below 0 and lists that do not fit each other make an argument
// `absent`.
std::vector<RecordedArgument> arguments_of(const RecordedCall& call);

// Fills RecordedCall::list_type, the element type of tensors in lists, which traces leave out. It is the type of the
// nearest op on the thread that takes a tensor of the same sizes as one in the list, or else the floating type that
// most arguments of the trace have.
void find_list_types(Trace& trace);

}  // namespace roofprof::kineto
