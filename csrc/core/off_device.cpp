#include "core/off_device.h"

#include <utility>
#include <vector>

namespace roofprof {

namespace {

// Returns for each module whether it or one above it runs compiled code, by id.
std::vector<bool> in_compiled_code(const Counts& counts, const Tree& tree) {
  std::vector<bool> compiled(tree.modules.size());
  for (const auto& op : counts.ops) {
    if (is_time_of_region(op.op) || is_compiled_code(op.op)) compiled[index_of(op.owner.module)] = true;
  }
  for (std::size_t id = 0; id < compiled.size(); ++id) {  // parents stand before children
    const auto& module = tree.modules[id];
    if (module.compiled_region >= 0 || (module.parent >= 0 && compiled[index_of(module.parent)])) compiled[id] = true;
  }
  return compiled;
}

bool has_work(const Work& work) { return work.bytes() > 0 || work.flops() > 0 || work.int_ops() > 0; }

}  // namespace

void set_off_device(Counts& counts, const Tree& tree, const Maybe<DeviceWork>& device) {
  for (auto& op : counts.ops) op.off_device = false;
  if (device->kernels.empty()) return;
  std::vector<bool> launched(counts.ops.size());
  for (const auto& kernel : device->kernels) {
    if (kernel.bucket >= 0 && std::cmp_less(kernel.bucket, launched.size())) {  // a file may say anything
      launched[static_cast<std::size_t>(kernel.bucket)] = true;
    }
  }
  const auto compiled = in_compiled_code(counts, tree);
  for (std::size_t i = 0; i < launched.size(); ++i) {
    OpBucket& op = counts.ops[i];
    op.off_device =
        op.costed && op.time_ns == 0 && !launched[i] && has_work(op.work) && !compiled[index_of(op.owner.module)];
  }
}

}  // namespace roofprof
