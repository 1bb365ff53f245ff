#pragma once
// roofprof::RooflineProfiler prof(model);
// roofprof::Report report = prof.run(input);

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "roofprof/counters.h"
#include "roofprof/detail/call.h"
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

// RooflineProfiler prof(model, {.warmup = 1, .repeat = 5});
struct ProfilerOptions {
  std::int64_t warmup = 3;                  // calls that are not timed
  std::optional<std::int64_t> repeat = {};  // timed calls; empty: at most 10 or 5 seconds
  std::optional<std::int64_t> depth = {};   // deepest row of the report's tables; empty: as many as stay readable
  std::optional<Ceilings> ceilings = {};    // roofs to use; empty: this machine's own, measured once (10 s) and kept
  Counters counters = Counters::automatic;
  // Whose kernels and roofs count ("cuda:0"); empty: where the model's parameters or inputs are.
  std::string device = {};
  // Told what is measured where this machine's roofs are not known yet; empty: stderr is.
  Progress progress = {};
};

namespace detail {

using ScriptArguments = std::vector<c10::IValue>;
using ScriptKeywords = std::unordered_map<std::string, c10::IValue>;

struct ProfilerState;

// What a profiler does, whatever the model's type.
class ProfilerCore {
 public:
  // `model` outlives the runs; null is refused with std::invalid_argument, as are options that make no sense.
  ProfilerCore(const torch::nn::Module* model, ProfilerOptions options);
  ProfilerCore(const torch::jit::Module& model, ProfilerOptions options);

  Report run(Call& call);
  Report run_script(ScriptArguments arguments, ScriptKeywords keywords);
  Report run_once(const std::function<void()>& closure);
  Report report() const;

 private:
  std::shared_ptr<ProfilerState> state_;  // a run keeps it, because the profiler may be destroyed meanwhile
};

template <class Model>
concept PlainModule = std::is_base_of_v<torch::nn::Module, Model>;
template <class Model>
concept ScriptModule = std::is_same_v<std::remove_const_t<Model>, torch::jit::Module>;
template <class Model>
concept ModuleHandle =
    std::copyable<Model> && (requires(const Model& model) { model.ptr(); } || requires(const Model& model) { *model; });

// `model` is what a profiler keeps: a pointer to a module, or a handle.
template <class Model>
const torch::nn::Module* module_of(const Model& model) {
  if constexpr (requires { model.is_empty(); }) {
    return model.is_empty() ? nullptr : &*model.ptr();
  } else {
    return model ? &*model : nullptr;
  }
}

template <class Model, class... Args>
void call_forward(Model& model, Args&&... args) {
  if constexpr (requires { model.any_forward(std::forward<Args>(args)...); }) {
    static_cast<void>(model.any_forward(std::forward<Args>(args)...));  // AnyModule, whatever it returns
  } else {
    static_cast<void>(model->forward(std::forward<Args>(args)...));
  }
}

// TorchScript's types, named only where a program uses them: torch's headers may come after this one.
template <class Model>
struct ScriptCallOf {
  ScriptArguments arguments;
  ScriptKeywords keywords;

  template <class Arg>
  void add(Arg&& arg) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Arg>, ScriptArguments>) {
      arguments.insert(arguments.end(), arg.begin(), arg.end());
    } else if constexpr (std::is_same_v<std::remove_cvref_t<Arg>, ScriptKeywords>) {
      keywords.insert(arg.begin(), arg.end());
    } else {
      arguments.emplace_back(std::forward<Arg>(arg));
    }
  }
};

template <class... Args>
constexpr bool is_closure = false;
template <class Arg>
constexpr bool is_closure<Arg> = std::is_invocable_v<Arg&>;

}  // namespace detail

// Profiles calls of a model, or closures around it. Can be moved, not copied. One profiler at a time on a thread, and
// one thread at a time in a profiler: a call that breaks this rule throws std::logic_error and does not disturb the run
// under way.
template <class Model>
class RooflineProfiler {
 public:
  // A module, by reference: it outlives the profiler's runs.
  explicit RooflineProfiler(Model& model, ProfilerOptions options = {})
    requires detail::PlainModule<Model>
      : model_(&model), core_(model_, std::move(options)) {}
  explicit RooflineProfiler(const Model&& model, ProfilerOptions options = {})
    requires detail::PlainModule<Model>
  = delete;
  // A module holder, AnyModule or shared_ptr to a module: shared with the caller.
  explicit RooflineProfiler(Model model, ProfilerOptions options = {})
    requires(!detail::PlainModule<Model> && !detail::ScriptModule<Model> && detail::ModuleHandle<Model>)
      : model_(std::move(model)), core_(detail::module_of(model_), std::move(options)) {}
  // A torch::jit::Module, which is a handle too.
  explicit RooflineProfiler(Model model, ProfilerOptions options = {})
    requires detail::ScriptModule<Model>
      : model_(std::move(model)), core_(model_, std::move(options)) {}

  RooflineProfiler(RooflineProfiler&&) noexcept = default;  // what was moved from can only be assigned to or destroyed
  RooflineProfiler& operator=(RooflineProfiler&&) noexcept = default;
  RooflineProfiler(const RooflineProfiler&) = delete;
  RooflineProfiler& operator=(const RooflineProfiler&) = delete;

  // Profiles model.forward(args...): one call counts, further ones warm up and are timed. What the model registers, the
  // arguments, gradients and the random numbers are left as the first call leaves them; each further one gets
  // copies of the arguments, and where they can only be moved there is none. TorchScript takes what an IValue can be
  // made of (tensors, numbers, dicts, lists, tuples, std::optional); a std::vector<IValue> stands for that many
  // arguments and an std::unordered_map<std::string, IValue> for keyword arguments, as in torch::jit::Module::forward.
  //
  // A single argument that can be called without arguments is a closure: it is run exactly once, because it may train.
  //
  // Throws what the first call throws, as it was thrown; report() then gives what ran before, marked partial.
  template <class... Args>
  Report run(Args&&... args) {
    [[maybe_unused]] auto model = model_;  // because the profiler may be destroyed while the run is under way
    if constexpr (detail::is_closure<Args...>) {
      return core_.run_once([&] { (static_cast<void>(args()), ...); });
    } else if constexpr (detail::ScriptModule<Model>) {
      detail::ScriptCallOf<Model> call;
      (call.add(std::forward<Args>(args)), ...);
      return core_.run_script(std::move(call.arguments), std::move(call.keywords));
    } else {
      const auto forward = [&model](auto&&... given) {
        detail::call_forward(model, std::forward<decltype(given)>(given)...);
      };
      detail::CallOf<decltype(forward), Args...> call(forward, std::forward<Args>(args)...);
      return core_.run(call);
    }
  }

  // The last run's report; of one that threw, what ran before. Throws std::logic_error where nothing was run yet.
  Report report() const { return core_.report(); }

 private:
  std::conditional_t<detail::PlainModule<Model>, Model*, Model> model_;
  detail::ProfilerCore core_;
};

// Deduction for RooflineProfiler prof(model).
template <detail::PlainModule Model>
RooflineProfiler(Model&, ProfilerOptions = {}) -> RooflineProfiler<Model>;
template <detail::PlainModule Model>  // a temporary, gone before the profiler runs: deleted
RooflineProfiler(const Model&&, ProfilerOptions = {}) -> RooflineProfiler<Model>;
template <class Model>
  requires(!detail::PlainModule<Model>)
RooflineProfiler(Model, ProfilerOptions = {}) -> RooflineProfiler<Model>;

}  // namespace roofprof
