#pragma once
// The contents of a trace of torch.profiler: the host's events, the device's, and the calls of operators.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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
  std::string sizes;      // "Input Dims"
  std::string types;      // "Input type", C++'s names: "float", "c10::BFloat16", "Scalar", "TensorList"
  std::string strides;    // "Input Strides"; empty in older traces
  std::string scalars;    // "Concrete Inputs"; empty in older traces
  std::string list_type;  // of the tensors in lists, which traces do not say; empty: nothing tells it
  bool triton = false;    // no operator, but a kernel of Triton's, by its own name
  // Numbers that its cost reads besides its arguments, by name: what the step that a serving engine ran says.
  std::vector<std::pair<std::string, std::int64_t>> facts = {};
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
  std::int32_t call = kNone;      // of an op: index into Trace::calls
  HostKind kind = HostKind::op;
  bool of_backward = false;  // an op that has the number of the thread that its forward ran on
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
  DeviceTrace device;                       // `launch` is empty; records carry what launched them in `correlation`
  std::vector<std::uint64_t> external_ids;  // of device.records, 0: none
  std::vector<DeviceProperties> devices;    // by number
  std::string recorded_by;                  // "CUDA 12.4, driver 12.9, CUPTI 22"; empty: it does not say
  bool rocm = false;
  std::int64_t rank = kNone;  // in a distributed program
  std::int64_t events = 0;    // that were read, of all kinds
  std::int64_t damaged = 0;   // events without a time or a name: left out
  std::int64_t python_frames = 0;
  std::int64_t counter_ranges = 0;  // of CUPTI's profiler
};

}  // namespace roofprof::kineto
