#include "profiler/run.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#include <chrono>
#include <map>
#include <stdexcept>

#include "device/measure.h"
#include "observe/assemble.h"

namespace roofprof::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Without a wish of the caller's, a run is repeated this often or for this long, whichever ends first.
constexpr std::int64_t kRepeats = 10;
constexpr auto kTimeLimit = std::chrono::seconds(5);
// After so many, TorchScript's executor has made up its mind.
constexpr std::size_t kCallsOfExecutor = 3;

std::string described(const std::exception& error) {
  const auto* torchs = dynamic_cast<const c10::Error*>(&error);
  return c10::demangle(typeid(error).name()) + ": " +
         (torchs != nullptr ? torchs->what_without_backtrace() : error.what());
}

// The roofs of this machine for as many threads as torch uses now; none, and why, where they cannot be measured.
const MeasuredCeilings& measured_ceilings(const std::string& device) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, MeasuredCeilings> measured;
  const std::lock_guard lock(mutex);
  const auto [found, fresh] = measured.try_emplace({device, at::get_num_threads()});
  if (!fresh) return found->second;
  try {
    found->second = measure_ceilings(device);
  } catch (const std::invalid_argument& error) {
    found->second.notes.emplace_back(error.what());
  }
  return found->second;
}

}  // namespace

Run::Run(std::shared_ptr<ProfilerState> profiler) : profiler_(std::move(profiler)) {
  observe::Session::refuse_nesting();
  if (profiler_->in_use.exchange(true)) {
    throw std::logic_error(
        "roofprof: a run of this profiler is still under way; let it end first, or use a profiler for each thread");
  }
}

void Run::begin(const std::string& scope, const Reach& inputs) {
  tree_ = profiler_->model->tree();
  session_ = std::make_shared<observe::Session>(tree_.modules.size());
  profiler_->model->attach(tree_, *session_);
  data_ = std::make_shared<ProfileData>();
  data_->scope = scope;
  const auto& options = profiler_->options;
  const auto place = device_of(tensors_of(profiler_->model->reach().with(inputs)));
  data_->device = options.device.empty() ? place : options.device;
  untimed_ = untimed_on(place);
  if (untimed_.empty()) untimed_ = untimed_on(data_->device);
  device_.emplace(untimed_.empty() ? data_->device : "", options.counters);
  data_->model = tree_.modules[kModel].type;
  data_->modules = tree_.modules;
  const std::lock_guard lock(profiler_->mutex);
  profiler_->report.reset();
}

Report Run::repeated(Call& call, Reach inputs, const std::function<void(const Counted&)>& first) {
  begin("run", inputs);
  Rewind rewind(*profiler_->model, std::move(inputs));
  count([&] { first(counted()); });
  if (untimed()) return make_report();
  if (call.repeatable()) {
    try {
      rewind.undoing([&] { repeat(call, rewind); });
    } catch (...) {
      make_report();
      throw;
    }
  } else {
    data_->notes.emplace_back(
        "timed in the first call alone: an argument can only be moved, and further calls would find it empty");
  }
  if (rewind.lost() > 0) {
    data_->notes.push_back("further calls wrote to " + std::to_string(rewind.lost()) +
                           " tensors that the first did not: they are not as it left them");
  }
  if (timed_.empty()) timed_.push_back(counting_);
  return make_report();
}

Report Run::once(const std::function<void()>& closure) {
  begin("block", {});
  hide_script_calls(counted());
  count(closure);
  if (!untimed()) timed_.push_back(counting_);
  return make_report();
}

void Run::count(const std::function<void()>& call) {
  try {
    observed(call, counting_);
  } catch (...) {
    data_->partial = true;
    make_report();
    throw;
  }
}

std::optional<ModuleId> Run::base() const {
  return data_->scope == "block" ? std::optional<ModuleId>(kOutside) : std::nullopt;
}

void Run::in_model(const std::function<void()>& call) {
  if (base()) return call();
  // The model's forward may tell of the same call.
  const void* token = tree_.objects[kModel] != nullptr ? tree_.objects[kModel] : this;
  session_->enter(kModel, token);
  call();
  session_->leave(token);
}

void Run::observed(const std::function<void()>& call, observe::Pass& pass) {
  device_->start(*session_, base());
  try {
    in_model(call);
  } catch (...) {
    pass = device_->stop(*session_, /*raised=*/true);
    throw;
  }
  pass = device_->stop(*session_);
}

// The wall time of a call without any observer.
std::int64_t Run::bare(Call& call) {
  device_->synchronize();
  const auto start = Clock::now();
  call.again();
  device_->synchronize();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void Run::repeat(Call& call, const Rewind& rewind) {
  if (!device_->lost().empty()) return;
  const auto prepare = [&] {
    call.prepare();
    rewind.before_call();
  };
  try {
    time_repeats(call, prepare);
  } catch (const std::exception& error) {  // the first call went well, so its counts stand
    stop_timing("raised " + described(error));
    return;
  }
  try {
    device_->count(*session_, base(), timed_, [&] {
      prepare();
      in_model([&] { call.again(); });
    });
  } catch (const std::exception& error) {
    data_->notes.push_back("no counters: a call under them raised " + described(error));
  }
}

// Timed calls, each after a bare one, until the wished number or the default limits are reached.
void Run::time_repeats(Call& call, const std::function<void()>& prepare) {
  const auto& options = profiler_->options;
  const auto started = Clock::now();
  const auto spent_with = [&](std::chrono::nanoseconds more, auto limit) {
    return !options.repeat && Clock::now() - started + more > limit;
  };
  const std::chrono::nanoseconds one_call(counting_.wall_ns);
  while (data_->runs.warmup < options.warmup && !spent_with(one_call, kTimeLimit / 2)) {
    prepare();
    call.again();
    ++data_->runs.warmup;
  }
  std::size_t passes = 0;
  const auto repeats = static_cast<std::size_t>(options.repeat.value_or(kRepeats));
  while (timed_.size() < repeats && (timed_.empty() || !spent_with({}, kTimeLimit))) {
    prepare();
    const auto bare_ns = bare(call);
    prepare();
    observe::Pass pass;
    observed([&] { call.again(); }, pass);
    if (!device_->lost().empty()) return stop_timing("found the device lost");
    const bool by_executor = session_->scripts() != nullptr;
    if (by_executor && ++passes <= kCallsOfExecutor && !timed_.empty() && !observe::same_work(timed_.front(), pass)) {
      data_->runs.warmup += static_cast<std::int64_t>(2 * timed_.size());
      data_->runs.bare_ns.clear();
      timed_.clear();
    }
    // The executor runs what it likes, but after its first calls the same each time.
    if (!observe::same_work(!by_executor ? counting_ : timed_.empty() ? pass : timed_.front(), pass)) {
      return stop_timing("did other work than the first (a cache grew, or an input was consumed)");
    }
    data_->runs.bare_ns.push_back(bare_ns);
    timed_.push_back(std::move(pass));
  }
}

void Run::stop_timing(const std::string& reason) {
  data_->notes.push_back("timing stopped after " + std::to_string(timed_.size()) + " repeats: a further call " +
                         reason + (timed_.empty() ? "; the times are those of the first call" : ""));
}

bool Run::untimed() {
  if (!untimed_.empty()) data_->notes.push_back(untimed_);
  return !untimed_.empty();
}

Report Run::make_report() {
  data_->environment = environment_of(data_->device);
  if (!timed_.empty()) {
    const auto& given = profiler_->options.ceilings;
    data_->ceilings = given ? *given : measured_ceilings(data_->device).ceilings;
    for (const auto& note : given ? std::vector<std::string>() : measured_ceilings(data_->device).notes) {
      data_->notes.push_back("roofs: " + note);
    }
  }
  session_->regions().add_to(*data_);
  const auto places = observe::assemble(counting_, timed_, *data_);
  device_->add_to(*session_, timed_, places, *data_);
  profiler_->model->describe(*data_);
  Report report(data_, profiler_->options.depth);
  const std::lock_guard lock(profiler_->mutex);
  profiler_->report = report;
  return report;
}

}  // namespace roofprof::detail
