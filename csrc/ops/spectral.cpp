// Fourier transforms. Operators built of them (fft_rfftn, stft, istft, fftshift) are transparent.

#include <cmath>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// 5 N log2 N for a complex transform of N points in all dimensions together, half of it for a real one, for each of
// the batch; then each component of the result is scaled where a normalisation is asked for. `real_side` has the
// sizes of the transform: half a spectrum is held on the other side.
void transform(const OpCall& call, const TensorDesc& real_side, double operations_per_point, Work& work) {
  double log2_of_points = 0;
  for (const auto dim : call.integers("dim")) {
    log2_of_points += std::log2(std::max<double>(1, static_cast<double>(real_side.size(static_cast<int>(dim)))));
  }
  const double operations = operations_per_point * log2_of_points * static_cast<double>(real_side.numel());
  const TensorDesc& result = call.result();
  add_operations(work, std::llround(operations), result.dtype);
  if (call.integer("normalization", 0) != 0) per_output(call, result.is_complex ? 2 : 1, work);
}

void complex_to_complex(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  transform(call, call.tensor(std::size_t{0}), 5, work);
}

void real_to_complex(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  transform(call, call.tensor(std::size_t{0}), 2.5, work);
}

void complex_to_real(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  transform(call, call.result(), 2.5, work);
}

constexpr const char* kSource = "FFTW's benchmark methodology, fftw.org/speed/method.html: a convention, not a count";
constexpr const char* kComplex = "5 N log2 N, N points over all dims; scaling 1 per component of the result";
constexpr const char* kReal = "2.5 N log2 N, N real points over all dims; scaling 1 per component of the result";

constexpr OpCost kSpectralCosts[] = {
    {"aten::_fft_c2c", complex_to_complex, 0, nullptr, "dim,normalization", kComplex, kSource},
    {"aten::_fft_r2c", real_to_complex, 0, nullptr, "dim,normalization", kReal, kSource},
    {"aten::_fft_c2r", complex_to_real, 0, nullptr, "dim,normalization", kReal, kSource},
};

}  // namespace

std::span<const OpCost> spectral_costs() { return kSpectralCosts; }

}  // namespace roofprof::ops
