// The collector gets what real devices did, as others recorded it: only CUPTI itself is simulated.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "device/traces/checks.h"
#include "kineto/importer/meta_costs.h"
#include "kineto/trace_reader.h"
#include "kineto/trace_record.h"

namespace roofprof {
namespace {

using testing::collected;
using testing::Delivery;
using testing::expect_same_by;
using testing::expect_same_records;

// Figures are those of the folder's README; 0: it has none.
struct Recorded {
  const char* name;  // the beginning of the file's, below ROOFPROF_TRACES
  const char* what;
  std::int64_t kernels;
  double microseconds;        // the sum of their times
  std::int64_t overlaps = 0;  // kernels that begin before another one of their stream has ended
};

void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.name << ": " << recorded.what; }

std::string path_of(const std::string& name) {
  const char* folder = std::getenv("ROOFPROF_TRACES");
  if (folder == nullptr) return "";
  const std::filesystem::path beginning = std::filesystem::path(folder) / name;
  if (!std::filesystem::is_directory(beginning.parent_path())) return "";
  for (const auto& file : std::filesystem::directory_iterator(beginning.parent_path())) {
    if (file.path().filename().string().starts_with(beginning.filename().string()) && file.is_regular_file()) {
      return file.path();
    }
  }
  return "";
}

kineto::Trace read(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> unpacked(popen(("gzip -dc '" + path + "'").c_str(), "r"), &pclose);
  kineto::TraceReader reader;
  std::string piece(std::size_t{1} << 20, '\0');
  while (const auto bytes = std::fread(piece.data(), 1, piece.size(), unpacked.get())) {
    reader.feed(std::string_view(piece).substr(0, bytes));
  }
  return reader.finish();
}

class RealTraces : public WithFakes, public ::testing::WithParamInterface<Recorded> {};

TEST_P(RealTraces, TheCollectorSaysWhatTheImportSays) {
  const auto path = path_of(GetParam().name);
  if (path.empty()) GTEST_SKIP() << "ROOFPROF_TRACES names no folder with " << GetParam().name;
  const auto trace = read(path);
  kineto::MetaCosts costs;
  const auto observed = kineto::trace_record(trace, costs);
  const Delivery of_13_1;
  const Delivery of_12{.room = 300, .kernel_bytes = 208, .copy_bytes = 80, .on_its_own_thread = true};
  const Delivery backwards{.room = 4096, .kernel_bytes = 216, .reversed = true, .buffer_bytes = 8192, .by_ids = true};
  expect_same_by({of_13_1, of_12, backwards}, trace, observed);

  // The same with kernels that were launched before the trace and that the import leaves out: nobody saw their call.
  DeviceTrace all = trace.device;
  std::map<std::uint64_t, LaunchId> ids;
  for (const auto& record : observed.timed.at(0).device->records) ids.emplace(record.correlation, record.launch);
  for (auto& record : all.records) {
    if (const auto id = ids.find(record.correlation); id != ids.end()) record.launch = id->second;
    all.end_ns = std::max(all.end_ns, record.end_ns);
  }
  all.start_ns = std::ranges::min_element(all.records, {}, &KernelRecord::start_ns)->start_ns;
  const auto device = collected(trace.host, all, of_13_1);
  expect_same_records(all, device);

  std::vector<KernelRecord> kernels;
  std::ranges::copy_if(device.records, std::back_inserter(kernels),
                       [](const KernelRecord& record) { return record.kind == KernelKind::kernel; });
  std::ranges::sort(kernels, {}, [](const KernelRecord& of) { return std::tuple(of.device, of.stream, of.start_ns); });
  double microseconds = 0;
  std::int64_t overlaps = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    microseconds += static_cast<double>(kernels[i].end_ns - kernels[i].start_ns) / 1000;
    const bool same_stream = i > 0 && std::pair(kernels[i].device, kernels[i].stream) ==
                                          std::pair(kernels[i - 1].device, kernels[i - 1].stream);
    overlaps += same_stream && kernels[i].start_ns < kernels[i - 1].end_ns ? 1 : 0;
  }
  if (GetParam().kernels > 0) {
    EXPECT_EQ(std::ssize(kernels), GetParam().kernels);
  }
  if (GetParam().microseconds > 0) {
    EXPECT_NEAR(microseconds, GetParam().microseconds, 0.06);
  }
  if (GetParam().overlaps > 0) {
    EXPECT_EQ(overlaps, GetParam().overlaps);
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfDevices, RealTraces,
    ::testing::Values(
        Recorded{"tracelens/h100/gaunernst_bert-small", "an eager forward", 60, 307.2},
        Recorded{"tracelens/h100/Falconsai", "an eager forward", 154, 1'220.9},
        Recorded{"tracelens/h100/Qwen", "a forward, and what was launched before it", 1'465, 45'432.7},
        Recorded{"tracelens/h100/facebook_timesformer", "an eager forward", 446, 154'855.6},
        Recorded{"tracelens/b200/eager_trace", "serving; kernels of one stream that overlap", 768, 10'862.9, 74},
        Recorded{"hta/control", "training on several ranks", 8'568, 0},
        Recorded{"hta/test", "the same with CUDA graphs", 9'876, 0}, Recorded{"hta/nccl_data", "collectives", 2'700, 0},
        Recorded{"hta/alexnet", "an eager forward", 0, 0}, Recorded{"hta/triton_example", "a Triton kernel", 0, 0},
        Recorded{"kineto/resnet50_2021", "training, in the format of 2021", 0, 0},
        Recorded{"tracelens/mi300/resnet_act_checkpoint", "training with checkpoints on ROCm", 2'995, 97'255.8},
        Recorded{"tracelens/mi300/Qwen", "a forward on ROCm", 1'516, 43'062.0},
        Recorded{"tracelens/mi300/normalization_layer_test", "forward and backward of norms on ROCm", 168, 992.0},
        Recorded{"tracelens/sglang_decode/sglang", "a graph's replay on ROCm", 555, 9'765.4},
        Recorded{"tracelens/vllm_decode/graph_execution", "a graph's replay on ROCm", 425, 10'674.5},
        Recorded{"tracelens/compiled/triton", "torch.compile on ROCm", 12, 12'549.0}));

}  // namespace
}  // namespace roofprof
