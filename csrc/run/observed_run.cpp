#include "run/observed_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/phrases.h"
#include "join/join.h"
#include "machine/cpu/background_load.h"
#include "machine/cpu/environment.h"

namespace roofprof::run {

namespace {

constexpr std::chrono::milliseconds kShortCall{50};  // a pause before a longer call hardly adds to its time

// Returns the device to trace: none where nothing is timed.
std::string traced_device(const RunSetting& setting) { return setting.timed() ? setting.device : ""; }

}  // namespace

ObservedRun::ObservedRun(std::shared_ptr<observe::Session> session, RunSetting setting,
                         std::optional<Location> otherwise)
    : session_(std::move(session)),
      setting_(std::move(setting)),
      otherwise_(std::move(otherwise)),
      device_(traced_device(setting_), setting_.counters) {
  if (setting_.keep_events && setting_.timed()) session_->setup.keeps_events = true;
}

void ObservedRun::start_block() {
  other_load_.emplace(BackgroundLoad::Ranks::are_our_own);
  session_->setup.measures_memory = !setting_.timed();
  if (!setting_.all_threads) session_->setup.leaves_out_others = true;
  session_->setup.tracks_reuse = true;
  session_->setup.samples_traffic = setting_.timed();
  session_->shapes.listen(true);
  device_.start(*session_, setting_.base);
  own_block_.emplace(session_);
  result_.steps.start();
}

void ObservedRun::stop_block(bool raised) {
  if (!own_block_) return;  // it did not begin, or has ended
  own_block_.reset();
  if (session_->is_of_parent()) return;
  result_.partial = raised;
  result_.counting = device_.stop(*session_, raised);
  settle();
  if (!setting_.timed()) return;
  result_.timed = {*result_.counting};
  result_.others_share = other_load_->share();
}

void ObservedRun::count(RunTarget& target) {
  session_->setup.measures_memory = true;
  session_->setup.tracks_reuse = true;
  session_->setup.samples_traffic = false;
  session_->shapes.listen(true);
  count_call(target, result_);
  settle();
}

void ObservedRun::settle() {
  const bool without = session_->seen.computed_without_data.is_set();
  const bool wrong = setting_.holds_data ? without : session_->seen.computed_with_data.is_set() && !without;
  if (!otherwise_ || !wrong) return;
  setting_.holds_data = !setting_.holds_data;
  setting_.device = otherwise_->device;
  setting_.untimed = otherwise_->untimed;
}

void ObservedRun::repeat(RunTarget& target, const RunLimits& limits) {
  session_->setup.measures_memory = false;
  session_->setup.tracks_reuse = false;
  session_->shapes.listen(false);
  if (setting_.timed()) repeat_calls(target, limits, result_);
}

SessionTarget::SessionTarget(ObservedRun& run, bool of_model)
    : run_(run), of_model_(of_model), thread_(*run.session()) {
  if (of_model || !run.setting().all_threads) run.session()->setup.leaves_out_others = true;
}

void SessionTarget::observe(const std::function<void()>& call, std::optional<Pass>& pass) {
  auto& device = run_.device();
  auto& session = *run_.session();
  const observe::OwnCall own(session, of_model_);
  hooked([&] {
    waiting([&] { device.start(session, run_.setting().base); });
    try {
      call();
    } catch (...) {
      if (!session.is_of_parent()) waiting([&] { pass = device.stop(session, /*raised=*/true); });
      throw;
    }
    if (session.is_of_parent()) {
      throw LogicError(
          "roofprof: this process was forked inside of a call that is profiled, and the profile is its parent's: end "
          "it by os._exit, in C++ by _exit, before the call returns");
    }
    waiting([&] { pass = device.stop(session); });
  });
}

Pass SessionTarget::observed() {
  std::optional<Pass> pass;
  observe([this] { call_in_scope(); }, pass);
  return std::move(*pass);
}

Pass SessionTarget::traced_alone() {
  auto& device = run_.device();
  const observe::OwnCall own(*run_.session(), of_model_);
  Pass pass;
  waiting([&] { device.start_alone(); });
  try {
    if (warms_up()) {
      call();
      waiting([&] { device.restart_alone([this] { prepare(); }); });
    }
    call();
  } catch (...) {
    waiting([&] { device.stop_alone(/*raised=*/true); });
    throw;
  }
  waiting([&] { pass = device.stop_alone(); });
  return pass;
}

std::int64_t SessionTarget::bare() {
  using Clock = std::chrono::steady_clock;
  const auto wait = [this] { run_.device().synchronize(); };
  const observe::OwnCall own(*run_.session(), of_model_);
  if (warms_up()) {
    call();
    prepare();
  }
  waiting(wait);
  const auto start = Clock::now();
  call();
  waiting(wait);
  const auto taken = Clock::now() - start;
  is_short_ = taken < kShortCall;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
}

bool SessionTarget::warms_up() const { return is_short_ && can_trace_alone() && run_.device().can_restart_alone(); }

bool SessionTarget::is_among_ranks() const { return rank_of_environment().world_size > 1; }

void SessionTarget::read_counters(const std::vector<Pass>& timed) {
  const auto again = [this] {
    prepare();
    const observe::OwnCall own(*run_.session(), of_model_);
    call_in_scope();
  };
  hooked([&] { waiting([&] { run_.device().count(*run_.session(), run_.setting().base, timed, again); }); });
}

Report finish_report(ObservedRun& run, RunRecord observed, const MeasuredCeilings& roofs,
                     std::optional<std::int64_t> depth) {
  const auto& setting = run.setting();
  auto& result = run.result();
  observed.run.mode = setting.mode;
  observed.run.device = setting.device;
  observed.run.partial = result.partial;
  observed.run.environment = environment_of(setting.device);
  observed.holds_data = setting.holds_data;
  observed.counting = std::move(*result.counting);
  observed.first_call = std::move(result.first_call);
  observed.timed = std::move(result.timed);
  observed.kernel_passes = std::move(result.kernel_passes);
  auto& runs = observed.run.runs;
  runs.bare_ns = std::move(result.bare_ns);
  runs.warmup = result.warmup;
  runs.steps = result.steps.count();
  if (setting.timed()) runs.step_ns = result.steps.times_ns();
  if (runs.steps > 0) {
    const auto& block = observed.counting;
    runs.after_steps = {std::max<std::int64_t>(block.wall_ns - result.steps.total_ns(), 0), block.outside_steps};
  }
  observed.roofs = roofs.ceilings;
  add_notes(observed.notes, result.notes);
  if (setting.device == "cpu") {
    runs.beside_others = BackgroundLoad::is_busy(result.others_share);
    const auto* meanwhile = setting.mode == Mode::block ? "the block ran" : "the calls were timed";
    if (auto busy = BackgroundLoad::note(result.others_share, meanwhile)) add_note(observed.notes, std::move(*busy));
  }
  if (const auto ranks = rank_of_environment(); !ranks.wrong.empty()) {
    add_note(observed.notes, "rank-not-known", "the report has no rank: " + ranks.wrong);
  }
  if (!setting.untimed.empty() && setting.mode != Mode::count) add_note(observed.notes, "not-timed", setting.untimed);
  if (const double share = roofs.ceilings.busy_share; share > 0) {
    add_note(observed.notes, "roofs-busy",
             "other programs used " + percent(share) +
                 " of the processors while the roofs were measured: they may be too low, and %roof too high; they are "
                 "not kept; measure them on a quiet machine: roofprof ceilings --again");
  }
  for (const auto& note : roofs.notes) add_note(observed.notes, "roofs-doubtful", "roofs: " + note);

  const auto& session = *run.session();
  observed.regions = session.regions.all();
  observed.tree.regions = session.regions.all_paths();
  observed.more_regions = session.regions.refused();
  observed.launches = session.launches.keys();
  observed.others = session.others.all();
  observed.on_device = run.device().facts(observed.timed, !runs.bare_ns.empty());
  return make_report(std::make_shared<const Profile>(join(std::move(observed))), depth);
}

}  // namespace roofprof::run
