#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

const std::vector<CostCase> kCases = {
    // 8 points: 5 x 8 x 3.
    {Call("aten::_fft_c2c")
         .in("self", fp32, {8})
         .complex()
         .scalar("dim", {0})
         .scalar("normalization", 0)
         .out(fp32, {8})
         .complex(),
     {.flops = 120, .read_bytes = 64, .write_bytes = 64}},
    // 3 transforms of 4 x 8 points: 5 x 32 x 5 each; and both components of 96 results scaled.
    {Call("aten::_fft_c2c")
         .in("self", fp64, {3, 4, 8})
         .complex()
         .scalar("dim", {1, 2})
         .scalar("normalization", 2)
         .out(fp64, {3, 4, 8})
         .complex(),
     {.flops = 3 * 800 + 2 * 96, .read_bytes = 96 * 16, .write_bytes = 96 * 16}},
    // 6 points: 30 x 2.585.
    {Call("aten::_fft_c2c")
         .in("self", fp32, {6})
         .complex()
         .scalar("dim", {0})
         .scalar("normalization", 0)
         .out(fp32, {6})
         .complex(),
     {.flops = 78, .read_bytes = 48, .write_bytes = 48}},
    // 2 real transforms of 8 points, half of the spectrum: 2.5 x 8 x 3 each.
    {Call("aten::_fft_r2c")
         .in("self", fp32, {2, 8})
         .scalar("dim", {1})
         .scalar("normalization", 0)
         .out(fp32, {2, 5})
         .complex(),
     {.flops = 120, .read_bytes = 64, .write_bytes = 80}},
    {Call("aten::_fft_c2r")
         .in("self", fp32, {2, 5})
         .complex()
         .scalar("dim", {1})
         .scalar("normalization", 1)
         .out(fp32, {2, 8}),
     {.flops = 120 + 16, .read_bytes = 80, .write_bytes = 64}},
};

TEST(Spectral, CostsAreAsWrittenOut) { check_family(spectral_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops::testing
