#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

const std::vector<CostCase> kSpectralCases = {
    // 8 points: 5 x 8 x 3.
    {Call("aten::_fft_c2c(self fp32 8 complex, dim=[0], normalization=0) -> fp32 8 complex"), {.flops = 120}},
    // 3 transforms of 4 x 8 points: 5 x 32 x 5 each; and both components of 96 results scaled.
    {Call("aten::_fft_c2c(self fp64 3x4x8 complex, dim=[1,2], normalization=2) -> fp64 3x4x8 complex"),
     {.flops = 3 * 800 + 2 * 96}},
    // 6 points: 30 x 2.585.
    {Call("aten::_fft_c2c(self fp32 6 complex, dim=[0], normalization=0) -> fp32 6 complex"), {.flops = 78}},
    // 2 real transforms of 8 points, half of the spectrum: 2.5 x 8 x 3 each.
    {Call("aten::_fft_r2c(self fp32 2x8, dim=[1], normalization=0) -> fp32 2x5 complex"), {.flops = 120}},
    {Call("aten::_fft_c2r(self fp32 2x5 complex, dim=[1], normalization=1) -> fp32 2x8"), {.flops = 120 + 16}},
};

TEST(Spectral, CostsAreAsWrittenOut) { check_family(spectral_costs(), kSpectralCases); }

}  // namespace
}  // namespace roofprof::ops::testing
