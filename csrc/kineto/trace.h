#pragma once
// The contents of a trace of torch.profiler: the host's events, the device's, and the calls of operators.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device_data.h"

namespace roofprof::kineto {

// An index of nothing.
inline constexpr std::int32_t kNone = -1;
constexpr std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// One distinct call of an operator. Its arguments are the trace's JSON texts, lists in the schema's order.
struct RecordedCall {
  std::string op;  // "aten::conv2d", without overload
  bool described = false;
  std::string sizes;             // "Input Dims"
  std::string types;             // "Input type", C++'s names: "float", "c10::BFloat16", "Scalar", "TensorList"
  std::string strides;           // "Input Strides"; empty in older traces
  std::string scalars;           // "Concrete Inputs"; empty in older traces
  std::string list_type;         // type of the tensors in lists, which traces lack; empty: not known
  std::int32_t message = kNone;  // of a collective: index into Trace::messages
  bool triton = false;           // no operator, but a kernel of Triton's, by its own name
  std::string code = {};         // of such a kernel: the file that it was generated in
  // Numbers that its cost reads besides its arguments, by name: what the step that a serving engine ran says.
  std::vector<std::pair<std::string, std::int64_t>> facts = {};
};

// A collective as c10d recorded it (record_param_comms), or as a range of its backend names it ("nccl:all_reduce").
struct Message {
  std::string name;             // "allreduce", "_allgather_base", "wait"
  std::string dtype;            // "BFloat16", or C++'s name: "c10::BFloat16"
  std::int64_t in = kNone;      // elements that this rank gives; kNone: not known
  std::int64_t out = kNone;     // and gets
  std::string group;            // the process group's name
  std::string members;          // its ranks: "[0, 1]"
  std::int64_t ranks = 0;       // their number; 0: not known
  std::int64_t number = kNone;  // of the call in its group
  bool uneven = false;          // ranks give each other parts of different sizes

  bool operator==(const Message&) const = default;
  auto operator<=>(const Message&) const = default;
};

// A process group, as the facts about the distributed program list them.
struct ListedGroup {
  std::string name;
  std::string backend;  // "nccl", "cpu:gloo,cuda:nccl"
  std::string members;
  std::int64_t ranks = 0;
};

enum class HostKind : std::uint8_t {
  op,         // an operator, or a node of autograd's
  module,     // a call of an nn.Module
  recompute,  // what checkpointing calls again in the backward
  range,      // record_function, or one of torch's own
  launch      // a call of CUDA's or HIP's
};

struct HostEvent {
  std::int64_t begin_ns = 0;  // by a clock that the device's records share
  std::int64_t end_ns = 0;
  std::int64_t sequence = kNone;  // of an op: the number of the autograd node that it makes, or that runs
  std::uint64_t correlation = 0;  // of a launch; of an op its "External id"
  std::uint32_t name = 0;         // index into Trace::names; of an op too
  std::uint32_t thread = 0;       // from 0 on
  std::int32_t call = kNone;      // of an op: index into Trace::calls; of a launch into Trace::launched
  std::int32_t message = kNone;   // of a collective: index into Trace::messages
  HostKind kind = HostKind::op;
  bool of_backward = false;  // an op that has the number of the thread that its forward ran on
};

// A kernel as its launch names it; ROCm's launches do.
struct LaunchedKernel {
  std::string name;
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
};

// A frame of Python's stacks.
struct PythonFrame {
  std::string name;  // "transformers/image_processing.py(210): preprocess"
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// The name of what torch.compile opens around compiled code, before the region's number: "0/0".
inline constexpr std::string_view kCompiledRange = "Torch-Compiled Region: ";

// The properties of a device that a trace has.
struct DeviceProperties {
  std::string name;                // "NVIDIA H100 80GB HBM3"; empty where the driver says nothing
  std::string compute_capability;  // "9.0"; of NVIDIA's
};

struct Trace {
  std::vector<std::string> names;
  std::vector<HostEvent> host;
  std::vector<RecordedCall> calls;
  std::vector<Message> messages;
  std::unordered_map<std::uint64_t, std::int32_t> kernel_messages;  // of the launch with that correlation
  DeviceTrace device;                       // `launch` is empty; records carry what launched them in `correlation`
  std::vector<std::uint64_t> external_ids;  // of device.records, 0: none
  std::vector<std::uint64_t> captured;    // of device.records: correlation of the launch that a graph replays, 0: none
  std::vector<LaunchedKernel> launched;   // distinct ones
  std::vector<DeviceProperties> devices;  // by number
  bool event_list = false;                // EventList.export_chrome_trace wrote it: names and times alone
  std::string recorder = "torch.profiler";  // "Nsight Systems" where its export was read
  std::string recorded_by;                  // "CUDA 12.4, driver 12.9, CUPTI 22"; empty: it does not say
  bool rocm = false;
  std::int64_t rank = kNone;  // in a distributed program
  std::int64_t world_size = kNone;
  std::string host_name;
  std::string backend;              // of its collectives: "nccl"
  std::vector<ListedGroup> groups;  // of processes
  std::int64_t base_ns = 0;         // what the times of all events are counted from
  std::int64_t events = 0;          // that were read, of all kinds
  std::int64_t damaged = 0;         // events without a time or a name: left out
  std::int64_t python_frames = 0;
  std::vector<PythonFrame> long_frames;  // those of a millisecond or more, the first 10,000
  std::int64_t counter_ranges = 0;       // of CUPTI's profiler
};

}  // namespace roofprof::kineto
