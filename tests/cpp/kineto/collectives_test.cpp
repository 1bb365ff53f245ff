// Collectives of traces written by hand: what each is about follows from its record, and its time from its kernel.

#include "kineto/collectives.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/ranks/collectives.h"
#include "kineto/trace_builder.h"

namespace roofprof {
namespace {

using testing::derived_of;
using testing::kTraceBeginUs;
using testing::note_of;
using testing::observed_of;
using testing::TraceText;

constexpr const char* kGroup4 = R"("Group size": 4, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]")";
constexpr const char* kRing = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

std::string recorded(const std::string& name, const std::string& dtype, std::int64_t in, std::int64_t out,
                     const std::string& more = kGroup4) {
  return R"("Collective name": ")" + name + R"(", "dtype": ")" + dtype + R"(", "In msg nelems": )" +
         std::to_string(in) + R"(, "Out msg nelems": )" + std::to_string(out) + (more.empty() ? "" : ", " + more);
}

// A collective that an op calls at that time, with a launch of that correlation.
TraceText& add_call(TraceText& trace, const std::string& op, const std::string& args, std::int64_t correlation,
                    std::int64_t begin) {
  trace.event("cpu_op", op, begin, 50).event("cpu_op", "record_param_comms", begin + 10, 30, args);
  return trace.launch(correlation, begin + 20);
}

// A row that a test expects alone.
Collective row_of(const TraceText& trace) {
  const auto rows = collective_rows(derived_of(trace).data());
  EXPECT_EQ(rows.size(), 1);
  return rows.empty() ? Collective{} : rows[0];
}

TEST(KinetoCollectives, BytesGroupAndAlgorithmComeFromRecordAndKernel) {
  TraceText trace;
  trace.fact(R"("distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4})");
  add_call(trace, "c10d::allreduce_", recorded("allreduce", "BFloat16", 1000, 1000), 1, 0);
  trace.op("aten::mm", 60, 20).launch(2, 65).kernel(kRing, 1, 100, 200, 20).kernel("gemm", 2, 150, 70, 7);
  const auto row = row_of(trace);
  EXPECT_EQ(row.name, "all_reduce");
  EXPECT_EQ(row.op, "c10d::allreduce_");
  EXPECT_EQ(row.group, "0");
  EXPECT_EQ(row.backend, "nccl");
  EXPECT_EQ(row.ranks, 4);
  EXPECT_EQ(row.calls, 1);
  EXPECT_EQ(row.dtype, DType::bf16);
  EXPECT_EQ(row.bytes, 2'000);
  EXPECT_EQ(row.wire_bytes, 3'000);  // 2 (n - 1) / n
  EXPECT_EQ(row.algorithm, "RING LL");
  EXPECT_EQ(row.time_ns, 200'000);
  EXPECT_EQ(row.exposed_ns, 130'000);
  EXPECT_DOUBLE_EQ(*row.algorithm_bandwidth, 2'000 / 200e-6);
  EXPECT_DOUBLE_EQ(*row.bus_bandwidth, 1.5 * 2'000 / 200e-6);
  const auto call = observed_of(trace).timed.at(0).collectives.calls.at(0);
  EXPECT_EQ(call.begin_ns, (kTraceBeginUs + 100) * 1000);
  EXPECT_EQ(call.end_ns, (kTraceBeginUs + 300) * 1000);
}

TEST(KinetoCollectives, EachKindHasTheSizeOfNcclTests) {
  struct Kind {
    std::string op, record;
    std::int64_t in, out, bytes;
    double factor;
  };
  for (const auto& kind :
       {Kind{"c10d::_allgather_base_", "_allgather_base", 10, 40, 160, 0.75},
        Kind{"c10d::_reduce_scatter_base_", "_reduce_scatter_base", 40, 10, 160, 0.75},
        Kind{"c10d::alltoall_base_", "all_to_allv", 40, 40, 160, 0.75},
        Kind{"c10d::broadcast_", "broadcast", 10, 10, 40, 1}, Kind{"c10d::reduce_", "reduce", 10, 10, 40, 1},
        Kind{"c10d::send", "send", 10, 10, 40, 1}, Kind{"c10d::recv_", "recv", 10, 10, 40, 1},
        Kind{"c10d::gather_", "gather", 10, 40, 160, 0.75}, Kind{"c10d::scatter_", "scatter", 40, 10, 160, 0.75}}) {
    TraceText trace;
    add_call(trace, kind.op, recorded(kind.record, "Float", kind.in, kind.out), 1, 0);
    trace.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 1, 100, 10);
    const auto row = row_of(trace);
    EXPECT_EQ(row.bytes, kind.bytes) << kind.op;
    EXPECT_EQ(row.wire_bytes, std::llround(kind.factor * static_cast<double>(kind.bytes))) << kind.op;
    EXPECT_EQ(row.algorithm, "SendRecv");
    const bool of_two = kind.record == "send" || kind.record == "recv";
    EXPECT_EQ(observed_of(trace).timed.at(0).collectives.calls.at(0).sequence, of_two ? -1 : 0) << kind.op;
  }
}

// Traces of 2022 have a record without arguments, and no operator around it.
TEST(KinetoCollectives, OldTracesTellSizesByRangesAndNoGroup) {
  TraceText trace;
  trace.fact(R"("distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8})");
  trace.event("cpu_op", "record_param_comms", 0, 50)
      .event("user_annotation", "nccl:all_to_all", 10, 30, R"("Input Dims": [[8, 1024]], "Input type": ["float"])")
      .launch(1, 20)
      .kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 1, 100, 10)
      .event("cpu_op", "record_param_comms", 200, 5, R"("Collective name": "wait")");
  const auto row = row_of(trace);
  EXPECT_EQ(row.name, "all_to_all");
  EXPECT_EQ(row.bytes, 8 * 1024 * 4);
  EXPECT_EQ(row.ranks, 0);
  EXPECT_FALSE(row.known_ranks());
  EXPECT_FALSE(row.wire_bytes);
  EXPECT_FALSE(row.bus_bandwidth);
  EXPECT_DOUBLE_EQ(*row.algorithm_bandwidth, 8 * 1024 * 4 / 10e-6);
  EXPECT_NE(
      note_of(derived_of(trace).data().notes, "trace-lacks").find("in which group 1 call of collectives was made"),
      std::string::npos);
}

TEST(KinetoCollectives, UnevenPartsHaveNoBusBandwidth) {
  TraceText trace;
  const std::string splits = std::string(R"("In split size": "[3, 1, 3, 3]", "Out split size": "[]", )") + kGroup4;
  add_call(trace, "c10d::alltoall_base_", recorded("all_to_allv", "Float", 40, 40, splits), 1, 0);
  trace.kernel("ncclDevKernel_SendRecv(x)", 1, 100, 10);
  const auto row = row_of(trace);
  EXPECT_EQ(row.bytes, 160);
  EXPECT_TRUE(row.algorithm_bandwidth);
  EXPECT_FALSE(row.wire_bytes);
  EXPECT_FALSE(row.bus_bandwidth);
}

// One kernel does what a coalescing manager collected: no op launches it. It does not compute.
TEST(KinetoCollectives, CoalescedCallsHaveNoTimesAndTheirKernelARowOfItsOwn) {
  TraceText trace;
  trace.event("cpu_op", "c10d::allreduce_", 0, 50)
      .event("cpu_op", "record_param_comms", 10, 30, recorded("allreduce", "Float", 10, 10))
      .launch(1, 100)
      .kernel("ncclDevKernel_AllReduce_Sum_f32_TREE_LL128(x)", 1, 110, 40);
  const auto derived = derived_of(trace);
  const auto row = row_of(trace);
  EXPECT_FALSE(row.time_ns);
  EXPECT_EQ(row.bytes, 40);
  EXPECT_NE(note_of(derived.data().notes, "collectives-untimed").find("1 call of collectives has no times"),
            std::string::npos);
  const auto kernel = std::ranges::find(derived.data().counts.ops, "nccl:AllReduce", &OpBucket::op);
  ASSERT_NE(kernel, derived.data().counts.ops.end());
  EXPECT_FALSE(kernel->costed);
  EXPECT_EQ(kernel->time_ns, 40'000);
  EXPECT_TRUE(is_communication(kernel->op));
}

// Kernels that are in no row hide communication all the same; copies do not compute.
TEST(KinetoCollectives, WhatAnyKernelHidesIsNotExposed) {
  TraceText trace;
  add_call(trace, "c10d::allreduce_", recorded("allreduce", "Float", 10, 10), 1, 0);
  trace.kernel(kRing, 1, 100, 100, 20).kernel("from before", 77, 120, 30, 7).copy("Memcpy DtoH", 78, 160, 20, 8);
  EXPECT_EQ(row_of(trace).exposed_ns, 70'000);
}

// gloo does its work on threads of its own, after the op has returned.
TEST(KinetoCollectives, OnACpuACallLastsUntilGlooIsDone) {
  TraceText trace;
  trace.fact(R"("distributedInfo": {"backend": "gloo", "rank": 1, "world_size": 2, "pg_config": [{"pg_name": "0", )"
             R"("backend_config": "cpu:gloo,cuda:nccl", "pg_size": 2, "ranks": [0, 1]}]})");
  trace.fact(R"("baseTimeNanoseconds": 5000000000)");
  trace.event("cpu_op", "c10d::allreduce_", 10, 10, R"("Input Dims": [[[1000]]], "Input type": ["TensorList"])")
      .op("aten::mm", 30, 30)
      .event("user_annotation", "gloo:all_reduce", 15, 100, R"("Input Dims": [[1000]], "Input type": ["float"])", "9");
  const auto row = row_of(trace);
  EXPECT_EQ(row.group, "0");
  EXPECT_EQ(row.backend, "gloo");
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(row.time_ns, 105'000);
  EXPECT_EQ(row.exposed_ns, 75'000);
  EXPECT_FALSE(row.algorithm);
  const auto& call = observed_of(trace).timed.at(0).collectives.calls.at(0);
  EXPECT_EQ(call.begin_ns, 5'000'000'000 + (kTraceBeginUs + 10) * 1000);
}

TEST(KinetoCollectives, NumbersOfCallsAreThoseOfTheRecordOrTheOrderInTheGroup) {
  TraceText trace;
  const std::string numbered = std::string(R"("Seq": 41, )") + kGroup4;
  const std::string other = R"("Group size": 2, "Process Group Name": "7", "Process Group Ranks": "[0, 2]")";
  add_call(trace, "c10d::allreduce_", recorded("allreduce", "Float", 10, 10, numbered), 1, 0);
  add_call(trace, "c10d::allreduce_", recorded("allreduce", "Float", 10, 10, other), 2, 100);
  add_call(trace, "c10d::allreduce_", recorded("allreduce", "Float", 10, 10, other), 3, 200);
  trace.kernel(kRing, 1, 300, 5).kernel(kRing, 2, 310, 5).kernel(kRing, 3, 320, 5);
  const auto pass = observed_of(trace).timed.at(0).collectives;
  ASSERT_EQ(pass.calls.size(), 3);
  EXPECT_EQ(pass.calls[0].sequence, 41);
  EXPECT_EQ(pass.calls[1].sequence, 0);
  EXPECT_EQ(pass.calls[2].sequence, 1);
  ASSERT_EQ(pass.groups.size(), 2);
  EXPECT_EQ(pass.groups[1].members, "[0, 2]");
}

}  // namespace
}  // namespace roofprof
