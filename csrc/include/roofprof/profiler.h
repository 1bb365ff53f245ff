#pragma once
// roofprof::RooflineProfiler prof(model);
// roofprof::Report report = prof.run(input);

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofprof/report.h"

namespace c10 {
struct IValue;
}
namespace torch::jit {
struct Module;
}
namespace torch::nn {
class Module;
}

namespace roofprof {

struct ProfilerOptions {
  std::int64_t warmup = 3;             // calls that are not timed
  std::optional<std::int64_t> repeat;  // timed calls; empty: at most 10 or 5 seconds
  std::optional<Ceilings> ceilings;    // roofs to use; empty: this machine's, measured once per process
};

namespace detail {

// What a profiler does, whatever the model's type.
class ProfilerCore {
 public:
  // `model` outlives the profiler.
  ProfilerCore(const torch::nn::Module& model, ProfilerOptions options);
  ProfilerCore(const torch::jit::Module& model, ProfilerOptions options);
  ~ProfilerCore();
  ProfilerCore(const ProfilerCore&) = delete;
  ProfilerCore& operator=(const ProfilerCore&) = delete;

  Report run_repeatedly(const std::function<void()>& call);
  Report run_script(std::vector<c10::IValue> inputs);
  Report run_once(const std::function<void()>& closure);
  Report report() const;

 private:
  Report repeat(const std::function<void()>& counted, const std::function<void()>& call);

  struct State;
  std::unique_ptr<State> state_;
};

template <class Model>
constexpr bool is_script = std::is_same_v<Model, torch::jit::Module>;

template <class Model>
const auto& module_of(const Model& model) {
  if constexpr (is_script<Model>) {
    return model;
  } else if constexpr (requires { model.ptr(); }) {
    return *model.ptr();  // a module holder
  } else if constexpr (requires { *model; }) {
    return *model;
  } else {
    return model;
  }
}

}  // namespace detail

// Profiles calls of a model, or closures around it. The model outlives the profiler. One profiler at a time on a
// thread: a second one inside another's run throws std::logic_error.
template <class Model>
class RooflineProfiler {
 public:
  // A module holder (torch::nn::Linear), a shared_ptr to a module, a module, or a torch::jit::Module.
  explicit RooflineProfiler(const Model& model, ProfilerOptions options = {})
      : model_(&model), core_(detail::module_of(model), std::move(options)) {}

  // Profiles model.forward(args...): one call counts, further ones warm up and are timed; buffers and the random number
  // generator are left as one plain call leaves them. TorchScript takes what an IValue can be made of: tensors,
  // numbers, dicts, lists, tuples. A single argument that is itself callable without arguments is a closure: it is run
  // exactly once, because it may train. Throws what the model throws; report() then gives what ran before, marked
  // partial.
  template <class... Args>
  Report run(Args&&... args) {
    if constexpr (sizeof...(Args) == 1 && (std::is_invocable_v<Args&> && ...)) {
      return core_.run_once([&] { (static_cast<void>(args()), ...); });
    } else if constexpr (detail::is_script<Model>) {
      std::vector<c10::IValue> inputs;
      inputs.reserve(sizeof...(Args));
      (inputs.emplace_back(std::forward<Args>(args)), ...);
      return core_.run_script(std::move(inputs));
    } else {
      // forward is not const in torch::nn, although the holders hand out what is.
      auto& module = const_cast<std::remove_cvref_t<decltype(detail::module_of(*model_))>&>(detail::module_of(*model_));
      return core_.run_repeatedly([&] { static_cast<void>(module.forward(args...)); });
    }
  }

  // The last run's report; of one that threw, what ran before. Throws std::logic_error where nothing was run yet.
  Report report() const { return core_.report(); }

 private:
  const Model* model_;
  detail::ProfilerCore core_;
};

}  // namespace roofprof
