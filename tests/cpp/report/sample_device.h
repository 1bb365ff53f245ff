#pragma once
// A model on a GPU that does not exist: its kernels' times and its counters are written by hand. Nothing here was
// measured, and every report of it calls itself simulated.

#include "report/sample_models.h"
#include "support/device_builder.h"

namespace roofprof::testing {

inline Report simulated_convnet(bool with_counters = true) {
  DeviceProfileBuilder net({180'000});
  net.data.run.model = "ConvNet";
  net.data.device.make().compute_capability = "8.9";
  net.data.run.environment = {{"device", "simulated GPU"}, {"torch", "2.11.0"}};
  RunBuilder run;
  const auto owner = [&](const std::string& path, const std::string& op, const Work& work) {
    const ModuleId module = path.empty() ? kOutside : net.module(path, "Layer");
    return run.owner(module, op, net.op_index(op, module, work));
  };
  const LaunchId copied = owner("", "aten::_to_copy", work_of(0, 600'000, 600'000));
  const LaunchId conv = owner("conv1", "aten::conv2d", work_of(20'000'000, 600'000, 800'000));
  const LaunchId relu = owner("relu", "aten::relu_", work_of(200'000, 800'000, 800'000));
  const LaunchId head = owner("head", "aten::linear", work_of(4'000'000, 8'000'000, 40));
  run.copy(Memory::pageable, Memory::device, copied, 0, 15'000, 600'000);
  run.kernel("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x64x16", conv, 20'000,
             50'000);
  for (const std::int64_t start_ns : {60'000, 62'000, 64'000}) {
    run.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::ReLU>(int)", relu, start_ns,
               start_ns + 1'000);
  }
  run.kernel("maxwell_sgemm_128x64_nn", head, 70'000, 170'000);
  run.fill(run.owner(kModel), 170'000, 170'500, 4'096);
  const std::vector<double> dram_bytes = {1'400'000, 400'000, 400'000, 400'000, 8'830'000};
  return net.report_of({run.run}, with_counters ? std::optional(dram_counters(dram_bytes)) : std::nullopt);
}

}  // namespace roofprof::testing
