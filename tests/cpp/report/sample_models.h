#pragma once
// Profiles of models that readers know, built by hand with plausible times, for looking at whole reports.

#include <cmath>
#include <string>

#include "analysis/roofline.h"
#include "support/profile_builder.h"

namespace roofprof::testing {

inline Ceilings sample_ceilings() {
  const auto measured = [](double spread) {
    return Provenance{"measured", "best of several", "2025-06-01T12:00:00", spread};
  };
  Ceilings ceilings;
  ceilings.device = "a server CPU";
  ceilings.compute = {{DType::fp32, 1.05e11, measured(0.021)},
                      {DType::bf16, 2.31e11, measured(0.034)},
                      {DType::fp64, 5.2e10, measured(0.012)}};
  ceilings.memory = {{"L2", 2.4e11, 2 << 20, measured(0.05)},
                     {"L3", 9.1e10, 33 << 20, measured(0.044)},
                     {"DRAM", 2.01e10, 0, measured(0.027)}};
  return ceilings;
}

class SampleModel : public ProfileBuilder {
 public:
  explicit SampleModel(const std::string& model) {
    data.run.model = model;
    data.tree.modules[kModel].type = model;
    data.roofs = sample_ceilings();
    data.run.environment = {
        {"device", "Intel(R) Xeon(R) Processor @ 2.80GHz"}, {"torch_threads", std::int64_t{2}}, {"torch", "2.11.0"}};
    data.run.runs.warmup = 3;
  }

  // A module with one op that reaches `efficiency` of its roof.
  ModuleId layer(const std::string& path, const std::string& type, ModuleId parent, const std::string& op_name,
                 const Work& work, std::int64_t params, double efficiency) {
    const ModuleId id = module(path, type, parent);
    for (ModuleId up = id; up >= 0; up = at(up).parent) {
      at(up).params += params;
      at(up).param_bytes += 4 * params;
    }
    auto& bucket = op(op_name, id, work);
    const auto least = static_cast<double>(roof_shares(bucket, data.roofs).lower_bound_time_ns);
    const auto time_ns = static_cast<std::int64_t>(least / efficiency) + 900;
    bucket.time_ns = time_ns;
    time(id, {time_ns + 4'000, time_ns + 4'400, time_ns + 5'000});
    return id;
  }

  ModuleId conv(const std::string& path, ModuleId parent, std::int64_t in, std::int64_t out, std::int64_t kernel,
                std::int64_t stride, std::int64_t& side) {
    const std::int64_t result = side / stride;
    const std::int64_t weights = in * out * kernel * kernel;
    const Work work =
        work_of(2 * weights * result * result, 4 * (in * side * side + weights), 4 * out * result * result);
    side = result;
    return layer(path, "Conv2d", parent, "aten::conv2d", work, weights, 0.71);
  }

  ModuleId pointwise(const std::string& path, const std::string& type, const std::string& op_name, ModuleId parent,
                     std::int64_t elements, std::int64_t per_element, std::int64_t params = 0) {
    Work work = work_of(per_element * elements, 4 * elements, 4 * elements);
    work.macs = work.causal_macs = 0;
    return layer(path, type, parent, op_name, work, params, 0.38);
  }

  ModuleId linear(const std::string& path, ModuleId parent, std::int64_t rows, std::int64_t in, std::int64_t out) {
    return layer(path, "Linear", parent, "aten::linear",
                 work_of(2 * rows * in * out, 4 * (rows * in + in * out), 4 * rows * out), in * out + out, 0.83);
  }

  // A module that runs no op itself.
  ModuleId container(const std::string& path, const std::string& type, ModuleId parent, bool has_forward = true) {
    const ModuleId id = module(path, type, parent);
    at(id).has_forward = has_forward;
    if (has_forward) time(id, {9'000, 9'500, 10'000});
    return id;
  }

  Module& at(ModuleId id) { return data.tree.modules[static_cast<std::size_t>(id)]; }

  Report finish() {
    time(kModel, {30'000, 31'000, 36'000});
    data.run.runs.chosen = 1;
    data.run.runs.bare_ns = {data.run.runs.total_ns[0] * 97 / 100, data.run.runs.total_ns[0] * 98 / 100};
    return report();
  }
};

inline Report sample_resnet50(bool timed = true) {
  SampleModel net("ResNet");
  std::int64_t side = 224;
  net.conv("conv1", kModel, 3, 64, 7, 2, side);
  net.pointwise("bn1", "BatchNorm2d", "aten::batch_norm", kModel, 64 * side * side, 4, 128);
  net.pointwise("relu", "ReLU", "aten::relu_", kModel, 64 * side * side, 1);
  net.pointwise("maxpool", "MaxPool2d", "aten::max_pool2d", kModel, 64 * side * side / 2, 9);
  side /= 2;
  std::int64_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const std::string stage_path = "layer" + std::to_string(stage + 1);
    const ModuleId stage_id = net.container(stage_path, "Sequential", kModel);
    const std::int64_t width = 64LL << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string path = stage_path + "." + std::to_string(block);
      const ModuleId id = net.container(path, "Bottleneck", stage_id);
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      const std::int64_t first_side = side;
      net.conv(path + ".conv1", id, in, width, 1, 1, side);
      net.pointwise(path + ".bn1", "BatchNorm2d", "aten::batch_norm", id, width * side * side, 4, 2 * width);
      net.conv(path + ".conv2", id, width, width, 3, stride, side);
      net.pointwise(path + ".bn2", "BatchNorm2d", "aten::batch_norm", id, width * side * side, 4, 2 * width);
      net.conv(path + ".conv3", id, width, 4 * width, 1, 1, side);
      net.pointwise(path + ".bn3", "BatchNorm2d", "aten::batch_norm", id, 4 * width * side * side, 4, 8 * width);
      net.pointwise(path + ".relu", "ReLU", "aten::relu_", id, 6 * width * side * side, 1);
      if (block == 0) {
        const ModuleId down = net.container(path + ".downsample", "Sequential", id);
        std::int64_t down_side = first_side;
        net.conv(path + ".downsample.0", down, in, 4 * width, 1, stride, down_side);
        net.pointwise(path + ".downsample.1", "BatchNorm2d", "aten::batch_norm", down, 4 * width * side * side, 4,
                      8 * width);
      }
      net.op("aten::add_", id, work_of(0, 32 * width * side * side, 16 * width * side * side),
             48 * width * side * side / 40);
      in = 4 * width;
    }
  }
  net.pointwise("avgpool", "AdaptiveAvgPool2d", "aten::adaptive_avg_pool2d", kModel, 2048 * side * side, 1);
  net.linear("fc", kModel, 1, 2048, 1000);
  if (timed) return net.finish();
  for (auto& op : net.data.counts.ops) op.time_ns.reset();
  for (auto& time : net.data.times.make().modules) time.self_ns.clear();
  net.time(kModel, {});
  net.data.run.runs = {};
  net.data.roofs = {};
  net.data.run.mode = Mode::count;
  net.data.run.device = "meta";
  return net.report();
}

inline Report sample_toy() {
  SampleModel net("Toy");
  net.linear("fc1", kModel, 4, 16, 32);
  net.pointwise("act", "ReLU", "aten::relu", kModel, 128, 1);
  net.linear("fc2", kModel, 4, 32, 8);
  return net.finish();
}

// Long names, a deep tree, everything that coverage can say.
inline Report sample_cooperative() {
  SampleModel net("CooperativePerceptionTransformerWithIntermediateFusion");
  const ModuleId encoder = net.container("vehicle_side_feature_encoder", "PillarFeatureNetEncoder", kModel);
  ModuleId parent = encoder;
  std::string path = "vehicle_side_feature_encoder";
  for (int depth = 0; depth < 9; ++depth) {
    path += ".nested_backbone_block_" + std::to_string(depth);
    parent = net.container(path, "MultiScaleDeformableAttentionBlock", parent);
    net.linear(path + ".projection", parent, 600, 64, 64);
  }
  const ModuleId fusion = net.container("fusion", "AttentionFusion", kModel);
  net.linear("fusion.query", fusion, 600, 64, 128);
  net.at(net.linear("fusion.scripted", fusion, 600, 128, 64)).inferred = true;
  auto& custom = net.op("cooperative_ops::warp_affine_features", fusion, {}, 220'000, 7);
  custom.costed = false;
  net.op("aten::add_", fusion, work_of(0, 64'000), 100);
  net.op("aten::mse_loss", kOutside, work_of(3'000, 8'000, 4), 1'400);
  net.module("auxiliary_head", "Sequential");
  net.module("auxiliary_head.0", "Linear", static_cast<ModuleId>(net.data.tree.modules.size() - 1));
  net.module("unused_classifier", "Linear");
  for (std::size_t i = 1; i <= 3; ++i) net.data.tree.modules[net.data.tree.modules.size() - i].params = 130;
  net.at(kModel).params += 2 * 130;
  net.data.run.mode = Mode::block;
  net.data.run.runs.steps = 4;
  net.data.run.runs.after_steps.emplace();
  net.data.run.partial = true;
  net.data.counts.unobserved = {{"spconv::SubMConv3d", 12}};
  net.data.notes = {
      make_note("timing-stopped",
                "the second call dispatched other ops than the first (a cache grew?): repeats stopped after one run")};
  net.time(kOutside, {90'000, 91'000, 95'000}, 0);
  return net.finish();
}

}  // namespace roofprof::testing
