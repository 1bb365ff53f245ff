#include "machine/gpu/settings.h"

#include <array>
#include <cstddef>
#include <utility>

namespace roofprof {
namespace {

using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

// Ordered from general to special: an entry with the precision NONE inherits from the entry before.
using Settings = std::array<std::pair<Float32Backend, Float32Op>, 3>;

constexpr Settings settings_of(Float32Backend backend) {
  return {{{Float32Backend::GENERIC, Float32Op::ALL}, {backend, Float32Op::ALL}, {backend, Float32Op::MATMUL}}};
}

Float32Precision get(const Settings& settings, std::size_t index) {
  return at::globalContext().float32Precision(settings[index].first, settings[index].second);
}

void set(const Settings& settings, std::size_t index, Float32Precision precision) {
  at::globalContext().setFloat32Precision(settings[index].first, settings[index].second, precision);
}

// Returns what was set in the entry itself. torch reports the precision that applies, which may be inherited: then it
// follows the entry before.
Float32Precision own(const Settings& settings, std::size_t index) {
  const Float32Precision here = get(settings, index);
  if (index == 0) return here;
  const Float32Precision before = own(settings, index - 1);
  set(settings, index - 1, here == Float32Precision::IEEE ? Float32Precision::TF32 : Float32Precision::IEEE);
  const bool inherited = get(settings, index) != here;
  set(settings, index - 1, before);
  return inherited ? Float32Precision::NONE : here;
}

constexpr Settings kCuda = settings_of(Float32Backend::CUDA);
constexpr Settings kMkldnn = settings_of(Float32Backend::MKLDNN);
constexpr std::size_t kMatmul = 2;

const char* name_of_legacy(at::Float32MatmulPrecision precision) {
  switch (precision) {
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
    default:
      return "highest";
  }
}

}  // namespace

Fp32Products::Fp32Products(bool allow_tf32) : cuda_(own(kCuda, kMatmul)), mkldnn_(own(kMkldnn, kMatmul)) {
  // torch tells its old flag only where the new precisions do not speak against it.
  set(kCuda, kMatmul, Float32Precision::IEEE);
  set(kMkldnn, kMatmul, Float32Precision::IEEE);
  legacy_ = at::globalContext().float32MatmulPrecision();
  set(kMkldnn, kMatmul, mkldnn_);
  at::globalContext().setAllowTF32CuBLAS(allow_tf32);
  // Without tf32 that inherits; what it inherits may be tf32.
  set(kCuda, kMatmul, allow_tf32 ? Float32Precision::TF32 : Float32Precision::IEEE);
}

Fp32Products::~Fp32Products() {
  at::globalContext().setFloat32MatmulPrecision(name_of_legacy(legacy_));  // sets the new precisions as well
  set(kCuda, kMatmul, cuda_);
  set(kMkldnn, kMatmul, mkldnn_);
}

AnyAlgorithm::AnyAlgorithm()
    : deterministic_(at::globalContext().deterministicAlgorithms()),
      warn_only_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
  at::globalContext().setDeterministicAlgorithms(false, false);
}

AnyAlgorithm::~AnyAlgorithm() { at::globalContext().setDeterministicAlgorithms(deterministic_, warn_only_); }

}  // namespace roofprof
