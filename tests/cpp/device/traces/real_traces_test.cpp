// What real devices did, as others recorded it, through the collector: only CUPTI itself is simulated.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

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

struct Recorded {
  const char* name;  // the beginning of the file's, below ROOFPROF_TRACES
  const char* what;
};

void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.name; }

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
  const Delivery backwards{.room = 4096, .kernel_bytes = 216, .reversed = true, .buffer_bytes = 8192};
  expect_same_by({of_13_1, of_12, backwards}, trace, observed);

  // What the import leaves out too: kernels that were launched before, whose call nobody saw.
  DeviceTrace all = trace.device;
  std::map<std::uint64_t, LaunchId> ids;
  for (const auto& record : observed.timed.at(0).device->records) ids.emplace(record.correlation, record.launch);
  for (auto& record : all.records) {
    if (const auto id = ids.find(record.correlation); id != ids.end()) record.launch = id->second;
    all.end_ns = std::max(all.end_ns, record.end_ns);
  }
  all.start_ns = std::ranges::min_element(all.records, {}, &KernelRecord::start_ns)->start_ns;
  expect_same_records(all, collected(trace.host, all, of_13_1));
}

INSTANTIATE_TEST_SUITE_P(
    OfDevices, RealTraces,
    ::testing::Values(Recorded{"tracelens/h100/gaunernst_bert-small", "an eager forward"},
                      Recorded{"tracelens/h100/Falconsai", "an eager forward"},
                      Recorded{"tracelens/h100/Qwen", "a forward, and what was launched before it"},
                      Recorded{"tracelens/h100/facebook_timesformer", "an eager forward"},
                      Recorded{"tracelens/b200/eager_trace", "serving; kernels of one stream that overlap"},
                      Recorded{"hta/control", "training on several ranks"},
                      Recorded{"hta/test", "the same with CUDA graphs"}, Recorded{"hta/nccl_data", "collectives"},
                      Recorded{"hta/alexnet", "an eager forward"}, Recorded{"hta/triton_example", "a Triton kernel"},
                      Recorded{"kineto/resnet50_2021", "training, in the format of 2021"},
                      Recorded{"tracelens/mi300/resnet_act_checkpoint", "training with checkpoints on ROCm"},
                      Recorded{"tracelens/mi300/Qwen", "a forward on ROCm"},
                      Recorded{"tracelens/mi300/normalization_layer_test", "forward and backward of norms on ROCm"},
                      Recorded{"tracelens/sglang_decode/sglang", "a graph's replay on ROCm"},
                      Recorded{"tracelens/vllm_decode/graph_execution", "a graph's replay on ROCm"},
                      Recorded{"tracelens/compiled/triton", "torch.compile on ROCm"}));

}  // namespace
}  // namespace roofprof
