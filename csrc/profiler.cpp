// The composition root: the one file that knows everyone. Python's profiler composes the same parts from its side.

#include "roofprof/profiler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <chrono>
#include <stdexcept>

#include "device/cpu/environment.h"
#include "device/measure.h"
#include "observe/assemble.h"
#include "observe/nn_attribution.h"
#include "observe/nn_tree.h"
#include "observe/script_places.h"
#include "observe/script_state.h"
#include "observe/script_tree.h"
#include "observe/script_twin.h"
#include "observe/session.h"

namespace roofprof::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Without a wish of the caller's, a run is repeated this often or for this long, whichever ends first.
constexpr std::int64_t kRepeats = 10;
constexpr auto kTimeLimit = std::chrono::seconds(5);
// After so many, TorchScript's executor has made up its mind.
constexpr std::size_t kCallsOfExecutor = 3;

// What is asked of a model, whatever its kind.
class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual observe::ModelTree tree() const = 0;
  virtual std::vector<at::Tensor> buffers() const = 0;
  // Before a session's first pass.
  virtual void attach(const observe::ModelTree& tree, observe::Session& session) = 0;
  // What is to be said of the rows once everything else is known.
  virtual void describe(ProfileData& data) const = 0;
  virtual std::optional<observe::KeptAttributes> attributes() const { return std::nullopt; }
};

class NnModel : public Model {
 public:
  explicit NnModel(const torch::nn::Module& module) : module_(module) {}
  observe::ModelTree tree() const override { return observe::tree_of(module_); }
  std::vector<at::Tensor> buffers() const override { return module_.buffers(); }
  void attach(const observe::ModelTree& tree, observe::Session& session) override {
    attribution_.emplace(tree);
    attribution_->attach(tree, session);
  }
  void describe(ProfileData& data) const override { attribution_->describe(data); }

 private:
  std::optional<observe::NnAttribution> attribution_;
  const torch::nn::Module& module_;
};

class ScriptModel : public Model {
 public:
  explicit ScriptModel(torch::jit::Module module) : module_(std::move(module)) {}
  observe::ModelTree tree() const override { return observe::tree_of(module_); }
  std::vector<at::Tensor> buffers() const override {
    std::vector<at::Tensor> buffers;
    for (const auto& buffer : module_.buffers()) buffers.push_back(buffer);
    return buffers;
  }
  void attach(const observe::ModelTree& tree, observe::Session& session) override {
    auto places = std::make_shared<observe::ScriptPlaces>();
    places->add(module_, kModel, tree.modules);
    session.set_scripts(std::move(places));
  }
  void describe(ProfileData& data) const override {
    if (auto note = observe::frozen_note(module_, ""); !note.empty()) data.notes.push_back(std::move(note));
  }
  std::optional<observe::KeptAttributes> attributes() const override { return observe::KeptAttributes(module_); }
  torch::jit::Module& module() { return module_; }

 private:
  torch::jit::Module module_;
};

// What extra calls may change, put back when this goes out of scope.
class Restored {
 public:
  explicit Restored(const Model& model)
      : generator_(at::detail::getDefaultCPUGenerator()), random_(generator_.get_state().clone()) {
    for (const auto& buffer : model.buffers()) buffers_.emplace_back(buffer, buffer.detach().clone());
    attributes_ = model.attributes();
  }
  ~Restored() {
    at::NoGradGuard no_grad;
    if (attributes_) attributes_->restore();
    for (auto& [buffer, value] : buffers_) buffer.copy_(value);
    restore_random();
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  void restore_random() { generator_.set_state(random_); }

 private:
  at::Generator generator_;
  at::Tensor random_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
  std::optional<observe::KeptAttributes> attributes_;
};

const Ceilings& measured_ceilings() {
  static const Ceilings ceilings = measure_ceilings("cpu").ceilings;
  return ceilings;
}

}  // namespace

struct ProfilerCore::State {
  std::unique_ptr<Model> model;
  ProfilerOptions options;
  std::shared_ptr<observe::Session> session;
  observe::ModelTree tree;  // as they were when the session began: its ids are theirs
  std::optional<Report> report;
  std::vector<std::string> notes;

  // Starts anew, but for what is still under way: its session refuses the next pass.
  void begin() {
    if (session && session->active()) return;
    tree = model->tree();
    session = std::make_shared<observe::Session>(tree.modules.size());
    model->attach(tree, *session);
    notes.clear();
  }

  // TorchScript's executor calls no modules: what it ran is known, but not how often.
  void hide_script_calls() {
    if (session->scripts() == nullptr) return;
    for (auto& module : tree.modules) module.calls_visible = module.parent < 0;
  }

  // One observed call. When it throws, the report of what ran before is kept and the exception goes on.
  observe::Pass observe_once(const std::function<void()>& call, bool block) {
    session->start(block ? std::optional<ModuleId>(kOutside) : std::nullopt);
    try {
      // The model's forward may tell of the same call.
      if (!block) session->enter(kModel, tree.objects[kModel] != nullptr ? tree.objects[kModel] : this);
      call();
    } catch (...) {
      const auto pass = session->stop();
      report = make_report(pass, {}, {}, block ? "block" : "run", true);
      throw;
    }
    return session->stop();
  }

  Report make_report(const observe::Pass& counting, const std::vector<observe::Pass>& timed, Runs runs,
                     const std::string& scope, bool partial) const {
    auto data = std::make_shared<ProfileData>();
    data->model = tree.modules[kModel].type;
    data->device = "cpu";
    data->scope = scope;
    data->partial = partial;
    data->modules = tree.modules;
    data->runs = std::move(runs);
    data->environment = cpu_environment();
    if (!timed.empty()) data->ceilings = options.ceilings ? *options.ceilings : measured_ceilings();
    data->notes = notes;
    session->regions().add_to(*data);
    observe::assemble(counting, timed, *data);
    model->describe(*data);
    return Report(std::move(data));
  }
};

ProfilerCore::ProfilerCore(const torch::nn::Module& model, ProfilerOptions options)
    : state_(std::make_unique<State>(State{std::make_unique<NnModel>(model), std::move(options), {}, {}, {}, {}})) {}
ProfilerCore::ProfilerCore(const torch::jit::Module& model, ProfilerOptions options)
    : state_(std::make_unique<State>(State{std::make_unique<ScriptModel>(model), std::move(options), {}, {}, {}, {}})) {
}
ProfilerCore::~ProfilerCore() = default;

Report ProfilerCore::run_repeatedly(const std::function<void()>& call) {
  state_->begin();
  return repeat(call, call);
}

Report ProfilerCore::repeat(const std::function<void()>& counted, const std::function<void()>& call) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const auto random_before = generator.get_state().clone();
  const auto counting = state_->observe_once(counted, false);
  std::vector<observe::Pass> timed;
  Runs runs;
  {
    Restored after_one_call(*state_->model);
    const auto started = Clock::now();
    const auto limited = [&](auto limit) { return !state_->options.repeat && Clock::now() - started > limit; };
    const auto again = [&](const auto& what) {
      generator.set_state(random_before);
      const auto start = Clock::now();
      what();
      return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    };
    while (runs.warmup < state_->options.warmup && !limited(kTimeLimit / 2)) {
      again(call);
      ++runs.warmup;
    }
    const auto repeats = static_cast<std::size_t>(state_->options.repeat.value_or(kRepeats));
    while (timed.size() < repeats && (timed.empty() || !limited(kTimeLimit))) {
      const auto bare = again(call);
      again([&] { timed.push_back(state_->observe_once(call, false)); });
      runs.bare_ns.push_back(bare);
      // TorchScript's executor runs what it likes, but after its first calls the same each time.
      const bool by_executor = state_->session->scripts() != nullptr;
      if (observe::same_work(by_executor ? timed.front() : counting, timed.back())) continue;
      if (by_executor && timed.size() <= kCallsOfExecutor) {
        runs.warmup += static_cast<std::int64_t>(2 * (timed.size() - 1));
        timed.erase(timed.begin(), timed.end() - 1);
        runs.bare_ns.erase(runs.bare_ns.begin(), runs.bare_ns.end() - 1);
        continue;
      }
      timed.pop_back();
      runs.bare_ns.pop_back();
      break;
    }
  }
  state_->report = state_->make_report(counting, timed, std::move(runs), "run", false);
  return *state_->report;
}

Report ProfilerCore::run_script(std::vector<c10::IValue> inputs) {
  auto& module = static_cast<ScriptModel&>(*state_->model).module();
  state_->begin();
  std::vector<c10::IValue> given;  // as the first call gets them, for the further ones
  for (const auto& input : inputs) given.push_back(observe::shallow_copy(input));
  const auto call = [&] {
    std::vector<c10::IValue> copies;
    for (const auto& input : given) copies.push_back(observe::shallow_copy(input));
    module.forward(std::move(copies));
  };
  std::optional<observe::ScriptTwin> twin;
  try {
    twin.emplace(module, "forward");
  } catch (const c10::Error& error) {
    state_->notes.push_back(observe::note_without_twin("", error.what_without_backtrace()));
    state_->hide_script_calls();
    return repeat([&] { module.forward(inputs); }, call);
  }
  const auto on_call = [&](const observe::ScriptCall& seen) { observe::keep_shapes(seen, state_->tree.modules); };
  const auto counted = [&] {
    observe::ScriptCall own;
    for (const auto& input : inputs) observe::read_shapes(input, own.input_shapes);
    own.output_bytes = observe::read_shapes(twin->run(state_->session, inputs, on_call), own.output_shapes);
    on_call(own);
  };
  return repeat(counted, call);
}

Report ProfilerCore::run_once(const std::function<void()>& closure) {
  state_->begin();
  state_->hide_script_calls();
  const auto pass = state_->observe_once(closure, true);
  state_->report = state_->make_report(pass, {pass}, {}, "block", false);
  return *state_->report;
}

Report ProfilerCore::report() const {
  if (!state_->report) throw std::logic_error("roofprof: nothing was run yet; call run(...) first");
  return *state_->report;
}

}  // namespace roofprof::detail
