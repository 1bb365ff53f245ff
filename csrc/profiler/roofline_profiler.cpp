// The C++ profiler: what its templates call.

#include "roofprof/profiler.h"

#include <stdexcept>

#include "profiler/profiler_run.h"

namespace roofprof::detail {
namespace {

void check(const ProfilerOptions& options) {
  const auto refuse = [](const std::string& what, std::int64_t value) {
    throw std::invalid_argument("roofprof: " + what + ", not " + std::to_string(value));
  };
  if (options.warmup < 0) refuse("warmup must be 0 or more", options.warmup);
  if (options.repeat && *options.repeat < 1) refuse("repeat must be 1 or more", *options.repeat);
  if (options.depth && *options.depth < 0) refuse("depth must be 0 or more", *options.depth);
}

std::shared_ptr<ProfilerState> state_of(std::unique_ptr<Model> model, ProfilerOptions options) {
  check(options);
  auto state = std::make_shared<ProfilerState>();
  state->model = std::move(model);
  state->options = std::move(options);
  return state;
}

}  // namespace

ProfilerCore::ProfilerCore(const torch::nn::Module* model, ProfilerOptions options) {
  if (model == nullptr) throw std::invalid_argument("roofprof: the model is null; give the profiler one that exists");
  state_ = state_of(model_of(*model), std::move(options));
}

ProfilerCore::ProfilerCore(const torch::jit::Module& model, ProfilerOptions options)
    : state_(state_of(model_of(model), std::move(options))) {}

Report ProfilerCore::run(Call& call) {
  Reach inputs;
  for (const auto* tensor : call.inputs()) inputs.tensors.push_back(*tensor);
  return ProfilerRun(state_).repeated(call, std::move(inputs), [&](const Counted& /*counted*/) { call.first(); });
}

Report ProfilerCore::run_script(ScriptArguments arguments, ScriptKeywords keywords) {
  Reach inputs{{}, arguments};
  for (const auto& [name, value] : keywords) inputs.values.push_back(value);
  const auto call = state_->model->script_call(std::move(arguments), std::move(keywords));
  return ProfilerRun(state_).repeated(*call, std::move(inputs), [&](const Counted& counted) { call->count(counted); });
}

Report ProfilerCore::run_once(const std::function<void()>& closure) { return ProfilerRun(state_).once(closure); }

Report ProfilerCore::report() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->report) throw std::logic_error("roofprof: nothing was run yet; call run(...) first");
  return *state_->report;
}

}  // namespace roofprof::detail
