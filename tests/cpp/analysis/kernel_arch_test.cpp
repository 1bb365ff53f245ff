// Names as they stand in NVIDIA's libraries and in PyTorch, and what is said of kernels for older chips.

#include "analysis/kernel_arch.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::RunBuilder;
using testing::work_of;

TEST(KernelNames, TellTheArchitecture) {
  const std::map<int, std::vector<const char*>> kNames = {
      {30, {"kepler_sgemm_128x64_nn"}},
      {50, {"maxwell_scudnn_128x64_relu_interior_nn_v1"}},
      {60, {"pascal_sgemm_128x64_nn"}},
      {70, {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "cutlass_70_simt_sgemm"}},
      {75,
       {"turing_h1688gemm_128x128_ldg8_nn", "sm75_xmma_wgrad_indexed_f16f16", "cutlass_75_wmma_tensorop_h161616gemm"}},
      {80,
       {"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8",
        "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
        "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_32x6_nn_align8>",
        "_ZN7cutlass4gemm6kernelINS_4arch4Sm80EEE"}},
      {89, {"sm89_xmma_gemm_e4m3"}},
      {90,
       {"void hopper_gemm<float>(int)", "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16", "kernel_sm_90a_ws",
        "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_TNT", "void cutlass::device_kernel<cutlass::arch::Sm90, float>(int)"}},
      {100,
       {"cutlass3x_sm100_bstensorop_s128x256x64gemm", "kernel_sm_100f_ws",
        "_ZN7cutlass4gemm6kernelINS_4arch5Sm100EEE"}},
      {103, {"nvjet_sm103_hsh_64x8"}},
      {120, {"cutlass3x_sm120_simt_sgemm"}},
      {0,
       {"",
        "void gemv2T_kernel_val<int, int, float>(float)",
        "splitKreduce_kernel",
        "sgemm_largek_lds64",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
        "triton_poi_fused_relu_0",
        "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float>",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_TNT",
        "__internal_sm20_div_f64",
        "$sm20_rcp_rn_f32",
        "sm20_sqrt_rn_f32",
        "sm80_cuda_helper",
        "sm70_shfl_sync_idx",
        "prism80_gemm",
        "sm8_x",
        "sm8000_x",
        "asm80_x",
        "sm80x_y",
        "trampere_x",
        "cutlass_80_other"}}};
  for (const auto& [architecture, names] : kNames) {
    for (const auto* name : names) EXPECT_EQ(architecture_in_name(name).value_or(0), architecture) << name;
  }
}

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

TEST(OlderKernels, AKernelFromBeforeTensorCoresIsReported) {
  // The first case of the texts that roofprof grew from: a kernel for sm_50 on a card of 8.9.
  const testing::Derived report = with_kernel("maxwell_sgemm_128x64_nn", "8.9", DType::fp32, 990);
  ASSERT_EQ(report.coverage().notes.size(), 1);
  EXPECT_EQ(report.coverage().notes[0].text,
            "kernels for an older generation than this device's (sm_89): maxwell_sgemm_128x64_nn (built for sm_50, 99% "
            "of the kernels' time, launched by aten::matmul in head); the library chose them for this type, shape and "
            "layout, others may get newer ones");
  EXPECT_EQ(report.kernels().at(0).built_for, "sm_50");
}

TEST(OlderKernels, AreReportedOnlyWhereThatMatters) {
  EXPECT_EQ(older_notes(with_kernel("ampere_bf16_s16816gemm_x", "9.0", DType::bf16, 600)), 1);
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
