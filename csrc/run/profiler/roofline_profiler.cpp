// The C++ profiler: what its templates call.

#include "roofprof/profiler.h"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <exception>

#include "core/roofs.h"
#include "machine/known/file.h"
#include "observe/module_calls.h"
#include "run/profiler/profiler_run.h"

namespace roofprof {
namespace detail {
namespace {

void check(const ProfilerOptions& options) {
  const auto refuse = [](const std::string& what, std::int64_t value) {
    throw InvalidArgument("roofprof: " + what + ", not " + std::to_string(value));
  };
  if (options.warmup && *options.warmup < 0) refuse("warmup must be 0 or more", *options.warmup);
  if (options.repeat && *options.repeat < 0) refuse("repeat must be 0 or more", *options.repeat);
  if (options.depth && *options.depth < 0) refuse("depth must be 0 or more", *options.depth);
  if (!options.ceilings) return;
  if (const auto wrong = impossible_roof(*options.ceilings); !wrong.empty()) {
    throw InvalidArgument("roofprof: ceilings are not usable: " + wrong);
  }
}

// Returns the device in torch's spelling.
std::string device_named(const std::string& device) {
  if (device.empty()) return device;
  try {
    return c10::Device(device).str();
  } catch (const c10::Error&) {
    throw InvalidArgument("roofprof: device must be one of torch's, such as \"cpu\" or \"cuda:0\", not \"" + device +
                          "\"");
  }
}

std::shared_ptr<ProfilerState> made_of(std::unique_ptr<Model> model, ProfilerOptions options) {
  check(options);
  auto state = std::make_shared<ProfilerState>();
  state->model = std::move(model);
  state->options = std::move(options);
  state->options.device = device_named(state->options.device);
  state->given_roofs = state->options.ceilings ? MeasuredCeilings{*state->options.ceilings, {}} : given_ceilings();
  return state;
}

std::unique_ptr<Model> script_model(const torch::jit::Module& module) {
  try {
    static_cast<void>(module._ivalue());
  } catch (const c10::Error&) {
    throw InvalidArgument(
        "roofprof: the torch::jit::Module is empty; give the profiler one that was loaded or scripted");
  }
  return model_of(module);
}

}  // namespace

std::shared_ptr<ProfilerState> state_of(const torch::nn::Module* model, ProfilerOptions options,
                                        std::shared_ptr<const void> handle) {
  if (model == nullptr) throw InvalidArgument("roofprof: the model is null; give the profiler one that exists");
  auto state = made_of(model_of(*model), std::move(options));
  // A module that is given by reference may have owners.
  state->handle = handle ? std::move(handle) : model->weak_from_this().lock();
  return state;
}

std::shared_ptr<ProfilerState> state_of(const torch::jit::Module& model, ProfilerOptions options) {
  return made_of(script_model(model), std::move(options));
}

std::shared_ptr<ProfilerState> state_of(torch::inductor::AOTIModelPackageLoader* package, ProfilerOptions options) {
  return made_of(model_of(*package), std::move(options));
}

}  // namespace detail

using detail::ProfilerRun;

const std::shared_ptr<detail::ProfilerState>& RooflineProfiler<>::state() const {
  if (!state_) throw LogicError("roofprof: this profiler was moved from; use the one that it was moved to");
  return state_;
}

Report RooflineProfiler<>::run_call(detail::Call& call, detail::RunMode wish) {
  detail::Reach inputs;
  observe::CallShapes shapes;
  for (const auto* tensor : call.inputs()) {
    inputs.tensors.push_back(*tensor);
    shapes.inputs.add(*tensor);
  }
  ProfilerRun run(state());
  run.calls(call, std::move(inputs), wish, [&](const detail::Counted& counted) {
    call.first([&](const auto* results) {
      const auto tensors = results == nullptr ? std::nullopt : std::optional(observe::TensorSpan(*results));
      observe::tell_results(counted.object, std::move(shapes), tensors);
      counted.session->frames.leave(counted.object);  // while the results live: they are not what the call keeps
    });
  });
  return run.report();
}

Report RooflineProfiler<>::run_script(detail::ScriptArguments arguments, detail::ScriptKeywords keywords,
                                      detail::RunMode wish, const std::function<void(c10::IValue&&)>& keep) {
  detail::Reach inputs{{}, arguments};
  for (const auto& [name, value] : keywords) inputs.values.push_back(value);
  const auto call = state()->model->script_call(std::move(arguments), std::move(keywords));
  ProfilerRun run(state());
  run.calls(*call, std::move(inputs), wish, [&](const detail::Counted& counted) { keep(call->count(counted)); });
  return run.report();
}

Report RooflineProfiler<>::run_closure(const std::function<void()>& closure, detail::RunMode wish) {
  ProfilerRun run(state());
  run.block(closure, wish);
  return run.report();
}

Report RooflineProfiler<>::run_each_step(std::int64_t steps, const std::function<void()>& step) {
  if (steps < 1) {
    throw InvalidArgument("roofprof: run_steps takes 1 step or more, not " + std::to_string(steps));
  }
  ProfilerRun run(state());
  run.block([&] {
    for (std::int64_t i = 0; i < steps; ++i) {
      step();
      run.step();
    }
  });
  return run.report();
}

Report RooflineProfiler<>::report() const { return state()->last_report(); }

Block::Block(RooflineProfiler<>& profiler)
    : run_(std::make_unique<ProfilerRun>(profiler.state())), exceptions_(std::uncaught_exceptions()) {
  run_->open_block();
}

Block::~Block() {
  try {
    run_->close_block(/*raised=*/std::uncaught_exceptions() > exceptions_);
  } catch (...) {  // out of memory, or a device that fails: report() then says that there is none
  }
}

void Block::step() noexcept { run_->step(); }

}  // namespace roofprof
