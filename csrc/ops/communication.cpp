// Collectives between processes: they count what each process reads and writes in its own memory. Traffic over the
// network, and the additions of a reduction on its way, are not counted.

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

std::int64_t held_bytes(const Argument& argument) {
  std::int64_t bytes = 0;
  for (const auto& tensor : argument.tensors) bytes = saturating_add(bytes, tensor.held_bytes());
  return bytes;
}

// c10d's own ops do not say which arguments they write.
void sent_bytes(const OpCall& call, Work& work) { work.read_bytes = held_bytes(call.arguments.at(0)); }
void received_bytes(const OpCall& call, Work& work) { work.write_bytes = held_bytes(call.arguments.at(0)); }
void exchanged_bytes(const OpCall& call, Work& work) {
  sent_bytes(call, work);
  received_bytes(call, work);
}
// op(outputs, inputs, ...)
void outputs_and_inputs_bytes(const OpCall& call, Work& work) {
  received_bytes(call, work);
  work.read_bytes = held_bytes(call.arguments.at(1));
}

// Into a part of the output: as much is written as is read.
void copied_in_bytes(const OpCall& call, Work& work) {
  sent_bytes(call, work);
  work.write_bytes = work.read_bytes;
}

constexpr OpCost kCommunicationCosts[] = {
    {"c10d::allreduce_ c10d::allreduce_coalesced_", no_operations, 0, exchanged_bytes, "",
     "each tensor read and written"},
    {"c10d::reduce_ c10d::send", no_operations, 0, sent_bytes, "", "each tensor read"},
    {"c10d::broadcast_", no_operations, 0, received_bytes, "", "each tensor written, or by the root read"},
    {"c10d::recv_ c10d::recv_any_source_", no_operations, 0, received_bytes, "", "each tensor written"},
    {"c10d::allgather_ c10d::allgather_coalesced_ c10d::allgather_into_tensor_coalesced_ c10d::gather_ c10d::scatter_ "
     "c10d::reduce_scatter_ c10d::reduce_scatter_tensor_coalesced_ c10d::alltoall_",
     no_operations, 0, outputs_and_inputs_bytes, "", "inputs read, outputs written"},
    {"c10d::_allgather_base_ c10d::gather_into_tensor_ c10d::_reduce_scatter_base_ c10d::alltoall_base_", no_operations,
     0, outputs_and_inputs_bytes, "", "input read, output written"},
    {"c10d::barrier c10d::monitored_barrier_", no_operations, 0, no_bytes, "", "waiting"},
    {"c10d::check_for_nan", per_input, 1, nullptr, "", "one comparison per element"},

    // Functional forms: a new tensor comes out.
    {"_c10d_functional::all_reduce _c10d_functional::all_gather_into_tensor _c10d_functional::reduce_scatter_tensor "
     "_c10d_functional::all_to_all_single _c10d_functional::broadcast "
     "_c10d_functional_autograd::all_gather_into_tensor _c10d_functional_autograd::reduce_scatter_tensor "
     "_c10d_functional_autograd::all_to_all_single",
     no_operations, 0, nullptr, "", "input read, result written"},
    {"_c10d_functional::all_reduce_coalesced _c10d_functional::all_gather_into_tensor_coalesced "
     "_c10d_functional::reduce_scatter_tensor_coalesced",
     no_operations, 0, nullptr, "", "inputs read, results written"},
    {"_c10d_functional::all_gather_into_tensor_out _c10d_functional::reduce_scatter_tensor_out", no_operations, 0,
     nullptr, "", "input read, out written"},
    {"_c10d_functional::isend", no_operations, 0, sent_bytes, "", "read"},
    {"_c10d_functional::irecv", no_operations, 0, received_bytes, "", "written"},
    {"_c10d_functional::wait_tensor _c10d_functional::wait_tensors", no_operations, 0, no_bytes, "", "waiting"},
    {"_c10d_functional::_wrap_tensor_autograd", no_operations, 0, no_bytes, "", "the same tensor"},

    // Fully sharded data parallelism: parameters copied into one buffer and out of it.
    {"fsdp::all_gather_copy_in", no_operations, 0, copied_in_bytes, "", "inputs copied"},
    {"fsdp::split_with_sizes_copy", no_operations, 0, overwriting_bytes, "", "copied apart"},
    {"fsdp::chunk_cat fsdp::chunk_cat_mixed_dtype", no_operations, 0, overwriting_bytes, "", "copied together"},
    {"fsdp::copy_", no_operations, 0, overwriting_bytes, "", "data read, tensor written"},
    {"fsdp::record_grad_output_stream", no_operations, 0, no_bytes, "", "a note to the allocator"},
    // Symmetric memory: kernels that read and write the other ranks' memory directly.
    {"symm_mem::multimem_all_reduce_ symm_mem::two_shot_all_reduce_", no_operations, 0, exchanged_bytes, "",
     "read and written"},
    {"symm_mem::one_shot_all_reduce symm_mem::multimem_one_shot_all_reduce", no_operations, 0, exchanged_bytes, "",
     "input read, result written"},
    {"_dtensor::shard_dim_alltoall", no_operations, 0, nullptr, "", "input read, result written"},
};

}  // namespace

std::span<const OpCost> communication_costs() { return kCommunicationCosts; }

}  // namespace roofprof::ops
