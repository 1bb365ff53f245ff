#pragma once
// roofprof::RooflineProfiler prof(model);
// roofprof::Report report = prof.run(input);

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "roofprof/counters.h"
#include "roofprof/detail/call.h"
#include "roofprof/error.h"
#include "roofprof/report.h"
#include "roofprof/version.h"

namespace c10 {
struct IValue;
}
namespace torch::inductor {
class AOTIModelPackageLoader;
}
namespace torch::jit {
struct Module;
}
namespace torch::nn {
class Module;
}

namespace roofprof {

// The calls of the model that a block, closure or step includes. own: calls on its own thread and on the threads that
// it starts (or torch for it); a note says how many others were left out. all: calls on all threads.
enum class Threads : std::uint8_t { own, all };

// RooflineProfiler prof(model, {.warmup = 1, .repeat = 5});
struct ProfilerOptions {
  std::optional<std::int64_t> warmup = {};  // calls that are not timed; empty: 3, or as many as begin in 2.5 seconds
  std::optional<std::int64_t> repeat = {};  // timed calls; empty: at most 10 or 5 seconds; 0: run() only counts
  std::optional<std::int64_t> depth = {};   // deepest row of the report's tables; empty: as many as stay readable
  // Roofs to use; empty: those that the environment variable ROOFPROF_CEILINGS names, else this machine's own, measured
  // once (20 s at most) and kept. `Ceilings{}`: none.
  std::optional<Ceilings> ceilings = {};
  Counters counters = Counters::automatic;
  // The device whose kernels and roofs count ("cuda:0"); empty: where the model's parameters or inputs are.
  std::string device = {};
  Threads threads = Threads::own;  // for blocks, closures and steps; run() always has its own call alone
  // Keep when each op, module call and kernel of the run that the rows come from began and ended: the report's JSON has
  // them, and `roofprof trace` makes a trace of it. At most a million of each.
  bool keep_events = false;
  // Called with what is measured if this machine's roofs are not known yet; empty: stderr has it, after two seconds.
  Progress progress = {};
};

namespace detail {

using ScriptArguments = std::vector<c10::IValue>;
using ScriptKeywords = std::unordered_map<std::string, c10::IValue>;

struct ProfilerState;
class ProfilerRun;

// times: calls are counted and timed; counts: one call is counted.
enum class RunMode : std::uint8_t { times, counts };

// Make what a profiler of that model keeps between its runs. `handle` keeps a module alive where it can. They throw
// InvalidArgument for a model that is null or empty, and for options that make no sense.
std::shared_ptr<ProfilerState> state_of(const torch::nn::Module* model, ProfilerOptions options,
                                        std::shared_ptr<const void> handle = {});
std::shared_ptr<ProfilerState> state_of(const torch::jit::Module& model, ProfilerOptions options);
std::shared_ptr<ProfilerState> state_of(torch::inductor::AOTIModelPackageLoader* package, ProfilerOptions options);

template <class Model>
concept PlainModule = std::is_base_of_v<torch::nn::Module, Model>;
template <class Model>
concept PackageLoader = std::is_same_v<Model, torch::inductor::AOTIModelPackageLoader>;
// Models that a profiler takes by reference.
template <class Model>
concept Referred = PackageLoader<Model> || PlainModule<Model>;
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
decltype(auto) call_forward(Model& model, Args&&... args) {
  if constexpr (requires { model.any_forward(std::forward<Args>(args)...); }) {
    return model.any_forward(std::forward<Args>(args)...);  // AnyModule, whatever it returns
  } else if constexpr (requires { requires PackageLoader<std::remove_cvref_t<decltype(*model)>>; }) {
    return model->run(std::forward<Args>(args)...);
  } else {
    return model->forward(std::forward<Args>(args)...);
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

// True if the model, as the profiler keeps it, has a forward for that argument.
template <class Kept, class Arg>
concept HasForward = requires(Kept& model, Arg&& arg) { model->forward(std::forward<Arg>(arg)); } ||
                     requires(Kept& model, Arg&& arg) { model.any_forward(std::forward<Arg>(arg)); };

// True if there is exactly one forward, which is not a template. Templates (Sequential's, AnyModule's, forward(auto))
// take anything, so they say nothing about an argument.
template <class Kept>
concept HasPlainForward = requires(Kept& model) { &std::remove_reference_t<decltype(*model)>::forward; };
// Stands for an `Arg` that is passed on unconverted.
template <class Arg>
struct Exactly {
  // NOLINTNEXTLINE(google-explicit-constructor): that is its use
  operator std::remove_reference_t<Arg>&() const;
};

// The meaning of a single argument that can be called without arguments.
enum class Callable : std::uint8_t { no, closure, argument, either };
template <class Kept, class... Args>
constexpr Callable callable = Callable::no;
template <class Kept, class Arg>
  requires std::is_invocable_v<Arg&>
constexpr Callable callable<Kept, Arg> = [] {
  if constexpr (!HasPlainForward<Kept>) {
    return Callable::closure;
  } else if constexpr (HasForward<Kept, Exactly<Arg>>) {
    return Callable::argument;
  } else {
    return HasForward<Kept, Arg> ? Callable::either : Callable::closure;
  }
}();

// What run(args...) calls, and what that returns.
template <class Kept, class... Args>
decltype(auto) returned_by(Kept& model, Args&&... args) {
  if constexpr (callable<Kept, Args...> == Callable::closure) {
    return (args(), ...);
  } else {
    return call_forward(model, std::forward<Args>(args)...);
  }
}

}  // namespace detail

class Block;

// What RooflineProfiler::run_with_result returns: auto [report, result] = prof.run_with_result(x);
template <class Result>
struct Outcome {
  Report report;
  Result result;
};
template <>
struct Outcome<void> {
  Report report;
};

template <class Model = void>
class RooflineProfiler;

// A profiler of any model, for members and parameters that shall not name its type: every other profiler is one. It
// profiles closures, steps and blocks. Can be moved, not copied; a profiler that was moved from throws LogicError. One
// profiler at a time on a thread, and one thread at a time in a profiler: a call that breaks this rule throws
// LogicError and does not disturb the run under way.
//
//   struct Trainer {
//     roofprof::RooflineProfiler<> prof;  // Trainer{RooflineProfiler(model)}
//   };
template <>
class RooflineProfiler<void> {
 public:
  RooflineProfiler(RooflineProfiler&&) noexcept = default;
  RooflineProfiler& operator=(RooflineProfiler&&) noexcept = default;
  RooflineProfiler(const RooflineProfiler&) = delete;
  RooflineProfiler& operator=(const RooflineProfiler&) = delete;

  // Runs the closure exactly once, because it may train. Throws what it throws; report() then gives what ran before,
  // marked partial.
  template <class Closure>
    requires std::is_invocable_v<Closure&>
  Report run(Closure&& closure) {
    return run_closure([&] { static_cast<void>(closure()); }, detail::RunMode::times);
  }
  // The same, only counted: nothing is timed, no roofs are measured.
  template <class Closure>
    requires std::is_invocable_v<Closure&>
  Report count(Closure&& closure) {
    return run_closure([&] { static_cast<void>(closure()); }, detail::RunMode::counts);
  }
  // Runs the closure that often, each time a step: of training, for example. It is observed as it is, and nothing is
  // put back. The report covers all steps together, and its table's header has the mean of a step. Throws
  // InvalidArgument for less than one step, and what a step throws.
  template <class Step>
    requires std::is_invocable_v<Step&>
  Report run_steps(std::int64_t steps, Step&& step) {
    return run_each_step(steps, [&] { static_cast<void>(step()); });
  }
  // Returns the report of the last run or block; if it threw, of what ran before. The roofs of this machine are
  // measured now where they are needed and not known yet. Throws LogicError where nothing was profiled yet, and inside
  // of a block.
  [[nodiscard]] Report report() const;

 protected:
  explicit RooflineProfiler(std::shared_ptr<detail::ProfilerState> state) : state_(std::move(state)) {}
  Report run_call(detail::Call& call, detail::RunMode wish);
  // `keep` gets what the first call returns.
  Report run_script(detail::ScriptArguments arguments, detail::ScriptKeywords keywords, detail::RunMode wish,
                    const std::function<void(c10::IValue&&)>& keep);
  Report run_closure(const std::function<void()>& closure, detail::RunMode wish);

 private:
  friend class Block;
  Report run_each_step(std::int64_t steps, const std::function<void()>& step);
  const std::shared_ptr<detail::ProfilerState>& state() const;

  std::shared_ptr<detail::ProfilerState> state_;  // a run keeps it, because the profiler may be destroyed meanwhile
};

// Profiles calls of a model, too. RooflineProfiler prof(model) finds the type by itself.
template <class Model>
class RooflineProfiler : public RooflineProfiler<void> {
 public:
  // A module, or the loader of an AOTInductor package, by reference: it outlives the profiler's runs and blocks.
  explicit RooflineProfiler(Model& model, ProfilerOptions options = {})
    requires detail::Referred<Model>
      : Base(detail::state_of(&model, std::move(options))), model_(&model) {}
  explicit RooflineProfiler(const Model&& model, ProfilerOptions options = {})
    requires detail::Referred<Model>
  = delete;
  // A module holder, AnyModule or shared_ptr to a module: shared with the caller, and kept by runs and blocks too.
  explicit RooflineProfiler(Model model, ProfilerOptions options = {})
    requires(!detail::Referred<Model> && !detail::ScriptModule<Model> && detail::ModuleHandle<Model>)
      : Base(detail::state_of(detail::module_of(model), std::move(options), std::make_shared<const Model>(model))),
        model_(std::move(model)) {}
  // A torch::jit::Module, which is a handle too.
  explicit RooflineProfiler(Model model, ProfilerOptions options = {})
    requires detail::ScriptModule<Model>
      : Base(detail::state_of(model, std::move(options))), model_(std::move(model)) {}

  // Profiles model.forward(args...), of a package run(args...): one call counts, further ones warm up and are timed.
  // What the model registers, the arguments, gradients and the random numbers are left as the first call leaves them;
  // each further one gets copies of the arguments, and where they can only be moved there is none. TorchScript takes
  // what an IValue can be made of (tensors, numbers, dicts, lists, tuples, std::optional); a std::vector<IValue> stands
  // for that many arguments and an std::unordered_map<std::string, IValue> for keyword arguments, as in
  // torch::jit::Module::forward.
  //
  // A single argument that can be called without arguments is a closure, unless the model's only forward takes that
  // very type: it is run exactly once, because it may train.
  //
  // Throws what the first call throws, as it was thrown; report() then gives what ran before, marked partial.
  template <class... Args>
  Report run(Args&&... args) {
    return called(detail::RunMode::times, detail::Drop(), std::forward<Args>(args)...);
  }
  // run({x}): the arguments of a TorchScript model; of others one argument that is made of this list, as by
  // forward({x}).
  template <class Item>
  Report run(std::initializer_list<Item> list) {
    return called_with(detail::RunMode::times, detail::Drop(), list);
  }
  Report run(std::initializer_list<c10::IValue> arguments)
    requires detail::ScriptModule<Model>
  {
    return called_with(detail::RunMode::times, detail::Drop(), arguments);
  }

  // The same, and what the first call returned: a tensor, a tuple, nothing (Outcome<void>), of TorchScript an IValue,
  // of a closure what it returns. References become values. Later calls are put back, so that it is as one call leaves
  // it.
  template <class... Args>
  [[nodiscard]] auto run_with_result(Args&&... args) {
    return with_result(result_of<Args...>(), [&](const auto& keep) {
      return called(detail::RunMode::times, keep, std::forward<Args>(args)...);
    });
  }
  [[nodiscard]] auto run_with_result(std::initializer_list<c10::IValue> arguments)
    requires detail::ScriptModule<Model>
  {
    return with_result(std::type_identity<c10::IValue>(),
                       [&](const auto& keep) { return called_with(detail::RunMode::times, keep, arguments); });
  }

  // Counts exactly one call model.forward(args...), or one run of a closure; nothing is timed, no roofs are measured.
  // Takes what run() takes, and tensors of the meta device, where nothing is allocated and LibTorch has few operators.
  template <class... Args>
  Report count(Args&&... args) {
    return called(detail::RunMode::counts, detail::Drop(), std::forward<Args>(args)...);
  }
  template <class Item>
  Report count(std::initializer_list<Item> list) {
    return called_with(detail::RunMode::counts, detail::Drop(), list);
  }
  Report count(std::initializer_list<c10::IValue> arguments)
    requires detail::ScriptModule<Model>
  {
    return called_with(detail::RunMode::counts, detail::Drop(), arguments);
  }

 private:
  using Base = RooflineProfiler<void>;
  using Kept = std::conditional_t<detail::Referred<Model>, Model*, Model>;

  // The type of what such a call returns, as a value.
  template <class... Args>
  static auto result_of() {
    if constexpr (detail::ScriptModule<Model> && detail::callable<Kept, Args...> != detail::Callable::closure) {
      return std::type_identity<c10::IValue>();
    } else {
      using Returned = decltype(detail::returned_by(std::declval<Kept&>(), std::declval<Args>()...));
      return std::type_identity<std::remove_cvref_t<Returned>>();
    }
  }

  template <class Result>
  auto with_result(std::type_identity<Result> /*type*/, const auto& run) {
    if constexpr (std::is_void_v<Result>) {
      return Outcome<void>{run(detail::Drop())};
    } else {
      std::optional<Result> result;
      const Report report = run([&](auto&& returned) { result.emplace(std::forward<decltype(returned)>(returned)); });
      return Outcome<Result>{report, std::move(*result)};
    }
  }

  // `keep` gets what the first call returns, if it returns anything.
  template <class Keep, class... Args>
  Report called(detail::RunMode wish, const Keep& keep, Args&&... args) {
    [[maybe_unused]] auto model = model_;  // because the profiler may be destroyed while the run is under way
    constexpr auto kCallable = detail::callable<Kept, Args...>;
    static_assert(kCallable != detail::Callable::either,
                  "roofprof: this may be a closure to run or an argument of the model's forward, which takes it "
                  "converted: give run_steps(1, closure) the closure, or run() the very type of forward's argument");
    if constexpr (kCallable == detail::Callable::closure || kCallable == detail::Callable::either) {
      const auto run = [&] {
        if constexpr ((std::is_void_v<std::invoke_result_t<Args&>> || ...)) {
          (args(), ...);
        } else {
          (keep(args()), ...);
        }
      };
      return Base::run_closure(run, wish);
    } else if constexpr (detail::ScriptModule<Model>) {
      detail::ScriptCallOf<Model> call;
      (call.add(std::forward<Args>(args)), ...);
      return Base::run_script(std::move(call.arguments), std::move(call.keywords), wish, keep);
    } else {
      const auto forward = [&model](auto&&... given) -> decltype(auto) {
        return detail::call_forward(model, std::forward<decltype(given)>(given)...);
      };
      detail::CallOf<Keep, decltype(forward), Args...> call(keep, forward, std::forward<Args>(args)...);
      return Base::run_call(call, wish);
    }
  }

  template <class Keep, class Item>
  Report called_with(detail::RunMode wish, const Keep& keep, std::initializer_list<Item> list) {
    if constexpr (detail::ScriptModule<Model>) {
      detail::ScriptCallOf<Model> call;
      for (const Item& item : list) call.add(item);
      return Base::run_script(std::move(call.arguments), std::move(call.keywords), wish, keep);
    } else {
      using List = std::vector<Item>;
      static_assert(
          detail::HasForward<Kept, const Item&> || detail::HasForward<Kept, List> || detail::PackageLoader<Model>,
          "the model's forward takes no such list: write its arguments without braces");
      if constexpr (detail::HasForward<Kept, const Item&>) {
        if (list.size() == 1) return called(wish, keep, *list.begin());
      }
      if constexpr (detail::HasForward<Kept, List> || detail::PackageLoader<Model>)
        return called(wish, keep, List(list));
      throw InvalidArgument("roofprof: the model's forward takes no list; write its arguments without braces");
    }
  }

  Kept model_;
};

// Deduction for RooflineProfiler prof(model).
template <detail::Referred Model>
RooflineProfiler(Model&, ProfilerOptions = {}) -> RooflineProfiler<Model>;
template <detail::Referred Model>  // a temporary, gone before the profiler runs: deleted
RooflineProfiler(const Model&&, ProfilerOptions = {}) -> RooflineProfiler<Model>;
template <class Model>
  requires(!detail::Referred<Model>)
RooflineProfiler(Model, ProfilerOptions = {}) -> RooflineProfiler<Model>;

// Observes, while it lives, everything that this thread and the threads that it starts do, once and unchanged: the code
// may train. Calls of the model on other threads are left out, with a note; ProfilerOptions::threads includes them.
//
//   {
//     roofprof::Block block(prof);
//     for (const auto& batch : batches) {
//       train(batch);
//       block.step();
//     }
//   }
//   std::cout << prof.report();
//
// An exception that leaves the block ends it, and the report is marked partial. Its end never throws. Begin and end
// it on the same thread. Where the profiler, or another one on this thread, is in use, it throws LogicError.
class [[nodiscard("it observes nothing without a variable's name: write Block block(prof);")]] Block {
 public:
  [[nodiscard("it observes nothing without a variable's name: write Block block(prof);")]] explicit Block(
      RooflineProfiler<>& profiler);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Marks the end of a step of a loop: the header of the report's table then has the mean of a step.
  void step() noexcept;

 private:
  std::unique_ptr<detail::ProfilerRun> run_;
  int exceptions_;  // in flight when it began
};

// Counts exactly one call of a model, as RooflineProfiler::count does:
//
//   roofprof::count(model, images).total().macs
template <class Model, class... Args>
[[nodiscard]] Report count(Model&& model, Args&&... args) {
  return RooflineProfiler(model).count(std::forward<Args>(args)...);
}
template <class Model, class Item>
[[nodiscard]] Report count(Model&& model, std::initializer_list<Item> list) {
  return RooflineProfiler(model).count(list);
}

}  // namespace roofprof
