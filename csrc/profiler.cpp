// The composition root: the one file that knows everyone. Python's profiler composes the same parts from its side.

#include "roofprof/profiler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/module.h>

#include <chrono>
#include <stdexcept>

#include "device/cpu/environment.h"
#include "device/measure.h"
#include "observe/assemble.h"
#include "observe/session.h"

namespace roofprof::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Without a wish of the caller's, a run is repeated this often or for this long, whichever ends first.
constexpr std::int64_t kRepeats = 10;
constexpr auto kTimeLimit = std::chrono::seconds(5);

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

Module describe(const torch::nn::Module& module, const std::string& path, ModuleId parent) {
  Module entry;
  entry.path = path;
  entry.type = module.name();
  entry.parent = parent;
  // torch::nn has no forward hooks, so calls of submodules are not seen here.
  entry.has_forward = parent < 0;
  entry.calls_visible = parent < 0;
  for (const auto& parameter : module.parameters()) {
    entry.params += parameter.numel();
    entry.trainable_params += parameter.requires_grad() ? parameter.numel() : 0;
    entry.param_bytes += bytes_of(parameter);
  }
  for (const auto& buffer : module.buffers()) entry.buffer_bytes += bytes_of(buffer);
  return entry;
}

void add_children(const torch::nn::Module& module, ModuleId place, std::vector<Module>& tree) {
  for (const auto& child : module.named_children()) {
    const auto& parent_path = tree[static_cast<std::size_t>(place)].path;
    tree.push_back(
        describe(*child.value(), parent_path.empty() ? child.key() : parent_path + "." + child.key(), place));
    add_children(*child.value(), static_cast<ModuleId>(tree.size() - 1), tree);
  }
}

std::vector<Module> module_tree(const torch::nn::Module& model) {
  std::vector<Module> tree = {describe(model, "", -1), {}, {}};
  tree[kOutside].path = "(outside)";
  tree[kOutside].has_forward = false;
  tree[kOptimizer].path = "(optimizer)";
  tree[kOptimizer].has_forward = false;
  add_children(model, kModel, tree);
  return tree;
}

// What extra calls may change, put back when this goes out of scope.
class Restored {
 public:
  explicit Restored(const torch::nn::Module& model)
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
  const torch::nn::Module& model;
  ProfilerOptions options;
  std::shared_ptr<observe::Session> session;
  std::vector<Module> modules;  // as they were when the session began: its ids are theirs
  std::optional<Report> report;

  // Starts anew, but for what is still under way: its session refuses the next pass.
  void begin() {
    if (session && session->active()) return;
    modules = module_tree(model);
    session = std::make_shared<observe::Session>(modules.size());
  }

  // One observed call. When it throws, the report of what ran before is kept and the exception goes on.
  observe::Pass observe_once(const std::function<void()>& call, bool block) {
    session->start(block ? std::optional<ModuleId>(kOutside) : std::nullopt);
    try {
      if (!block) session->enter(kModel, this);
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
    data->model = model.name();
    data->device = "cpu";
    data->scope = scope;
    data->partial = partial;
    data->modules = modules;
    data->runs = std::move(runs);
    data->environment = cpu_environment();
    if (!timed.empty()) data->ceilings = options.ceilings ? *options.ceilings : measured_ceilings();
    data->notes.push_back(
        "ops of torch::nn submodules stand in the model's row: their calls are not seen from C++ yet");
    session->regions().add_to(*data);
    observe::assemble(counting, timed, *data);
    return Report(std::move(data));
  }
};

ProfilerCore::ProfilerCore(const torch::nn::Module& model, ProfilerOptions options)
    : state_(std::make_unique<State>(State{model, std::move(options), {}, {}, {}})) {}
ProfilerCore::~ProfilerCore() = default;

Report ProfilerCore::run_repeatedly(const std::function<void()>& call) {
  state_->begin();
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const auto random_before = generator.get_state().clone();
  const auto counting = state_->observe_once(call, false);
  std::vector<observe::Pass> timed;
  Runs runs;
  {
    Restored after_one_call(state_->model);
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
