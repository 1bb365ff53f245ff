#include "join/counter_join.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

// Names as the libraries that torch 2.15 brings have them.
TEST(KernelSerialisation, KernelsThatWaitForOtherDevicesAreKnown) {
  for (const char* name : {
           "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
           "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
           "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
           "ncclSymkDevKernel_ReduceScatter_TmaLD_sum_f32(ncclSymkDevWorkArgs4K)",
           "nvshmemi_proxy_kernel",
           "c10d::nccl_extension::lsa_put_signal_kernel(void**, void**, int)",
           "void (anonymous namespace)::two_shot_all_reduce_kernel<float, 16, 8>(float**)",
           "void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*)",
           "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)",
       }) {
    EXPECT_TRUE(must_not_be_serialised(name)) << name;
  }
}

TEST(KernelSerialisation, OthersMayRunAlone) {
  for (const char* name : {
           "ampere_sgemm_128x64_tn",
           "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
           "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
           "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<>()",
           "triton_red_fused_all_0",
           "",
       }) {
    EXPECT_FALSE(must_not_be_serialised(name)) << name;
  }
}

DeviceTrace traced(const std::string& name, KernelKind kind = KernelKind::kernel, std::uint64_t graph_node = 0) {
  DeviceTrace trace;
  trace.names = {"gemm", name};
  trace.records.resize(2);
  trace.records[1].kind = kind;
  trace.records[1].name = 1;
  trace.records[1].graph_node = graph_node;
  return trace;
}

TEST(KernelSerialisation, TheReasonNamesTheKernelAndWhatToDo) {
  EXPECT_EQ(why_not_kernel_by_kernel(traced("relu")), "");
  EXPECT_EQ(why_not_kernel_by_kernel(traced("ncclDevKernel_SendRecv")),
            "counters kernel by kernel were left out, as ncclDevKernel_SendRecv waits for other devices and would hang "
            "when it is run alone: count by module (counters=\"modules\"), or not at all (counters=\"off\")");
  EXPECT_EQ(why_not_kernel_by_kernel(traced("ncclDevKernel_SendRecv", KernelKind::copy)), "");  // has no name
}

TEST(KernelSerialisation, GraphsAreNotCountedKernelByKernel) {
  const std::string why = why_not_kernel_by_kernel(traced("relu", KernelKind::kernel, 7));
  EXPECT_NE(why.find("CUDA graphs"), std::string::npos) << why;
  EXPECT_NE(why.find("counters=\"modules\""), std::string::npos) << why;
}

}  // namespace
}  // namespace roofprof
