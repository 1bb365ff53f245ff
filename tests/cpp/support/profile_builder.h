#pragma once
// Profiles written by hand, with roofs in round numbers, so that tests can state every figure in closed form.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/group.h"
#include "analysis/rows.h"
#include "analysis/whole/analysis.h"
#include "core/profile.h"

namespace roofprof::testing {

// "1x3x224x224, 64x3x7x7".
inline OpShapes shapes(std::string_view text) { return shapes_in_text(text).value(); }

inline constexpr double kFp32Peak = 1e12;       // 1,000 FLOPs take 1 ns
inline constexpr double kL2Bandwidth = 1e12;    // 1,000 bytes take 1 ns
inline constexpr double kDramBandwidth = 1e11;  // 100 bytes take 1 ns
inline constexpr std::int64_t kL2Capacity = 1 << 20;
inline constexpr double kSpread = 0.05;

inline Provenance given_roof() { return {"given", "by hand", "", kSpread}; }

inline Ceilings round_ceilings() {
  Ceilings ceilings;
  ceilings.device = "a machine in round numbers";
  ceilings.compute = {{DType::fp32, kFp32Peak, given_roof()}};
  ceilings.memory = {{"L2", kL2Bandwidth, kL2Capacity, given_roof()}, {"DRAM", kDramBandwidth, 0, given_roof()}};
  return ceilings;
}

inline Work work_of(std::int64_t flops, std::int64_t read_bytes, std::int64_t write_bytes = 0,
                    DType dtype = DType::fp32) {
  Work work;
  work.macs = work.causal_macs = flops / 2;
  work.operations_in(dtype) = flops;
  work.read_bytes = read_bytes;
  work.write_bytes = write_bytes;
  return work;
}

// A profile and what follows from it: a report without its printers.
class Derived {
 public:
  explicit Derived(Profile profile)
      : analysis_(std::make_shared<const Analysis>(std::make_shared<const Profile>(std::move(profile)))) {}

  const Analysis& analysis() const { return *analysis_; }
  const Profile& data() const { return analysis_->data(); }
  const std::vector<RooflineRow>& rows() const { return analysis_->rows(); }
  const RooflineRow& total() const { return analysis_->total(); }
  const RooflineRow& row(std::string_view path) const { return row_named(path, rows(), data()); }
  const std::vector<KernelRow>& kernels() const { return analysis_->kernels(); }
  const Coverage& coverage() const { return analysis_->coverage(); }
  const std::vector<Siblings>& siblings() const { return analysis_->siblings(); }
  const std::vector<Finding>& findings() const { return analysis_->findings(); }
  std::vector<GroupRow> group(const std::vector<std::string>& keys) const { return group_rows(data(), total(), keys); }

 private:
  std::shared_ptr<const Analysis> analysis_;
};

// Starts with the three roots; everything else is added by the test.
class ProfileBuilder {
 public:
  ProfileBuilder() {
    data.run.model = "Net";
    data.run.device = "cpu";
    data.run.mode = Mode::run;
    data.roofs = round_ceilings();
    data.tree.modules.resize(3);
    data.tree.modules[kModel].type = "Net";
    data.tree.modules[kOutside].path = "(outside)";
    data.tree.modules[kOptimizer].path = "(optimizer)";
    data.tree.modules[kOutside].has_forward = data.tree.modules[kOptimizer].has_forward = false;
  }

  ModuleId module(const std::string& path, const std::string& type, ModuleId parent = kModel) {
    Module module;
    module.path = path;
    module.type = type;
    module.parent = parent;
    data.tree.modules.push_back(std::move(module));
    return static_cast<ModuleId>(data.tree.modules.size() - 1);
  }

  // Its memory is as far as if it ran alone, again and again.
  OpBucket& op(const std::string& name, ModuleId module, const Work& work, std::optional<std::int64_t> time_ns = {},
               std::int64_t calls = 1) {
    OpBucket bucket;
    bucket.op = name;
    bucket.owner.module = module;
    bucket.dtype = DType::fp32;
    bucket.work = work;
    bucket.calls = calls;
    const MemoryTraffic call{work.read_bytes / calls, work.write_bytes / calls, work.updated_bytes / calls};
    add_reuse(bucket.reuse, {call.footprint_bytes(), work.read_bytes, work.write_bytes, work.updated_bytes});
    bucket.time_ns = time_ns;
    data.counts.ops.push_back(std::move(bucket));
    return data.counts.ops.back();
  }

  // One self time for each run. The first call fixes the number of runs; run 0 is the chosen one.
  void time(ModuleId module, std::vector<std::int64_t> self_ns, std::int64_t calls = 1, Phase phase = Phase::forward) {
    if (data.run.runs.total_ns.size() < self_ns.size()) data.run.runs.total_ns.resize(self_ns.size());
    for (std::size_t run = 0; run < self_ns.size(); ++run) data.run.runs.total_ns[run] += self_ns[run];
    if (!self_ns.empty()) data.run.runs.chosen = 0;
    data.times.make().modules.push_back({{module, phase}, calls, std::move(self_ns), {}});
  }

  Derived derived() const { return Derived(data); }
  // For what prints it.
  Report report() const { return make_report(std::make_shared<Profile>(data), {}); }

  Profile data;
};

}  // namespace roofprof::testing
