#include "core/shapes.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace roofprof {
namespace {

constexpr std::string_view kOthers = "other shapes";
constexpr std::string_view kScalar = "scalar";
constexpr std::string_view kUnknown = "*";
constexpr std::string_view kCutOff = "...";
constexpr std::string_view kBetween = ", ";
constexpr std::size_t kLongest = 200;

// Takes what stands before the separator off the text, and the separator with it; all of it where there is none.
std::string_view take_until(std::string_view& text, std::string_view separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto taken = text.substr(0, end);
  text.remove_prefix(std::min(end + separator.size(), text.size()));
  return taken;
}

std::optional<Shape> shape_in_text(std::string_view text) {
  Shape shape;
  if (text == kScalar) return shape;
  if (text.ends_with('x')) return std::nullopt;
  do {
    const auto size = take_until(text, "x");
    auto& known = shape.emplace_back(kUnknownSize);
    if (size == kUnknown) continue;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), known);
    if (error != std::errc() || end != size.data() + size.size() || known < 0) return std::nullopt;
  } while (!text.empty());
  return shape;
}

}  // namespace

bool has_sizes(const Shape& shape) {
  return !shape.empty() && std::ranges::all_of(shape, [](std::int64_t size) { return size >= 0; });
}

std::string shape_text(const Shape& shape, std::string_view scalar) {
  if (shape.empty()) return std::string(scalar);
  std::string text;
  for (const auto size : shape) {
    if (!text.empty()) text += 'x';
    text += size < 0 ? std::string(kUnknown) : std::to_string(size);
  }
  return text;
}

std::string shapes_text(const std::vector<Shape>& shapes, std::string_view scalar, std::size_t longest) {
  std::string text;
  for (const auto& shape : shapes) {
    if (text.size() > longest) return text.append(kBetween).append(kCutOff);
    if (!text.empty()) text += kBetween;
    text += shape_text(shape, scalar);
  }
  return text;
}

std::string shapes_text(const OpShapes& shapes) {
  return shapes.others ? std::string(kOthers) : shapes_text(shapes.tensors, kScalar, kLongest);
}

std::optional<OpShapes> shapes_in_text(std::string_view text) {
  OpShapes shapes;
  shapes.others = text == kOthers;
  if (shapes.others) return shapes;
  while (!text.empty() && text != kCutOff) {
    auto shape = shape_in_text(take_until(text, kBetween));
    if (!shape) return std::nullopt;
    shapes.tensors.push_back(*std::move(shape));
  }
  return shapes;
}

}  // namespace roofprof
