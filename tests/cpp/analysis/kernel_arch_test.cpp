// Names as they stand in NVIDIA's libraries and in PyTorch, and what is said of kernels for older chips.

#include "analysis/kernel_arch.h"

#include <gtest/gtest.h>

#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::RunBuilder;
using testing::work_of;

struct Name {
  const char* kernel;
  int architecture;  // 0: it tells none
};

class KernelNames : public ::testing::TestWithParam<Name> {};

TEST_P(KernelNames, TellTheArchitecture) {
  EXPECT_EQ(architecture_in_name(GetParam().kernel).value_or(0), GetParam().architecture) << GetParam().kernel;
}

INSTANTIATE_TEST_SUITE_P(
    Generations, KernelNames,
    ::testing::Values(Name{"maxwell_scudnn_128x64_relu_interior_nn_v1", 50}, Name{"maxwell_sgemm_128x64_nn", 50},
                      Name{"kepler_sgemm_128x64_nn", 30}, Name{"pascal_sgemm_128x64_nn", 60},
                      Name{"volta_sgemm_128x64_nn", 70}, Name{"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", 70},
                      Name{"volta_h884gemm_64x128_ldg8_nn", 70}, Name{"turing_h1688gemm_128x128_ldg8_nn", 75},
                      Name{"turing_fp16_s1688gemm_fp16_128x128_ldg8_relu_f2f_tn", 75},
                      Name{"ampere_sgemm_64x32_sliced1x4_nn", 80},
                      Name{"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", 80},
                      Name{"ampere_scudnn_128x64_relu_small_nn_v1", 80}, Name{"void hopper_gemm<float>(int)", 90}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, KernelNames,
    ::testing::Values(Name{"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8", 80},
                      Name{"sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", 90},
                      Name{"sm75_xmma_wgrad_indexed_f16f16", 75}, Name{"sm86_xmma_dgrad_x", 86},
                      Name{"sm89_xmma_gemm_e4m3", 89}, Name{"cutlass3x_sm90_tensorop_s64x128x16gemm_bf16", 90},
                      Name{"cutlass3x_sm100_bstensorop_s128x256x64gemm", 100}, Name{"cutlass3x_sm120_simt_sgemm", 120},
                      Name{"nvjet_sm90_tst_128x256_64x4_1x2_h_bz_TNT", 90}, Name{"nvjet_sm103_hsh_64x8", 103},
                      Name{"kernel_sm_90a_ws", 90}, Name{"kernel_sm_100f_ws", 100},
                      Name{"fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", 80},
                      Name{"void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_32x6_nn_align8>", 80},
                      Name{"cutlass_75_wmma_tensorop_h161616gemm", 75}, Name{"cutlass_70_simt_sgemm", 70},
                      Name{"cutlass_80_tensorop_s1688gemm_forwardCompat_128x64", 80},
                      Name{"_ZN7cutlass4gemm6kernelINS_4arch4Sm80EEE", 80},
                      Name{"_ZN7cutlass4gemm6kernelINS_4arch5Sm100EEE", 100},
                      Name{"void cutlass::device_kernel<cutlass::arch::Sm90, float>(int)", 90}));

INSTANTIATE_TEST_SUITE_P(
    None, KernelNames,
    ::testing::Values(Name{"", 0}, Name{"void gemv2T_kernel_val<int, int, float>(float)", 0},
                      Name{"void gemvNSP_kernel<float>", 0}, Name{"splitKreduce_kernel", 0}, Name{"dot_kernel", 0},
                      Name{"sgemm_largek_lds64", 0},
                      Name{"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", 0},
                      Name{"triton_poi_fused_relu_0", 0}, Name{"void cudnn::bn_fw_inf_1C11_kernel_NCHW<float>", 0},
                      Name{"nvjet_hsh_128x256_64x4_1x2_h_bz_TNT", 0}, Name{"nvjet_tst_64x8", 0},
                      Name{"__internal_sm20_div_f64", 0}, Name{"$sm20_rcp_rn_f32", 0},
                      Name{"sm20_dblrcp_rn_slowpath", 0}, Name{"sm20_sqrt_rn_f32", 0}, Name{"sm80_cuda_helper", 0},
                      Name{"sm70_shfl_sync_idx", 0}, Name{"prism80_gemm", 0}, Name{"sm8_x", 0}, Name{"sm8000_x", 0},
                      Name{"asm80_x", 0}, Name{"sm80x_y", 0}, Name{"trampere_x", 0}, Name{"cutlass_80_other", 0},
                      Name{"softmax_warp_forward", 0}));

TEST(KernelArch, ReadsTheDevices) {
  EXPECT_EQ(architecture_of_device("8.9"), 89);
  EXPECT_EQ(architecture_of_device("12.0"), 120);
  for (const char* text : {"", "9", "9.", ".9", "a.b", "8.10", "100.0"}) {
    EXPECT_EQ(architecture_of_device(text), std::nullopt) << text;
  }
}

// One module with one op in a dtype, whose kernel takes some of the 1,000 ns of all kernels.
testing::Derived with_kernel(const std::string& name, const std::string& capability, DType dtype, std::int64_t ns) {
  DeviceProfileBuilder builder;
  builder.data.device.make().compute_capability = capability;
  builder.data.roofs = {};
  const auto head = builder.module("head", "Linear");
  const auto op = builder.op_index("aten::matmul", head, work_of(1'000, 10, 0, dtype));
  builder.data.counts.ops.back().dtype = dtype;
  RunBuilder run;
  run.kernel(name, run.owner(head, "aten::matmul", op), 0, ns);
  run.kernel("triton_rest", run.owner(kModel), 1'000, 2'000 - ns);
  return builder.derived_of({run.run});
}

std::size_t older_notes(const testing::Derived& report) {
  std::size_t count = 0;
  for (const auto& note : report.coverage().notes) count += note.code == "older-kernels" ? 1 : 0;
  return count;
}

TEST(OlderKernels, AKernelFromBeforeTensorCoresIsTold) {
  // The first case of the texts that roofprof grew from: a kernel for sm_50 on a card of 8.9.
  const testing::Derived report = with_kernel("maxwell_sgemm_128x64_nn", "8.9", DType::fp32, 990);
  ASSERT_EQ(report.coverage().notes.size(), 1);
  EXPECT_EQ(report.coverage().notes[0].text,
            "kernels for an older generation than this device's (sm_89): maxwell_sgemm_128x64_nn (built for sm_50, 99% "
            "of the kernels' time, launched by aten::matmul in head); the library chose them for this type, shape and "
            "layout, others may get newer ones");
  EXPECT_EQ(report.kernels().at(0).built_for, "sm_50");
}

TEST(OlderKernels, AreToldOnlyWhereThatMatters) {
  EXPECT_EQ(older_notes(with_kernel("ampere_bf16_s16816gemm_x", "9.0", DType::bf16, 600)), 1);
  EXPECT_EQ(older_notes(with_kernel("sm80_xmma_gemm_tf32", "9.0", DType::tf32, 600)), 1);
  // Of the same generation; the usual choice for fp32 on CUDA cores; little time; an unknown device; no name.
  EXPECT_EQ(older_notes(with_kernel("sm80_xmma_gemm_f16", "8.9", DType::fp16, 600)), 0);
  EXPECT_EQ(older_notes(with_kernel("ampere_sgemm_64x32_nn", "9.0", DType::fp32, 600)), 0);
  EXPECT_EQ(older_notes(with_kernel("ampere_bf16_s16816gemm_x", "9.0", DType::bf16, 49)), 0);
  EXPECT_EQ(older_notes(with_kernel("ampere_bf16_s16816gemm_x", "9.0", DType::bf16, 50)), 1);
  EXPECT_EQ(older_notes(with_kernel("maxwell_sgemm_128x64_nn", "", DType::fp32, 600)), 0);
  EXPECT_EQ(older_notes(with_kernel("gemv2T_kernel", "9.0", DType::bf16, 600)), 0);
  // Nor one for a newer generation, which could not run.
  EXPECT_EQ(older_notes(with_kernel("sm90_xmma_gemm", "8.0", DType::bf16, 600)), 0);
}

}  // namespace
}  // namespace roofprof
