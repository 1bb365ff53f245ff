#pragma once
// The sizes of the tensors that ops and modules take, and their text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

// The sizes of a tensor, dimension by dimension; a scalar has none.
using Shape = std::vector<std::int64_t>;
// Stands for a size that differs between the components of a nested tensor, or that is symbolic and has no value.
inline constexpr std::int64_t kUnknownSize = -1;

// Returns whether the tensor has dimensions, and the size of each is known.
bool has_sizes(const Shape& shape);

// The tensors that each call of an op takes.
struct OpShapes {
  std::vector<Shape> tensors;  // in the order of the arguments
  bool others = false;         // distinct ones were too many to keep apart: `tensors` is empty

  bool empty() const { return tensors.empty() && !others; }
  auto operator<=>(const OpShapes&) const = default;
};

// Returns "1x3x224x224", with * for a size that is not known; of a scalar, that word.
std::string shape_text(const Shape& shape, std::string_view scalar = "scalar");
// Returns "1x3x224x224, 64"; of a text that is longer than `longest`, what follows is "...".
std::string shapes_text(const std::vector<Shape>& shapes, std::string_view scalar = "()",
                        std::size_t longest = ~std::size_t{0});
// Returns "1x3x224x224, 64x3x7x7", at most some 200 characters of it; "other shapes" where these are not kept apart.
std::string shapes_text(const OpShapes& shapes);

// Reads what shapes_text() makes, as reports of schema version 5 have it: what was cut off there is not known. Returns
// nothing for any other text.
std::optional<OpShapes> shapes_in_text(std::string_view text);

}  // namespace roofprof
