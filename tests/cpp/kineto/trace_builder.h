#pragma once
// Traces written by hand, in whole microseconds, and costs in round numbers: tests can state every figure in closed
// form.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "join/join.h"
#include "kineto/trace_reader.h"
#include "kineto/trace_record.h"
#include "support/profile_builder.h"

namespace roofprof::testing {

// So that no event begins at 0, which stands for "not known".
inline constexpr std::int64_t kTraceBeginUs = 1'000'000;

// The text of a trace, event by event. Times are microseconds from the trace's begin on.
class TraceText {
 public:
  TraceText& event(const std::string& category, const std::string& name, std::int64_t begin, std::int64_t length,
                   const std::string& args = "", const std::string& thread = "1") {
    if (!events_.empty()) events_ += ",\n";
    events_ += R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": 7, "tid": )" + thread +
               R"(, "ts": )" + std::to_string(kTraceBeginUs + begin) + R"(, "dur": )" + std::to_string(length) +
               R"(, "args": {)" + args + "}}";
    return *this;
  }
  TraceText& module(const std::string& instance, std::int64_t begin, std::int64_t length,
                    const std::string& thread = "1") {
    return event("python_function", "nn.Module: " + instance, begin, length, "", thread);
  }
  TraceText& range(const std::string& name, std::int64_t begin, std::int64_t length, const std::string& thread = "1") {
    return event("user_annotation", name, begin, length, "", thread);
  }
  // With shapes, so that it is described.
  TraceText& op(const std::string& name, std::int64_t begin, std::int64_t length, const std::string& more = "",
                const std::string& thread = "1") {
    return event("cpu_op", name, begin, length,
                 R"("Input Dims": [[4, 4]], "Input type": ["float"])" + (more.empty() ? "" : ", " + more), thread);
  }
  // A node of the backward, and the op inside of it.
  TraceText& node(const std::string& name, std::int64_t sequence, std::int64_t begin, std::int64_t length,
                  const std::string& thread = "2") {
    return event("cpu_op", "autograd::engine::evaluate_function: " + name, begin, length,
                 R"("Sequence number": )" + std::to_string(sequence) + R"(, "Fwd thread id": 1)", thread);
  }
  TraceText& launch(std::int64_t correlation, std::int64_t begin, std::int64_t length = 1,
                    const std::string& thread = "1") {
    return event("cuda_runtime", "cudaLaunchKernel", begin, length, correlated(correlation), thread);
  }
  TraceText& kernel(const std::string& name, std::int64_t correlation, std::int64_t begin, std::int64_t length,
                    int stream = 7, int device = 0) {
    return event("kernel", name, begin, length,
                 correlated(correlation) + R"(, "device": )" + std::to_string(device) + R"(, "stream": )" +
                     std::to_string(stream) + R"(, "grid": [8, 1, 1], "block": [256, 1, 1])");
  }
  TraceText& copy(const std::string& name, std::int64_t correlation, std::int64_t begin, std::int64_t length,
                  std::int64_t bytes) {
    return event(name.starts_with("Memset") ? "gpu_memset" : "gpu_memcpy", name, begin, length,
                 correlated(correlation) + R"(, "device": 0, "stream": 7, "bytes": )" + std::to_string(bytes));
  }

  // A member of the document, beside its events.
  TraceText& fact(const std::string& member) {
    facts_ += member + ", ";
    return *this;
  }

  std::string text() const {
    return "{" + facts_ +
           R"("schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, )"
           R"("computeMinor": 0}], "traceEvents": [)" +
           events_ + "]}";
  }
  kineto::Trace trace() const {
    kineto::TraceReader reader;
    reader.feed(text());
    return reader.finish();
  }

 private:
  static std::string correlated(std::int64_t correlation) { return R"("correlation": )" + std::to_string(correlation); }
  std::string events_;
  std::string facts_;
};

// Every op of `costs` has that many FLOPs a call and moves 100 bytes; `views` move nothing, `composites` only call
// others; of the rest nothing is known.
struct FakeCosts final : kineto::CallCosts {
  std::map<std::string, std::int64_t> costs = {{"aten::mm", 1000}, {"aten::add", 16}, {"aten::addmm", 2000}};
  std::vector<std::string> views = {"aten::view", "aten::t"};
  std::vector<std::string> composites = {"aten::linear", "aten::matmul"};
  std::vector<std::string> operators = {"aten::relu", "aten::max_pool2d_with_indices",
                                        "aten::_native_batch_norm_legit"};
  bool is_operator(const std::string& name) override {
    return costs.contains(name) || std::ranges::find(operators, name) != operators.end();
  }
  observe::OpClass class_of(const kineto::RecordedCall& call) override {
    observe::OpClass result;
    if (costs.contains(call.op)) {
      result.kind = observe::OpKind::counted;
    } else if (std::ranges::find(views, call.op) != views.end()) {
      result.kind = observe::OpKind::view;
    } else if (std::ranges::find(composites, call.op) != composites.end()) {
      result.kind = observe::OpKind::transparent;
    }
    return result;
  }
  ops::Costed cost_of(const kineto::RecordedCall& call) override {
    ops::Costed result;
    result.costed = true;
    const auto known = costs.find(call.op);
    if (known == costs.end()) return result;  // a view
    result.work = work_of(known->second, 80, 20);
    result.dtype = DType::fp32;
    return result;
  }
};

// A model "Net" of one layer, which its call calls.
inline kineto::CalledModel model_of_a_layer(const std::string& path) {
  kineto::CalledModel model;
  model.modules.resize(4);
  model.modules[kModel].type = "Net";
  model.modules[kOutside].path = "(outside)";
  model.modules[kOptimizer].path = "(optimizer)";
  model.modules[3].path = path;
  model.modules[3].type = "Linear";
  model.modules[3].parent = kModel;
  model.calls = {{kModel, kineto::kNone, {}}, {3, 0, {}}};
  return model;
}

inline RunRecord observed_of(const TraceText& text, const std::optional<kineto::StepRange>& steps = {},
                             const kineto::CalledModel* model = nullptr) {
  FakeCosts costs;
  auto observed = kineto::trace_record(text.trace(), costs, steps, model);
  observed.roofs = round_ceilings();
  return observed;
}

inline Derived derived_of(const TraceText& text, const std::optional<kineto::StepRange>& steps = {},
                          const kineto::CalledModel* model = nullptr) {
  return Derived(join(observed_of(text, steps, model)));
}

// The texts of the notes of that code, one after the other.
inline std::string note_of(const std::vector<Note>& notes, std::string_view code) {
  std::string text;
  for (const auto& note : notes) {
    if (note.code == code) text += note.text + "\n";
  }
  return text;
}

}  // namespace roofprof::testing
