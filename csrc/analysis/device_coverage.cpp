#include "analysis/device_coverage.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/kernel_arch.h"
#include "analysis/measured.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

constexpr double kWorthTelling = 0.05;    // of the time of all kernels
constexpr int kFirstTensorCores = 70;     // Volta
constexpr std::size_t kNamedKernels = 3;  // further ones are counted
constexpr std::size_t kNameLength = 80;   // templates' names fill pages

// Names of kernels are ASCII.
std::string shortened(const std::string& name) {
  return name.size() <= kNameLength ? name : name.substr(0, kNameLength) + "...";
}

bool on_tensor_cores(DType dtype) {
  constexpr std::array kTypes = {DType::tf32, DType::fp16, DType::bf16,  DType::fp8,
                                 DType::fp4,  DType::int8, DType::uint8, DType::int4};
  return std::find(kTypes.begin(), kTypes.end(), dtype) != kTypes.end();
}

// Returns whether the op that launched the kernel computes in such a type; if its shapes are unknown, all types must
// be.
bool by_tensor_op(const KernelBucket& kernel, const Profile& data) {
  if (kernel.bucket >= 0) return on_tensor_cores(data.counts.ops[static_cast<std::size_t>(kernel.bucket)].dtype);
  bool any = false;
  for (const auto& op : data.counts.ops) {
    if (op.op != kernel.op || op.owner.module != kernel.owner.module || op.owner.phase != kernel.owner.phase) continue;
    if (!on_tensor_cores(op.dtype)) return false;
    any = true;
  }
  return any;
}

struct OlderKernel {
  int architecture = 0;
  std::int64_t total_ns = 0;
  std::set<std::string> launchers;  // "aten::matmul in head"
};

std::string launcher_of(const KernelBucket& kernel, const Profile& data) {
  const std::string& path = data.tree.modules[static_cast<std::size_t>(kernel.owner.module)].path;
  return (kernel.op.empty() ? "no known op" : kernel.op) + " in " + display_path(path);
}

std::string describe(const std::string& name, const OlderKernel& kernel, std::int64_t all_ns) {
  return shortened(name) + " (built for sm_" + std::to_string(kernel.architecture) + ", " +
         percent(static_cast<double>(kernel.total_ns) / static_cast<double>(all_ns)) +
         " of the kernels' time, launched by " + listed(kernel.launchers, kNamed) + ")";
}

// Ranges of kernels hold kernels alone.
void note_uncounted_copies(const Profile& data, std::vector<Note>& notes) {
  if (data.device->counters.ranges != CounterRanges::kernels ||
      !CounterReader(data.device->counters.sources).nothing().dram_bytes)
    return;
  std::int64_t copies = 0;
  std::int64_t fills = 0;
  for (const auto& kernel : data.device->kernels) {
    if (kernel.kind == KernelKind::copy) copies += kernel.instances;
    if (kernel.kind == KernelKind::fill) fills += kernel.instances;
  }
  if (copies + fills == 0) return;
  std::string what;
  if (copies > 0) what = counted(copies, "copy", "copies");
  if (fills > 0) what += (what.empty() ? "" : " and ") + counted(fills, "memset", "memsets");
  add_note(notes, "copies-not-counted",
           "counters are read for kernels: what " + what + " moved is in no measured figure");
}

}  // namespace

bool is_for_older_generation(const KernelBucket& kernel, const Profile& data) {
  const auto device = architecture_of_device(data.device->compute_capability);
  const auto built_for = architecture_in_name(kernel.name);
  if (kernel.kind != KernelKind::kernel || !device || !built_for || *built_for / 10 >= *device / 10) return false;
  return *built_for < kFirstTensorCores || by_tensor_op(kernel, data);
}

void note_counters(const Profile& data, std::vector<Note>& notes) {
  std::map<std::string, std::vector<std::string>> missing;  // by reason
  for (const auto& source : data.device->counters.sources) {
    if (source.missing.empty()) continue;
    missing[source.missing].emplace_back(kCounterNames[static_cast<std::size_t>(source.counter)]);
  }
  for (const auto& [reason, names] : missing) {
    add_note(notes, "counter-not-measured", "not measured: " + listed(names) + ": " + reason);
  }
  note_uncounted_copies(data, notes);
}

void note_older_kernels(const Profile& data, std::vector<Note>& notes) {
  const auto device = architecture_of_device(data.device->compute_capability);
  if (!device) return;
  std::int64_t all_ns = 0;
  std::map<std::string, OlderKernel> older;
  for (const auto& kernel : data.device->kernels) {
    if (kernel.kind != KernelKind::kernel) continue;
    all_ns = saturating_add(all_ns, kernel.total_ns);
    if (!is_for_older_generation(kernel, data)) continue;
    OlderKernel& found = older[kernel.name];
    found.architecture = *architecture_in_name(kernel.name);
    found.total_ns = saturating_add(found.total_ns, kernel.total_ns);
    found.launchers.insert(launcher_of(kernel, data));
  }
  std::vector<std::pair<std::string, OlderKernel>> ranked(older.begin(), older.end());
  std::erase_if(ranked, [&](const auto& kernel) {
    return static_cast<double>(kernel.second.total_ns) < kWorthTelling * static_cast<double>(all_ns);
  });
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  if (ranked.empty() || all_ns == 0) return;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(ranked.size(), kNamedKernels); ++i) {
    names.push_back(describe(ranked[i].first, ranked[i].second, all_ns));
  }
  std::string note =
      "kernels for an older generation than this device's (sm_" + std::to_string(*device) + "): " + listed(names);
  if (ranked.size() > names.size()) note += " and " + std::to_string(ranked.size() - names.size()) + " more";
  add_note(notes, "older-kernels",
           note + "; the library chose them for this type, shape and layout, others may get newer ones");
}

}  // namespace roofprof
