#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// One process of four, with 2 x 3 floats (24 bytes) of its own.
constexpr std::int64_t kOwn = 24;
constexpr std::int64_t kAll = 4 * kOwn;

const std::vector<CostCase> kCommunicationCases = {
    {Call("c10d::check_for_nan(tensor fp32 2x3)"), {.flops = 6}},
    {Call("c10d::allreduce_(tensors [fp32 2x3; fp32 5])"), {.read = 44, .write = 44}},
    {Call("c10d::reduce_(tensors [fp32 2x3; fp32 5])"), {.read = 44}},
    {Call("c10d::broadcast_(tensors [fp32 2x3; fp32 5])"), {.write = 44}},
    // op(output, input): a part of 24 bytes on one side, all four on the other.
    {Call("c10d::allgather_(output fp32 8x3, input fp32 2x3)"), {.read = kOwn, .write = kAll}},
    {Call("c10d::scatter_(output fp32 2x3, input fp32 8x3)"), {.read = kAll, .write = kOwn}},
    {Call("_c10d_functional::all_reduce(input fp32 2x3) -> fp32 2x3"), {.read = kOwn, .write = kOwn}},
    {Call("_c10d_functional::all_reduce_(input fp32 2x3 written) -> fp32 2x3 written"), {.read = kOwn, .write = kOwn}},
    {Call("_c10d_functional::all_gather_into_tensor(input fp32 2x3) -> fp32 8x3"), {.read = kOwn, .write = kAll}},
    {Call("_c10d_functional::reduce_scatter_tensor_out(input fp32 8x3, out fp32 2x3 written) -> fp32 2x3 written"),
     {.read = kAll, .write = kOwn}},
    {Call("_c10d_functional::isend(input fp32 2x3) -> fp32 2x3"), {.read = kOwn}},
    {Call("_c10d_functional::irecv(input fp32 2x3) -> fp32 2x3"), {.write = kOwn}},
    {Call("fsdp::all_gather_copy_in(all_gather_inputs [fp32 6], all_gather_output fp32 24)"),
     {.read = kOwn, .write = kOwn}},
    {Call("fsdp::split_with_sizes_copy(all_gather_output fp32 4x6, out [fp32 4x4; fp32 4x2] written)"),
     {.read = kAll, .write = kAll}},
};

TEST(Communication, CostsAreAsWrittenOut) { check_family(communication_costs(), kCommunicationCases); }

}  // namespace
}  // namespace roofprof::ops
