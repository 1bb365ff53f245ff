#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// One process of four, with 2 x 3 floats (24 bytes) of its own.
constexpr std::int64_t kOwn = 24;
constexpr std::int64_t kAll = 4 * kOwn;

CostCase in_place(const char* op, std::int64_t read, std::int64_t written) {
  return {Call(op).list("tensors", {tensor(fp32, {2, 3}), tensor(fp32, {5})}),
          {.read_bytes = read, .write_bytes = written}};
}

// op(output, input): a part of 24 bytes on one side, all four on the other.
CostCase gathering(const char* op) {
  return {Call(op).in("output", fp32, {8, 3}).in("input", fp32, {2, 3}), {.read_bytes = kOwn, .write_bytes = kAll}};
}

CostCase scattering(const char* op) {
  return {Call(op).in("output", fp32, {2, 3}).in("input", fp32, {8, 3}), {.read_bytes = kAll, .write_bytes = kOwn}};
}

CostCase functional(const char* op, Sizes in, Sizes out, std::int64_t read, std::int64_t written) {
  return {Call(op).in("input", fp32, std::move(in)).out(fp32, std::move(out)),
          {.read_bytes = read, .write_bytes = written}};
}

CostCase into(const char* op, Sizes in, Sizes out, std::int64_t read, std::int64_t written) {
  return {Call(op).in("input", fp32, std::move(in)).in("out", fp32, out).written().out(fp32, out).written(),
          {.read_bytes = read, .write_bytes = written}};
}

CostCase free_of_cost(const char* op) { return {Call(op).in("tensor", fp32, {2, 3}).out(fp32, {2, 3}), {}}; }

const std::vector<CostCase> kCases = {
    in_place("c10d::allreduce_", 44, 44),
    in_place("c10d::allreduce_coalesced_", 44, 44),
    in_place("c10d::reduce_", 44, 0),
    in_place("c10d::broadcast_", 0, 44),
    in_place("c10d::send", 44, 0),
    in_place("c10d::recv_", 0, 44),
    in_place("c10d::recv_any_source_", 0, 44),
    gathering("c10d::allgather_"),
    gathering("c10d::allgather_coalesced_"),
    gathering("c10d::allgather_into_tensor_coalesced_"),
    gathering("c10d::_allgather_base_"),
    gathering("c10d::gather_"),
    gathering("c10d::gather_into_tensor_"),
    scattering("c10d::scatter_"),
    scattering("c10d::reduce_scatter_"),
    scattering("c10d::reduce_scatter_tensor_coalesced_"),
    scattering("c10d::_reduce_scatter_base_"),
    gathering("c10d::alltoall_"),
    scattering("c10d::alltoall_base_"),
    {Call("c10d::barrier").in("tensor", fp32, {1}), {}},
    {Call("c10d::monitored_barrier_").in("tensor", fp32, {1}), {}},
    {Call("c10d::check_for_nan").in("tensor", fp32, {2, 3}), {.flops = 6, .read_bytes = kOwn}},

    functional("_c10d_functional::all_reduce", {2, 3}, {2, 3}, kOwn, kOwn),
    {Call("_c10d_functional::all_reduce_").in("input", fp32, {2, 3}).written().out(fp32, {2, 3}).written(),
     {.read_bytes = kOwn, .write_bytes = kOwn}},
    functional("_c10d_functional::all_reduce_coalesced", {2, 3}, {2, 3}, kOwn, kOwn),
    functional("_c10d_functional::all_gather_into_tensor", {2, 3}, {8, 3}, kOwn, kAll),
    functional("_c10d_functional::all_gather_into_tensor_coalesced", {2, 3}, {8, 3}, kOwn, kAll),
    into("_c10d_functional::all_gather_into_tensor_out", {2, 3}, {8, 3}, kOwn, kAll),
    functional("_c10d_functional::reduce_scatter_tensor", {8, 3}, {2, 3}, kAll, kOwn),
    functional("_c10d_functional::reduce_scatter_tensor_coalesced", {8, 3}, {2, 3}, kAll, kOwn),
    into("_c10d_functional::reduce_scatter_tensor_out", {8, 3}, {2, 3}, kAll, kOwn),
    functional("_c10d_functional::all_to_all_single", {2, 3}, {2, 3}, kOwn, kOwn),
    functional("_c10d_functional::broadcast", {2, 3}, {2, 3}, kOwn, kOwn),
    functional("_c10d_functional::isend", {2, 3}, {2, 3}, kOwn, 0),
    functional("_c10d_functional::irecv", {2, 3}, {2, 3}, 0, kOwn),
    free_of_cost("_c10d_functional::wait_tensor"),
    free_of_cost("_c10d_functional::wait_tensors"),
    free_of_cost("_c10d_functional::_wrap_tensor_autograd"),
    functional("_c10d_functional_autograd::all_gather_into_tensor", {2, 3}, {8, 3}, kOwn, kAll),
    functional("_c10d_functional_autograd::reduce_scatter_tensor", {8, 3}, {2, 3}, kAll, kOwn),
    functional("_c10d_functional_autograd::all_to_all_single", {2, 3}, {2, 3}, kOwn, kOwn),
    {Call("fsdp::all_gather_copy_in")
         .list("all_gather_inputs", {tensor(fp32, {6})})
         .in("all_gather_output", fp32, {24}),
     {.read_bytes = kOwn, .write_bytes = kOwn}},
    {Call("fsdp::split_with_sizes_copy")
         .in("all_gather_output", fp32, {4, 6})
         .list("out", {tensor(fp32, {4, 4}), tensor(fp32, {4, 2})})
         .written(),
     {.read_bytes = kAll, .write_bytes = kAll}},
    {Call("fsdp::chunk_cat").list("tensors", {tensor(fp32, {6})}).in("out", fp32, {4, 2}).written(),
     {.read_bytes = kOwn, .write_bytes = 32}},
    {Call("fsdp::chunk_cat_mixed_dtype").list("tensors", {tensor(bf16, {6})}).in("out", fp32, {4, 2}).written(),
     {.read_bytes = 12, .write_bytes = 32}},
    {Call("fsdp::copy_").in("tensor", fp32, {6}).written().in("data", fp32, {6}),
     {.read_bytes = kOwn, .write_bytes = kOwn}},
    {Call("fsdp::record_grad_output_stream").in("buffer", fp32, {6}), {}},
    functional("_dtensor::shard_dim_alltoall", {2, 3}, {2, 3}, kOwn, kOwn),
};

TEST(Communication, CostsAreAsWrittenOut) { check_family(communication_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops
