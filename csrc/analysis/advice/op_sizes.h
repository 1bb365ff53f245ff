#pragma once
// The sizes that an op's shapes tell: channels of a convolution, rows and columns of a product.

#include <cstdint>
#include <optional>

#include "core/profile_data.h"

namespace roofprof {

struct ConvolutionSizes {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::int64_t weights = 0;
  bool pointwise = false;  // 1x1

  bool depthwise() const { return groups > 1 && groups == in_channels; }
};

// Empty for other ops, and where it is not clear whether the convolution is a transposed one.
std::optional<ConvolutionSizes> convolution_sizes(const OpBucket& bucket);

// rows x inner times the weight's inner x columns.
struct LinearSizes {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;

  std::int64_t weights() const { return saturating_multiply(inner, columns); }
};

// Of linear and addmm, whose second factor is a weight; empty for other ops.
std::optional<LinearSizes> linear_sizes(const OpBucket& bucket);

}  // namespace roofprof
