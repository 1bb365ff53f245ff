#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// One process of four, with 2 x 3 floats (24 bytes) of its own.
constexpr std::int64_t kOwn = 24;
constexpr std::int64_t kAll = 4 * kOwn;

CostCase in_place(const char* op, std::int64_t read, std::int64_t written) {
  return {Call(op, "(tensors [fp32 2x3; fp32 5])"), {.read = read, .write = written}};
}

// op(output, input): a part of 24 bytes on one side, all four on the other.
CostCase gathering(const char* op) {
  return {Call(op, "(output fp32 8x3, input fp32 2x3)"), {.read = kOwn, .write = kAll}};
}

CostCase scattering(const char* op) {
  return {Call(op, "(output fp32 2x3, input fp32 8x3)"), {.read = kAll, .write = kOwn}};
}

CostCase functional(const char* op, Sizes in, Sizes out, std::int64_t read, std::int64_t written) {
  return {Call(op).in("input", fp32, std::move(in)).out(fp32, std::move(out)), {.read = read, .write = written}};
}

CostCase into(const char* op, Sizes in, Sizes out, std::int64_t read, std::int64_t written) {
  return {Call(op).in("input", fp32, std::move(in)).in("out", fp32, out).written().out(fp32, out).written(),
          {.read = read, .write = written}};
}

CostCase free_of_cost(const char* op) { return {Call(op, "(tensor fp32 2x3) -> fp32 2x3"), {}}; }

const std::vector<CostCase> kCases = together({
    {
        {Call("c10d::barrier(tensor fp32 1)"), {}},
        {Call("c10d::monitored_barrier_(tensor fp32 1)"), {}},
        {Call("c10d::check_for_nan(tensor fp32 2x3)"), {.flops = 6, .read = kOwn}},

        {Call("_c10d_functional::all_reduce_(input fp32 2x3 written) -> fp32 2x3 written"),
         {.read = kOwn, .write = kOwn}},
        {Call("fsdp::all_gather_copy_in(all_gather_inputs [fp32 6], all_gather_output fp32 24)"),
         {.read = kOwn, .write = kOwn}},
        {Call("fsdp::split_with_sizes_copy(all_gather_output fp32 4x6, out [fp32 4x4; fp32 4x2] written)"),
         {.read = kAll, .write = kAll}},
        {Call("fsdp::chunk_cat(tensors [fp32 6], out fp32 4x2 written)"), {.read = kOwn, .write = 32}},
        {Call("fsdp::chunk_cat_mixed_dtype(tensors [bf16 6], out fp32 4x2 written)"), {.read = 12, .write = 32}},
        {Call("fsdp::copy_(tensor fp32 6 written, data fp32 6)"), {.read = kOwn, .write = kOwn}},
        {Call("fsdp::record_grad_output_stream(buffer fp32 6)"), {}},
        in_place("c10d::allreduce_", 44, 44),
        in_place("c10d::allreduce_coalesced_", 44, 44),
        in_place("c10d::reduce_", 44, 0),
        in_place("c10d::send", 44, 0),
        into("_c10d_functional::all_gather_into_tensor_out", {2, 3}, {8, 3}, kOwn, kAll),
        into("_c10d_functional::reduce_scatter_tensor_out", {8, 3}, {2, 3}, kAll, kOwn),
        {Call("symm_mem::multimem_all_reduce_(input fp32 2x3 written) -> fp32 2x3 written"),
         {.read = kOwn, .write = kOwn}},
        {Call("symm_mem::two_shot_all_reduce_(input fp32 2x3 written) -> fp32 2x3 written"),
         {.read = kOwn, .write = kOwn}},
        functional("symm_mem::one_shot_all_reduce", {2, 3}, {2, 3}, kOwn, kOwn),
        functional("symm_mem::multimem_one_shot_all_reduce", {2, 3}, {2, 3}, kOwn, kOwn),
        functional("_c10d_functional::isend", {2, 3}, {2, 3}, kOwn, 0),
        functional("_c10d_functional::irecv", {2, 3}, {2, 3}, 0, kOwn),
    },
    each([](const char* op) { return in_place(op, 0, 44); },
         {"c10d::broadcast_", "c10d::recv_", "c10d::recv_any_source_"}),
    each(gathering, {"c10d::allgather_", "c10d::allgather_coalesced_", "c10d::allgather_into_tensor_coalesced_",
                     "c10d::_allgather_base_", "c10d::gather_", "c10d::gather_into_tensor_", "c10d::alltoall_"}),
    each(scattering, {"c10d::scatter_", "c10d::reduce_scatter_", "c10d::reduce_scatter_tensor_coalesced_",
                      "c10d::_reduce_scatter_base_", "c10d::alltoall_base_"}),
    each([](const char* op) { return functional(op, {2, 3}, {2, 3}, kOwn, kOwn); },
         {"_c10d_functional::all_reduce", "_c10d_functional::all_reduce_coalesced",
          "_c10d_functional::all_to_all_single", "_c10d_functional::broadcast",
          "_c10d_functional_autograd::all_to_all_single", "_dtensor::shard_dim_alltoall"}),
    each([](const char* op) { return functional(op, {2, 3}, {8, 3}, kOwn, kAll); },
         {"_c10d_functional::all_gather_into_tensor", "_c10d_functional::all_gather_into_tensor_coalesced",
          "_c10d_functional_autograd::all_gather_into_tensor"}),
    each([](const char* op) { return functional(op, {8, 3}, {2, 3}, kAll, kOwn); },
         {"_c10d_functional::reduce_scatter_tensor", "_c10d_functional::reduce_scatter_tensor_coalesced",
          "_c10d_functional_autograd::reduce_scatter_tensor"}),
    each(free_of_cost, {"_c10d_functional::wait_tensor", "_c10d_functional::wait_tensors",
                        "_c10d_functional::_wrap_tensor_autograd"}),
});

TEST(Communication, CostsAreAsWrittenOut) { check_family(communication_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops
