#include "profiler/profiler_run.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "profiler/model_snapshot.h"
#include "roofs/cache.h"
#include "run/finish_report.h"

namespace roofprof::detail {
namespace {

// The roofs of this machine for as many threads as torch uses now; none, and why, where they cannot be measured.
MeasuredCeilings measured_ceilings(const std::string& device, const Progress& progress) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, MeasuredCeilings> measured;
  const std::lock_guard lock(mutex);
  const std::pair key(device, at::get_num_threads());
  if (const auto found = measured.find(key); found != measured.end()) return found->second;
  MeasuredCeilings roofs;
  try {
    roofs = cached_ceilings(device, progress).roofs;
  } catch (const std::invalid_argument& error) {
    roofs.notes.emplace_back(error.what());
  }
  if (roofs.ceilings.busy_share == 0) measured.emplace(key, roofs);
  return roofs;
}

// Calls of a C++ model. `first` makes the counting call.
class ModelTarget final : public run::SessionTarget {
 public:
  ModelTarget(run::ObservedRun& run, const Model& model, const void* model_object, Call& call, Reach inputs,
              std::function<void()> first)
      : SessionTarget(run),
        token_(model_object != nullptr ? model_object : this),
        call_(call),
        snapshot_(model, std::move(inputs)),
        first_(std::move(first)) {}

  void count(std::optional<Pass>& pass) override {
    observe([this] { in_scope(first_); }, pass);
  }
  std::string why_only_once() const override {
    return call_.repeatable() ? "" : "an argument can only be moved, and further calls would find it empty";
  }
  std::int64_t undoing(const std::function<void()>& further) override { return snapshot_.undoing(further); }
  void prepare() override {
    call_.prepare();
    snapshot_.before_call();
  }
  std::optional<std::string> described(const std::exception& error) const override {
    const auto* torchs = dynamic_cast<const c10::Error*>(&error);
    return c10::demangle(typeid(error).name()) + ": " +
           (torchs != nullptr ? torchs->what_without_backtrace() : error.what());
  }

 private:
  void call() override { call_.again(); }
  void call_in_scope() override {
    in_scope([this] { call_.again(); });
  }
  void in_scope(const std::function<void()>& call) {
    run().session()->enter(kModel, token_);
    call();
    run().session()->leave(token_);
  }

  const void* token_;  // the model's address: its forward may tell of the same call
  Call& call_;
  ModelSnapshot snapshot_;
  std::function<void()> first_;
};

}  // namespace

ProfilerRun::ProfilerRun(std::shared_ptr<ProfilerState> profiler) : profiler_(std::move(profiler)) {
  observe::Session::refuse_nesting();
  if (profiler_->in_use.exchange(true)) {
    throw std::logic_error(
        "roofprof: a run of this profiler is still under way; let it end first, or use a profiler for each thread");
  }
}

void ProfilerRun::begin(const std::string& scope, const Reach& inputs) {
  tree_ = profiler_->model->tree();
  auto session = std::make_shared<observe::Session>(tree_.modules.size());
  profiler_->model->attach(tree_, *session);
  observed_ = {};
  observed_.model = tree_.modules[kModel].type;
  observed_.modules = tree_.modules;

  const auto& options = profiler_->options;
  const auto found = device_of(tensors_of(profiler_->model->reach().with(inputs)));
  run::RunSetting setting{scope, options.device.empty() ? found : options.device, untimed_on(found), options.counters};
  if (setting.untimed.empty()) setting.untimed = untimed_on(setting.device);
  if (scope == "block") setting.base = kOutside;
  run_.emplace(std::move(session), std::move(setting));
  const std::lock_guard lock(profiler_->mutex);
  profiler_->report.reset();
}

Report ProfilerRun::repeated(Call& call, Reach inputs, const std::function<void(const Counted&)>& first) {
  begin("run", inputs);
  const auto& options = profiler_->options;
  ModelTarget target(*run_, *profiler_->model, tree_.objects[kModel], call, std::move(inputs),
                     [&] { first(counted()); });
  reported([&] {
    run_->count(target);
    run_->repeat(target, {.warmup = options.warmup, .repeat = options.repeat});
  });
  return make_report();
}

Report ProfilerRun::once(const std::function<void()>& closure) {
  begin("block", {});
  hide_script_calls(counted());
  run_->start_block();
  reported([&] {
    try {
      closure();
    } catch (...) {
      run_->stop_block(/*raised=*/true);
      throw;
    }
    run_->stop_block(/*raised=*/false);
  });
  return make_report();
}

void ProfilerRun::reported(const std::function<void()>& calls) {
  try {
    calls();
  } catch (...) {
    if (run_->result().counting) make_report();
    throw;
  }
}

Report ProfilerRun::make_report() {
  const auto& options = profiler_->options;
  MeasuredCeilings roofs;
  if (!run_->result().timed.empty()) {
    roofs = options.ceilings ? MeasuredCeilings{*options.ceilings, {}}
                             : measured_ceilings(run_->setting().device, options.progress);
  }
  profiler_->model->describe(observed_);
  Report report = run::finish_report(*run_, std::move(observed_), roofs, options.depth);
  const std::lock_guard lock(profiler_->mutex);
  profiler_->report = report;
  return report;
}

}  // namespace roofprof::detail
