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
#include "observe/script_tree.h"
#include "observe/session.h"

namespace roofprof::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Without a wish of the caller's, a run is repeated this often or for this long, whichever ends first.
constexpr std::int64_t kRepeats = 10;
constexpr auto kTimeLimit = std::chrono::seconds(5);

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
  void attach(const observe::ModelTree& /*tree*/, observe::Session& /*session*/) override {}
  void describe(ProfileData& data) const override {
    data.notes.emplace_back("ops of submodules stand in the model's row: their calls are not seen yet");
  }
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
  }
  ~Restored() {
    at::NoGradGuard no_grad;
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

  // Starts anew, but for what is still under way: its session refuses the next pass.
  void begin() {
    if (session && session->active()) return;
    tree = model->tree();
    session = std::make_shared<observe::Session>(tree.modules.size());
    model->attach(tree, *session);
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
    session->regions().add_to(*data);
    observe::assemble(counting, timed, *data);
    model->describe(*data);
    return Report(std::move(data));
  }
};

ProfilerCore::ProfilerCore(const torch::nn::Module& model, ProfilerOptions options)
    : state_(std::make_unique<State>(State{std::make_unique<NnModel>(model), std::move(options), {}, {}, {}})) {}
ProfilerCore::ProfilerCore(const torch::jit::Module& model, ProfilerOptions options)
    : state_(std::make_unique<State>(State{std::make_unique<ScriptModel>(model), std::move(options), {}, {}, {}})) {}
ProfilerCore::~ProfilerCore() = default;

Report ProfilerCore::run_repeatedly(const std::function<void()>& call) {
  state_->begin();
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const auto random_before = generator.get_state().clone();
  const auto counting = state_->observe_once(call, false);
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
      if (!observe::same_work(counting, timed.back())) {
        timed.pop_back();
        break;
      }
      runs.bare_ns.push_back(bare);
    }
  }
  state_->report = state_->make_report(counting, timed, std::move(runs), "run", false);
  return *state_->report;
}

Report ProfilerCore::run_script(std::vector<c10::IValue> inputs) {
  auto& module = static_cast<ScriptModel&>(*state_->model).module();
  return run_repeatedly([&] { module.forward(inputs); });
}

Report ProfilerCore::run_once(const std::function<void()>& closure) {
  state_->begin();
  const auto pass = state_->observe_once(closure, true);
  state_->report = state_->make_report(pass, {pass}, {}, "block", false);
  return *state_->report;
}

Report ProfilerCore::report() const {
  if (!state_->report) throw std::logic_error("roofprof: nothing was run yet; call run(...) first");
  return *state_->report;
}

}  // namespace roofprof::detail
