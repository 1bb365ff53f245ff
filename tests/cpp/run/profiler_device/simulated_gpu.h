#pragma once
// A simulated GPU under models that really run on the CPU: while kernels are bound to operators, each call of one on
// this thread launches its kernel on the fake device. Nothing that these tests see was measured.

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "fake_control.h"
#include "roofprof/profiler.h"
#include "support/fake_libraries.h"

namespace roofprof::testing {

struct SimulatedKernel {
  std::string name;
  long long duration_ns = 0;
  double dram_bytes = 0;  // a third of it written
};

inline void launch(const SimulatedKernel& kernel) {
  FakeLaunch launch{};
  launch.name = kernel.name.c_str();
  launch.duration_ns = kernel.duration_ns;
  for (int axis = 0; axis < 3; ++axis) launch.grid[axis] = launch.block[axis] = 1;
  launch.dram_write_bytes = kernel.dram_bytes / 3;
  launch.dram_read_bytes = kernel.dram_bytes - launch.dram_write_bytes;
  fake_launch(&launch);
}

using KernelsByOp = std::map<std::string, SimulatedKernel, std::less<>>;

// Behind roofprof's observer, as kernels are: observers of one thread come after those of all.
class KernelsOfOps {
 public:
  explicit KernelsOfOps(KernelsByOp kernels)
      : kernels_(std::move(kernels)),
        handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(start).scopes({at::RecordScope::FUNCTION}))) {
    current = this;
  }
  ~KernelsOfOps() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  KernelsOfOps(const KernelsOfOps&) = delete;
  KernelsOfOps& operator=(const KernelsOfOps&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& op) {
    const auto kernel = current->kernels_.find(std::string_view(op.name()));
    if (kernel != current->kernels_.end()) launch(kernel->second);
    return nullptr;
  }

  inline static thread_local KernelsOfOps* current = nullptr;
  KernelsByOp kernels_;
  at::CallbackHandle handle_;
};

// Models of these tests are on the CPU, so the device is requested.
inline ProfilerOptions on_the_gpu(Counters counters = Counters::off) {
  return {
      .warmup = 1,
      .repeat = 3,
      .ceilings = Ceilings{"simulated",
                           {{DType::fp32, 1e12, {"given", "test", "", {}}}},
                           {{"DRAM", 1e11, 0, {"given", "test", "", {}}}}},
      .counters = counters,
      .device = "cuda",
  };
}

// How many of the report's notes have these words in them.
inline std::int64_t notes_with(const Report& report, std::string_view words) {
  return std::ranges::count_if(report.coverage().notes,
                               [&](const auto& note) { return note.text.find(words) != std::string::npos; });
}

inline std::string all_notes(const Report& report) {
  std::string text;
  for (const auto& note : report.coverage().notes) text += note.text + "\n";
  return text;
}

// As many kernels as are listed in that module and phase, of that op.
inline std::int64_t instances(const Report& report, std::string_view kernel, std::string_view module,
                              std::string_view phase = "forward") {
  std::int64_t sum = 0;
  for (const auto& row : report.kernels()) {
    if (row.name == kernel && row.module == module && row.phase_name() == phase) sum += row.instances;
  }
  return sum;
}

inline std::int64_t total_of_kernels(const Report& report) {
  std::int64_t sum = 0;
  for (const auto& row : report.kernels()) sum += row.total_ns;
  return sum;
}

// What a run leaves behind in the fake libraries; the driver's contexts are the program's own.
inline void expect_nothing_held() {
  for (const auto* what : {"subscriber", "activity_buffer", "host_object", "range_profiler"}) {
    EXPECT_EQ(fake_live(what), 0) << what;
  }
}

}  // namespace roofprof::testing
