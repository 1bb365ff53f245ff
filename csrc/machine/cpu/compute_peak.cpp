#include "machine/cpu/compute_peak.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/_int_mm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/phrases.h"
#include "machine/common/measurement.h"
#include "machine/cpu/environment.h"

namespace roofprof {

// The namespace has a name because the state of ComputeTrials, which other files know, has members of these types.
// NOLINTBEGIN(misc-use-internal-linkage)
namespace compute_trials {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

enum class Kind : std::uint8_t {
  product,
  transposed,   // the second matrix is stored as its transpose, as the weights of a linear layer are
  convolution,  // 3x3, as a product of M pixels with K = 9 x N weights; libraries have kernels of their own for it
};

struct ContractionShape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  Kind kind = Kind::product;

  std::int64_t operand_elements() const { return m * k + k * n + m * n; }
  double operations() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  std::string text() const {
    if (kind == Kind::convolution) {
      return "at::conv2d 3x3 over " + std::to_string(m) + " pixels, " + std::to_string(n) + " channels";
    }
    return std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) + " (MxKxN)" +
           (kind == Kind::transposed ? " transposed" : "");
  }
};

constexpr ContractionShape convolution(std::int64_t side, std::int64_t channels) {
  return {side * side, 9 * channels, channels, Kind::convolution};
}

// Ordered from cheap to costly: each call shows whether the next shape can be afforded. Small ones suit few cores and
// their caches, large ones many cores; the elongated ones suit libraries that block one dimension.
constexpr std::array kShapes = {
    ContractionShape{128, 128, 128},
    ContractionShape{256, 256, 256},
    convolution(32, 64),
    convolution(14, 256),
    ContractionShape{512, 512, 512},
    ContractionShape{512, 512, 512, Kind::transposed},
    ContractionShape{512, 2048, 512},
    convolution(56, 128),
    ContractionShape{1024, 1024, 1024},
    ContractionShape{2048, 512, 2048},
    ContractionShape{512, 2048, 2048},
    ContractionShape{1024, 1024, 1024, Kind::transposed},
    convolution(56, 256),
    ContractionShape{2048, 2048, 2048},
    ContractionShape{4096, 1024, 4096},
    ContractionShape{4096, 4096, 4096},
};

std::optional<at::ScalarType> scalar_type(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return at::kDouble;
    case DType::fp32:
      return at::kFloat;
    case DType::bf16:
      return at::kBFloat16;
    case DType::fp16:
      return at::kHalf;
    case DType::int8:
      return at::kChar;
    default:
      return std::nullopt;
  }
}

// Returns random values, as zeros would let hardware save power. They come from a separate generator, so that the
// program's next random number does not change. The same few values repeat, as making new ones takes longer than the
// product.
at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, at::Generator& generator) {
  constexpr std::int64_t kDistinct = 65521;  // a prime: no two rows begin alike
  const auto cpu = at::TensorOptions().device(at::kCPU);
  const double limit = type == at::kChar ? 127 : 1;
  const at::Tensor values = at::empty({kDistinct}, cpu.dtype(at::kFloat)).uniform_(-limit, limit, generator);
  const at::Tensor some = at::empty({kDistinct}, cpu.dtype(type)).copy_(values);
  at::Tensor result = at::empty(sizes, cpu.dtype(type));
  const at::Tensor flat = result.view(-1);
  for (std::int64_t begin = 0; begin < flat.numel(); begin += kDistinct) {
    const std::int64_t length = std::min(kDistinct, flat.numel() - begin);
    flat.narrow(0, begin, length).copy_(some.narrow(0, 0, length));
  }
  return result;
}

class Contraction {
 public:
  Contraction(const ContractionShape& shape, at::ScalarType type, at::Generator& generator)
      : operations_(shape.operations()), convolution_(shape.kind == Kind::convolution), integer_(type == at::kChar) {
    if (convolution_) {
      const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(shape.m))));
      left_ = random_tensor({1, shape.n, side, side}, type, generator);
      right_ = random_tensor({shape.n, shape.n, 3, 3}, type, generator);
      return;
    }
    left_ = random_tensor({shape.m, shape.k}, type, generator);
    right_ = shape.kind == Kind::transposed ? random_tensor({shape.n, shape.k}, type, generator).t()
                                            : random_tensor({shape.k, shape.n}, type, generator);
    result_ = at::empty({shape.m, shape.n}, left_.options().dtype(integer_ ? at::kInt : type));
  }

  // Operations per second of one call. Products go into memory that is there, so that page faults are not counted;
  // torch has no such form of a convolution.
  double rate() {
    const auto begin = Clock::now();
    if (convolution_) {
      result_ = at::conv2d(left_, right_, /*bias=*/{}, /*stride=*/{1}, /*padding=*/{1});
    } else if (integer_) {
      at::_int_mm_out(result_, left_, right_);
    } else {
      at::mm_out(result_, left_, right_);
    }
    return operations_ / std::max(Seconds(Clock::now() - begin).count(), 1e-9);
  }

  // The best call within a time: what disturbs the others is not the machine's limit.
  double best_rate(Seconds time) {
    const auto end = Clock::now() + time;
    double best = rate();
    while (Clock::now() < end) best = std::max(best, rate());
    return best;
  }

 private:
  double operations_;
  bool convolution_;
  bool integer_;
  at::Tensor left_;
  at::Tensor right_;
  at::Tensor result_;
};

std::string giga(double rate) { return short_text(rate / 1e9, 3); }

struct Rated {
  ContractionShape shape;
  double rate = 0;
};

}  // namespace compute_trials
// NOLINTEND(misc-use-internal-linkage)

using namespace compute_trials;

struct ComputeTrials::State {
  std::optional<at::ScalarType> type;
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/20240229);
  std::vector<Rated> shapes;  // best first
  std::string left_out;

  double rate_of(const ContractionShape& shape, Seconds time) {
    Contraction contraction(shape, *type, generator);
    contraction.rate();  // warm-up: kernels are chosen and compiled on the first call
    return contraction.best_rate(time);
  }

  void find_shapes(std::int64_t largest_bytes, double sane_rate) {
    constexpr Seconds kLongestSearch{0.6};
    constexpr Seconds kLongestCall{0.5};
    constexpr Seconds kTrial{0.02};
    constexpr std::size_t kKept = 2;  // a second, as trials are short and may have been disturbed
    const auto begin = Clock::now();
    double best = 0;
    for (const ContractionShape& shape : kShapes) {
      if (shape.kind == Kind::convolution && type == at::kChar) continue;  // torch has none on plain integers
      if (shape.operand_elements() > largest_bytes / static_cast<std::int64_t>(c10::elementSize(*type))) continue;
      // The rate so far predicts the time of a call: without a fast kernel, a large product can take minutes. The limit
      // leaves room for a busy machine, on which small products look a hundred times slower than they are.
      if (best > 0 && (shape.operations() / best > kLongestCall.count() || Clock::now() - begin > kLongestSearch)) {
        continue;
      }
      shapes.push_back({shape, rate_of(shape, kTrial)});
      best = std::max(best, shapes.back().rate);
    }
    std::ranges::stable_sort(shapes, std::greater(), &Rated::rate);
    shapes.resize(std::min(shapes.size(), kKept));
    if (shapes.empty()) {
      left_out = "there is not enough memory";
    } else if (best < sane_rate) {
      left_out = "torch reaches " + giga(best) + " GFLOP/s only, as without a kernel made for this CPU";
    }
  }
};

ComputeTrials::ComputeTrials(DType dtype, std::int64_t largest_bytes, double sane_rate)
    : state_(std::make_unique<State>()) {
  state_->type = scalar_type(dtype);
  if (!state_->type) {
    state_->left_out = "no matrix product on a CPU is known for it";
    return;
  }
  try {
    state_->find_shapes(largest_bytes, sane_rate);
  } catch (const c10::Error& error) {
    state_->left_out = "torch refuses: " + first_line_of(error.what_without_backtrace());
  }
}

ComputeTrials::~ComputeTrials() = default;
ComputeTrials::ComputeTrials(ComputeTrials&&) noexcept = default;
ComputeTrials& ComputeTrials::operator=(ComputeTrials&&) noexcept = default;

const std::string& ComputeTrials::left_out() const { return state_->left_out; }

double ComputeTrials::round() {
  constexpr Seconds kTime{0.04};
  double best = 0;
  for (auto& [shape, rate] : state_->shapes) {
    const double now = state_->rate_of(shape, kTime);
    rate = std::max(rate, now);
    best = std::max(best, now);
  }
  return best;
}

std::string ComputeTrials::method(int rounds) const {
  const ContractionShape& best = std::ranges::max(state_->shapes, {}, &Rated::rate).shape;
  const std::string function = best.kind == Kind::convolution ? ""
                               : *state_->type == at::kChar   ? "at::_int_mm "
                                                              : "at::mm ";
  return function + best.text() + ", " + torch_threads_text() + ", best of " + std::to_string(rounds);
}

}  // namespace roofprof
