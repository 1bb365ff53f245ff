#pragma once
// A model on a GPU that does not exist: its roofs, its kernels' times and its counters are written by hand. Nothing
// here was measured, and every report of it calls itself simulated.

#include "core/idle.h"
#include "report/sample_models.h"
#include "support/device_builder.h"

namespace roofprof::testing {

inline Ceilings simulated_ceilings() {
  const auto made_up = [](double spread) { return Provenance{"given", "simulated", "", spread}; };
  Ceilings ceilings;
  ceilings.device = "a simulated GPU";
  ceilings.compute = {{DType::fp32, 6e13, made_up(0.01)}};
  ceilings.memory = {{"L2", 5.5e12, 50 << 20, made_up(0.02)},
                     {"DRAM", 3e12, 0, made_up(0.01)},
                     {std::string(kHostLink), 5e10, 0, made_up(0.03)}};
  return ceilings;
}

class SimulatedGpu : public SampleModel {
 public:
  explicit SimulatedGpu(const std::string& model) : SampleModel(model) {
    data.run.device = "cuda:0";
    data.roofs = simulated_ceilings();
    data.device.make().compute_capability = "8.9";
    data.run.environment = {{"device", "simulated GPU"}, {"torch", "2.11.0"}};
    now_ns = run.run.trace.start_ns = 1'000'000;
  }

  // The device waits, then runs one kernel of that op for as long as its roofs and an efficiency say. Of its bytes so
  // many parts of 100 come from DRAM.
  void launch(const std::string& kernel, std::int64_t op, std::int64_t wait_ns, double efficiency, int dram_percent,
              int instances = 1) {
    const OpBucket& bucket = data.counts.ops[static_cast<std::size_t>(op)];
    const auto least = static_cast<double>(roof_shares(bucket, data.roofs).lower_bound_time_ns);
    const auto place = run.owner(bucket.owner.module, bucket.op, op);
    for (int i = 0; i < instances; ++i) {
      const auto ns = static_cast<std::int64_t>(least / efficiency / instances) + 40 * i;
      now_ns += wait_ns;
      run.kernel(kernel, place, now_ns, now_ns + ns);
      now_ns += ns;
      dram.push_back(static_cast<double>(bucket.work.bytes() * dram_percent / 100 / instances));
    }
  }

  std::int64_t last_op() const { return static_cast<std::int64_t>(data.counts.ops.size()) - 1; }

  Report finish_on_device(bool with_counters = true) {
    run.run.trace.end_ns = now_ns + 20'000;
    data.run.runs.total_ns = {run.run.trace.end_ns - run.run.trace.start_ns};
    data.run.runs.bare_ns = data.run.runs.total_ns;
    data.run.runs.chosen = 0;
    data.run.runs.warmup = 3;
    time(kModel, {});
    for (auto& time : data.times.make().modules) time.self_ns = {12'000};
    data = with_runs(std::move(data), {run.run}, with_counters ? std::optional(dram_counters(dram)) : std::nullopt);
    data.device.make().timeline = at_bare_speed(*data.device, data.run.runs.bare_ns);
    return report();
  }

  RunBuilder run;
  std::vector<double> dram;
  std::int64_t now_ns = 0;
};

inline Report simulated_convnet(bool with_counters = true) {
  SimulatedGpu net("ConvNet");
  std::int64_t side = 224;
  const OpBucket copy = net.op("aten::_to_copy", kOutside, work_of(0, 4 * 3 * 224 * 224, 4 * 3 * 224 * 224));
  net.run.copy(Memory::pageable, Memory::device, net.run.owner(kOutside, copy.op, net.last_op()), net.now_ns,
               net.now_ns + 15'000, 4LL * 3 * 224 * 224);
  net.now_ns += 15'000;
  net.conv("conv1", kModel, 3, 64, 7, 2, side);
  net.launch("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x64x16", net.last_op(),
             4'000, 0.71, 95);
  const ModuleId block = net.container("block", "Sequential", kModel);
  for (int i = 0; i < 3; ++i) {
    const std::string path = "block." + std::to_string(i);
    net.conv(path, block, 64, 64, 3, 1, side);
    net.launch("void cutlass__5x_cudnn::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)", net.last_op(), 900,
               0.66, 20);
  }
  net.pointwise("relu", "ReLU", "aten::relu_", kModel, 64 * side * side, 1);
  net.launch("void at::native::vectorized_elementwise_kernel<4, at::native::ReLU>(int)", net.last_op(), 9'000, 0.4, 30,
             3);
  net.linear("head", kModel, 1, 200'704, 10);
  net.launch("maxwell_sgemm_128x64_nn", net.last_op(), 2'000, 0.05, 100);
  net.run.fill(net.run.owner(kModel), net.now_ns, net.now_ns + 1'200, 4'096);
  net.run.kernel("void extension::finish(float*)", kNoLaunch, net.now_ns + 1'200, net.now_ns + 3'000);
  net.dram.push_back(10'000);
  net.now_ns += 3'000;
  return net.finish_on_device(with_counters);
}

}  // namespace roofprof::testing
