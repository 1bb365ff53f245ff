#include "roofs/cpu/compute_peak.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/_int_mm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "roofs/common/measurement.h"
#include "roofs/cpu/torch_threads.h"

namespace roofprof {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

enum class Kind : std::uint8_t {
  product,
  transposed,   // the second matrix is stored as its transpose, as the weights of a linear layer are
  convolution,  // 3x3, as a product of M pixels with K = 9 x N weights; libraries have kernels of their own for it
};

struct Shape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  Kind kind = Kind::product;

  double operations() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  std::string text() const {
    if (kind == Kind::convolution) {
      return "at::conv2d 3x3 over " + std::to_string(m) + " pixels, " + std::to_string(n) + " channels";
    }
    return std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) + " (MxKxN)" +
           (kind == Kind::transposed ? " transposed" : "");
  }
};

constexpr Shape convolution(std::int64_t side, std::int64_t channels) {
  return {side * side, 9 * channels, channels, Kind::convolution};
}

// From cheap to costly: each call tells whether the next shape can be afforded. Small ones suit few cores and their
// caches, large ones many cores; the elongated ones suit libraries that block one dimension.
constexpr std::array kShapes = {
    Shape{128, 128, 128},    Shape{256, 256, 256},    convolution(32, 64),
    convolution(14, 256),    Shape{512, 512, 512},    Shape{512, 512, 512, Kind::transposed},
    Shape{512, 2048, 512},   convolution(56, 128),    Shape{1024, 1024, 1024},
    Shape{2048, 512, 2048},  Shape{512, 2048, 2048},  Shape{1024, 1024, 1024, Kind::transposed},
    convolution(56, 256),    Shape{2048, 2048, 2048}, Shape{4096, 1024, 4096},
    Shape{4096, 4096, 4096},
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

// Random values, as zeros would let hardware save power; from a generator of its own, so that the program's next
// random number stays what it was.
at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, at::Generator& generator) {
  const auto cpu = at::TensorOptions().device(at::kCPU);
  const double limit = type == at::kChar ? 127 : 1;
  const at::Tensor values = at::empty(sizes, cpu.dtype(at::kFloat)).uniform_(-limit, limit, generator);
  return at::empty(sizes, cpu.dtype(type)).copy_(values);
}

class Contraction {
 public:
  Contraction(const Shape& shape, at::ScalarType type, at::Generator& generator)
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

std::string giga(double rate) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", rate / 1e9);
  return text.data();
}

ComputePeak measure(at::ScalarType type, Seconds budget, double sane_rate) {
  const auto begin = Clock::now();
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/20240229);
  constexpr Seconds kLongestCall{0.5};
  constexpr Seconds kTrial{0.02};

  Shape best_shape;
  double best = 0;
  for (const Shape& shape : kShapes) {
    // Half of the budget finds the shape, half repeats it. The rate so far tells what a call will take: where there is
    // no fast kernel a large product can take minutes. The limit leaves room for a busy machine, on which small
    // products look a hundred times slower than they are.
    if (shape.kind == Kind::convolution && type == at::kChar) continue;  // torch has none on plain integers
    if (best > 0 && (shape.operations() / best > kLongestCall.count() || Clock::now() - begin > budget / 2)) continue;
    Contraction contraction(shape, type, generator);
    contraction.rate();  // warm-up: kernels are chosen and compiled on the first call
    const double rate = contraction.best_rate(kTrial);
    if (rate > best) {
      best = rate;
      best_shape = shape;
    }
  }

  if (best < sane_rate) {
    return ComputePeak::none("torch reaches " + giga(best) + " GFLOP/s only, as without a kernel made for this CPU");
  }

  Contraction contraction(best_shape, type, generator);
  contraction.rate();
  constexpr int kRepeats = 7;
  constexpr int kFewestRepeats = 3;
  double worst = best;
  int repeats = 1;  // the trial above was one
  for (; repeats < kRepeats && (repeats < kFewestRepeats || Clock::now() - begin < budget); ++repeats) {
    const double rate = contraction.best_rate(budget / 2 / kRepeats);
    best = std::max(best, rate);
    worst = std::min(worst, rate);
  }
  const std::string function = best_shape.kind == Kind::convolution ? ""
                               : type == at::kChar                  ? "at::_int_mm "
                                                                    : "at::mm ";
  return {.operations_per_second = best,
          .spread = (best - worst) / best,
          .method = function + best_shape.text() + ", " + torch_threads_text() + ", best of " + std::to_string(repeats),
          .left_out = {}};
}

}  // namespace

ComputePeak measure_compute_peak(DType dtype, std::chrono::duration<double> budget, double sane_rate) {
  const auto type = scalar_type(dtype);
  if (!type) return ComputePeak::none("no matrix product on a CPU is known for it");
  try {
    return measure(*type, budget, sane_rate);
  } catch (const c10::Error& error) {
    return ComputePeak::none("torch refuses: " + first_line_of(error.what_without_backtrace()));
  }
}

}  // namespace roofprof
