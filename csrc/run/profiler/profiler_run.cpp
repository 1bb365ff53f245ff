#include "run/profiler/profiler_run.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <cxxabi.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "core/forks.h"
#include "machine/roofs.h"
#include "run/observed_run.h"

namespace roofprof::detail {

std::vector<at::Tensor> tensors_of(const Reach& reach) {
  std::vector<at::Tensor> tensors;
  std::unordered_set<const void*> seen;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) tensors.push_back(tensor);
  };
  for (const auto& tensor : reach.tensors) add(tensor);
  const observe::ScriptValues values(reach.values);
  for (const auto& tensor : values.tensors()) add(tensor);
  for (std::size_t i = 0, count = tensors.size(); i < count; ++i) {  // NOLINT(modernize-loop-convert): it grows
    if (const auto gradient = run::gradient_of(tensors[i])) add(*gradient);
  }
  return tensors;
}

std::string device_of(const std::vector<at::Tensor>& tensors) {
  const auto elsewhere =
      std::ranges::find_if(tensors, [](const at::Tensor& tensor) { return !tensor.is_cpu() && !tensor.is_meta(); });
  return elsewhere == tensors.end() ? "cpu" : elsewhere->device().str();
}

ModelSnapshot::ModelSnapshot(const Model& model, Reach inputs)
    : model_(model),
      inputs_(std::move(inputs)),
      input_values_(inputs_.values),
      tensors_(tensors_of(model_.reach().with(inputs_)), tensors_of(inputs_)) {
  at::autocast::clear_cache();  // as before each further call, so that all of them cast
}

void ModelSnapshot::before_call() const {
  input_values_.restore();
  ambient_.restore();
}

std::int64_t ModelSnapshot::undoing(const std::function<void()>& further) {
  const auto after = model_.reach().with(inputs_);
  const observe::ScriptValues values(after.values);
  const run::AmbientState ambient;
  tensors_.keep(tensors_of(after));
  const auto undo = [&] {
    values.restore();
    const auto lost = tensors_.restore();
    ambient.restore();
    return lost;
  };
  try {
    further();
  } catch (...) {
    undo();
    throw;
  }
  return undo();
}

namespace {

// The roofs of this machine for as many threads as torch uses now; none, and why, where they cannot be measured.
MeasuredCeilings measured_ceilings(const std::string& device, const Progress& progress) {
  static auto& mutex = *new ForkMutex;
  static auto& measured = *new std::map<std::pair<std::string, int>, MeasuredCeilings>;
  const std::pair key(device, at::get_num_threads());
  {
    const std::lock_guard lock(mutex);
    if (const auto found = measured.find(key); found != measured.end()) return found->second;
  }
  MeasuredCeilings roofs;
  try {
    roofs = cached_ceilings(device, progress).roofs;
  } catch (const std::invalid_argument& error) {
    roofs.notes.emplace_back(error.what());
  }
  const std::lock_guard lock(mutex);  // not while they are measured, which takes long
  if (roofs.ceilings.busy_share == 0) measured.emplace(key, roofs);
  return roofs;
}

// Calls of a C++ model. `first` makes the counting call.
class ModelTarget final : public run::SessionTarget {
 public:
  ModelTarget(run::ObservedRun& run, const void* model_object, Call& call, std::function<void()> first)
      : SessionTarget(run, /*of_model=*/true),
        token_(model_object != nullptr ? model_object : this),
        call_(call),
        first_(std::move(first)) {}

  // Takes a snapshot, before the counting call, if further calls are to follow.
  void keep_state(const Model& model, Reach inputs) { snapshot_.emplace(model, std::move(inputs)); }

  void count(std::optional<Pass>& pass) override {
    observe([this] { in_scope(first_); }, pass);
  }
  std::string why_only_once() const override {
    if (!call_.repeatable()) return "an argument can only be moved, and further calls would find it empty";
    return snapshot_->why_only_once();
  }
  std::int64_t undoing(const std::function<void()>& further) override { return snapshot_->undoing(further); }
  void prepare() override {
    call_.prepare();
    snapshot_->before_call();
  }
  std::optional<std::string> described(const std::exception* error) const override {
    if (error == nullptr) return c10::demangle(abi::__cxa_current_exception_type()->name());
    const auto* torchs = dynamic_cast<const c10::Error*>(error);
    return c10::demangle(typeid(*error).name()) + ": " +
           (torchs != nullptr ? torchs->what_without_backtrace() : error->what());
  }

 private:
  void call() override { call_.again(); }
  void call_in_scope() override {
    in_scope([this] { call_.again(); });
  }
  void in_scope(const std::function<void()>& call) {
    run().session()->frames.enter(kModel, token_);
    call();
    run().session()->frames.leave(token_);
  }

  const void* token_;  // the model's address: its forward may announce the same call
  Call& call_;
  std::optional<ModelSnapshot> snapshot_;
  std::function<void()> first_;
};

}  // namespace

ProfilerRun::ProfilerRun(std::shared_ptr<ProfilerState> profiler) : profiler_(std::move(profiler)) {
  observe::Session::refuse_nesting();
  if (profiler_->in_use.exchange(true)) {
    throw LogicError(
        "roofprof: a run of this profiler is still under way; let it end first, or use a profiler for each thread");
  }
}

Report ProfilerState::last_report() {
  std::unique_lock lock(mutex);
  if (!report && observed) {
    auto ended = std::move(observed);
    lock.unlock();  // the user's progress function may call this, too
    MeasuredCeilings roofs;
    try {
      if (!ended->run->result().timed.empty()) {
        roofs = given_roofs ? *given_roofs : measured_ceilings(ended->run->setting().device, options.progress);
      }
    } catch (...) {
      lock.lock();
      observed = std::move(ended);
      throw;
    }
    const Report made = run::finish_report(*ended->run, std::move(ended->observed), roofs, options.depth);
    lock.lock();
    report = made;
  }
  if (report) return *report;
  throw LogicError(in_use ? "roofprof: a run or block of this profiler is still under way; ask for its report after it"
                          : "roofprof: nothing was profiled yet; call run(...) or open a Block first");
}

void ProfilerRun::begin(Mode mode, const Reach& inputs, std::optional<ModuleId> base) {
  auto look = profiler_->model->look();
  auto session = std::make_shared<observe::Session>(look.tree.modules.size());
  for (const auto& row : look.tree.modules) session->setup.parents.push_back(row.parent);
  profiler_->model->attach(look, *session);
  object_ = look.tree.objects[kModel];
  observation_ = std::make_unique<Observation>();
  observation_->observed.run.model = look.tree.modules[kModel].type;
  observation_->observed.tree.modules = std::move(look.tree.modules);
  observation_->observed.run.bypass_sought = false;

  const auto& options = profiler_->options;
  const auto tensors = tensors_of(look.reach.with(inputs));
  const auto device = options.device.empty() ? device_of(tensors) : options.device;
  run::Location with_data{device, untimed_on(device)};
  run::Location without{options.device.empty() ? "meta" : options.device, untimed_on("meta")};
  const auto is_meta = [](const at::Tensor& tensor) { return tensor.is_meta(); };
  const bool any_meta = std::ranges::any_of(tensors, is_meta);
  // Parameters may rest on the meta device while the call runs elsewhere: what runs decides.
  const bool guess =
      any_meta && (std::ranges::all_of(tensors, is_meta) || std::ranges::any_of(tensors_of(inputs), is_meta));
  if (guess) std::swap(with_data, without);
  run::RunSetting setting{.mode = mode,
                          .device = with_data.device,
                          .untimed = with_data.untimed,
                          .counters = options.counters,
                          .all_threads = options.threads == Threads::all,
                          .keep_events = options.keep_events,
                          .holds_data = !guess};
  setting.base = base;
  observation_->run.emplace(std::move(session), std::move(setting),
                            any_meta ? std::optional(std::move(without)) : std::nullopt);
  const std::lock_guard lock(profiler_->mutex);
  profiler_->observed.reset();
  profiler_->report.reset();
}

void ProfilerRun::calls(Call& call, Reach inputs, RunMode wish, const std::function<void(const Counted&)>& first) {
  const auto& options = profiler_->options;
  const bool timed = wish == RunMode::times && options.repeat != 0;
  begin(timed ? Mode::run : Mode::count, inputs);
  ModelTarget target(run(), object_, call, [&] { first(counted()); });
  if (timed) target.keep_state(*profiler_->model, std::move(inputs));
  try {
    run().count(target);
    run().repeat(target, {.warmup = options.warmup, .repeat = options.repeat});
  } catch (...) {
    end();
    throw;
  }
  end();
}

void ProfilerRun::block(const std::function<void()>& body, RunMode wish) {
  open_block(wish);
  try {
    body();
  } catch (...) {
    close_block(/*raised=*/true);
    throw;
  }
  close_block(/*raised=*/false);
}

void ProfilerRun::open_block(RunMode wish) {
  begin(wish == RunMode::times ? Mode::block : Mode::count, {}, kOutside);
  hide_script_calls(counted());
  run().start_block();
}

void ProfilerRun::close_block(bool raised) {
  run().stop_block(raised);
  end();
}

void ProfilerRun::end() {
  if (!run().result().counting) return;
  run().session()->shapes.write_to(observation_->observed.tree.modules);
  profiler_->model->describe(observation_->observed);
  const std::lock_guard lock(profiler_->mutex);
  profiler_->observed = std::move(observation_);
}

}  // namespace roofprof::detail
