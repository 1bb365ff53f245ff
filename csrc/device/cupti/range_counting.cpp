#include "device/cupti/range_counting.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/cupti/metric_sets.h"
#include "device/cupti/range_session.h"
#include "device/nvidia/driver.h"

namespace roofprof::cupti {

namespace {

// The ranges to make room for: where the request expects no number, and at most.
constexpr std::size_t kUsualRooms = 1024;
constexpr std::size_t kMostRooms = 65536;
constexpr std::size_t kMostRounds = 64;  // runs of the body for one set of counters
constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Returns the rooms for the expected ranges. A kernel is one range; counted by module, each entering and each leaving
// is one, with or without launches. A few more than expected cost little.
RangeRooms rooms_for(const CounterRequest& request) {
  const auto expected = static_cast<std::size_t>(std::max<std::int64_t>(request.expected_launches, 0));
  if (expected == 0) return {kUsualRooms, kUsualRooms};
  const std::size_t needed = request.ranges == CounterRanges::modules ? 2 * expected + 1 : expected;
  return {std::min(kMostRooms, needed + needed / 8 + 16), std::min(kMostRooms, needed)};
}

// Counts the kernels of a run from some launch id on. The observer reports every op and module: a run does the same
// each time, so their number marks a place in it.
class LateStart final : public LaunchMarker {
 public:
  // `begin` is called before the id with that number, on the thread that launches.
  LateStart(std::size_t number, std::function<void()> begin) : number_(number), begin_(std::move(begin)) {}

  void push(LaunchId /*id*/, LaunchLevel /*level*/) noexcept override {
    const std::lock_guard lock(mutex_);
    if (ids_++ != number_) return;
    try {
      begin_();
      begun_ = true;
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void pop(LaunchLevel /*level*/) noexcept override {}

  // Known after the run.
  std::size_t ids() const { return ids_; }  // of all
  bool begun() const { return begun_; }
  void check() const {  // throws what `begin` threw
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::size_t number_;
  std::function<void()> begin_;
  std::size_t ids_ = 0;
  bool begun_ = false;
  std::exception_ptr failure_;
};

void require_success(const char* function, CUptiResult result) {
  if (result != CUPTI_SUCCESS) throw CuptiError(function, result);
}

// Adds the values by launch order. The names give it, where they can be read and are all different; else the order of
// the ranges does.
void add_kernels(const std::vector<std::optional<RangeName>>& names, std::vector<std::vector<double>>&& values,
                 std::size_t first, RangeTable& table) {
  std::set<std::size_t> ordinals;
  for (const auto& name : names) {
    if (name && name->ordinal < names.size()) ordinals.insert(name->ordinal);
  }
  const bool named = ordinals.size() == names.size();
  for (std::size_t range = 0; range < names.size(); ++range) {
    table[first + (named ? names[range]->ordinal : range)] = std::move(values[range]);
  }
}

}  // namespace

// The actions around the body in each pass; the device's context is current in all but the marker's.
struct RangeCounting::Steps {
  std::function<void()> begin;
  std::function<LaunchMarker*()> marker;  // for the body
  std::function<void()> end;
};

RangeCounting::RangeCounting(const CounterRequest& request, int device, const Body& body, CounterTrace& trace)
    : request_(request),
      device_(device),
      body_(body),
      trace_(trace),
      mode_(request.ranges == CounterRanges::modules ? RangeMode::modules : RangeMode::kernels),
      rooms_(rooms_for(request)) {}

RangeTable RangeCounting::count(const Configuration& configuration) {
  rounds_ = 0;
  RangeTable table = mode_ == RangeMode::modules ? count_modules(configuration) : count_kernels(configuration);
  if (accepted_ < requested_ || rounds_ > 1) note_rounds();
  return table;
}

RangeSession RangeCounting::open(const Configuration& configuration) {
  const cuda::PrimaryContext context(cuda::driver(), device_);
  return {configuration, static_cast<CUcontext>(context.get()), mode_, rooms_};
}

// Notes the rooms that CUPTI accepted: later sessions begin with as many.
void RangeCounting::took(const RangeSession& session) {
  requested_ = std::max(requested_, rooms_.wanted);
  accepted_ = session.rooms();
  if (accepted_ < rooms_.wanted) rooms_ = {accepted_, accepted_};
  ++rounds_;
}

void RangeCounting::run_passes(RangeSession& session, std::size_t announced, const Steps& steps) {
  const cuda::Driver& driver = cuda::driver();
  for (std::size_t pass = 0;; ++pass) {
    if (pass > announced) {
      throw CollectorError("CUPTI announced " + std::to_string(announced) + " passes and asks for more");
    }
    {
      const cuda::PrimaryContext context(driver, device_);
      steps.begin();
    }
    ++trace_.passes;
    body_(steps.marker());
    const cuda::PrimaryContext context(driver, device_);
    steps.end();
    if (!session.started()) return;
    cuda::synchronize_all(driver);
    if (session.stop()) return;
  }
}

void RangeCounting::start(RangeSession& session) const {
  session.start();
  if (mode_ != RangeMode::kernels_in_pushed_range) return;
  require_success("cuptiRangeProfilerPushRange", session.push("kernels"));
}

void RangeCounting::end(RangeSession& session) const {
  if (mode_ == RangeMode::kernels_in_pushed_range) require_success("cuptiRangeProfilerPopRange", session.pop());
}

RangeCounting::Ranges RangeCounting::read(RangeSession& session, std::size_t metrics) {
  const cuda::PrimaryContext context(cuda::driver(), device_);
  Ranges found;
  found.dropped = session.decode();
  const std::size_t count = session.range_count();
  std::size_t not_evaluated = 0;
  CUptiResult why = CUPTI_SUCCESS;
  for (std::size_t range = 0; range < count; ++range) {
    found.names.push_back(read_range_name(session.range_name(range)));
    std::vector<double>& values = found.values.emplace_back(metrics, kNoValue);
    if (const CUptiResult result = session.evaluate(range, values); result != CUPTI_SUCCESS) {
      std::ranges::fill(values, kNoValue);
      ++not_evaluated;
      why = result;
    }
  }
  if (not_evaluated > 0) {
    add_note(trace_.notes, "counters-not-evaluated",
             "CUPTI could not work out counters of " + std::to_string(not_evaluated) + " of " + std::to_string(count) +
                 " ranges (" + std::string(error_name(why)) + ")");
  }
  return found;
}

void RangeCounting::note_rounds() {
  std::string text = "CUPTI took " + std::to_string(accepted_) + " ranges at a time";
  if (accepted_ < requested_) text += " of " + std::to_string(requested_) + " that were asked for";
  if (rounds_ > 1) text += "; a set of counters took " + std::to_string(rounds_) + " runs";
  add_note(trace_.notes, "counters-in-rounds", std::move(text));
}

// ---- modules: each round opens the ranges that those before it had no room for. A module's metrics are added up, so
// that one which is not a number makes its sum none.

RangeTable RangeCounting::count_modules(const Configuration& configuration) {
  const std::size_t metrics = configuration.metrics().size();
  RangeTable table;
  std::vector<LaunchId> opened;  // whose the ranges were
  std::size_t first = 0;         // that was not counted yet
  std::size_t dropped = 0;
  do {
    RangeSession session = open(configuration);
    took(session);
    ModuleRanges modules(session, first);
    run_passes(session, configuration.passes(),
               {[&] {
                  session.start();
                  modules.begin_pass();
                },
                [&] { return &modules; }, [&] { modules.end_pass(); }});
    modules.check();
    if (modules.threads_took_turns()) {
      add_note(trace_.notes, "counters-between-threads",
               "several threads were in modules at once: what they launched counts for the module that was entered "
               "last, and while one range gives way to another for none");
    }
    if (first == 0) opened = modules.opened();
    if (opened != modules.opened()) break;  // another run than the first one: what is left stays unknown
    const Ranges ranges = read(session, metrics);
    const std::size_t last = std::min(first + session.rooms(), opened.size());
    std::vector<bool> seen(opened.size());
    std::size_t unnamed = 0;
    for (std::size_t range = 0; range < ranges.names.size(); ++range) {
      const auto& name = ranges.names[range];
      if (!name || name->ordinal >= opened.size()) {
        ++unnamed;
        continue;
      }
      seen[name->ordinal] = true;
      std::vector<double>& sums = table.try_emplace(opened[name->ordinal], metrics, 0.0).first->second;
      std::ranges::transform(sums, ranges.values[range], sums.begin(), std::plus());
    }
    // A range may be missing because it ran no kernels; but if some found no room, it may have run some.
    const std::size_t lost = ranges.dropped + unnamed;
    for (std::size_t ordinal = first; lost > 0 && ordinal < last; ++ordinal) {
      if (!seen[ordinal]) table[opened[ordinal]].assign(metrics, kNoValue);
    }
    dropped += lost;
    first = last;
  } while (first < opened.size() && rounds_ < kMostRounds);
  dropped += opened.size() - first;
  trace_.dropped = std::max(trace_.dropped, static_cast<std::int64_t>(dropped));
  for (; first < opened.size(); ++first) table[opened[first]].assign(metrics, kNoValue);
  return table;
}

// ---- kernels

RangeCounting::Ranges RangeCounting::kernels_of_a_run(const Configuration& configuration) {
  RangeSession session = open(configuration);
  took(session);
  run_passes(session, configuration.passes(), {[&] { start(session); }, [] { return nullptr; }, [&] { end(session); }});
  return read(session, configuration.metrics().size());
}

// Counts the kernels of a run from a launch id on.
RangeCounting::LateRanges RangeCounting::kernels_from(std::size_t id, const Configuration& configuration) {
  RangeSession session = open(configuration);
  took(session);
  std::optional<LateStart> late;
  const auto start_here = [&] {
    const cuda::PrimaryContext context(cuda::driver(), device_);
    cuda::synchronize_all(cuda::driver());
    start(session);
  };
  run_passes(session, configuration.passes(),
             {[&] { late.emplace(id, start_here); }, [&] { return &*late; },
              [&] {
                late->check();
                if (late->begun()) end(session);
              }});
  LateRanges found{{}, late->ids(), late->begun()};
  if (found.begun) found.ranges = read(session, configuration.metrics().size());
  return found;
}

RangeTable RangeCounting::count_kernels(const Configuration& configuration) {
  Ranges ranges = kernels_of_a_run(configuration);
  if (ranges.all() == 0 && request_.expected_launches > 0 && mode_ == RangeMode::kernels) {
    mode_ = RangeMode::kernels_in_pushed_range;
    rounds_ = 0;
    ranges = kernels_of_a_run(configuration);
  }
  const std::size_t all = ranges.all();
  RangeTable table;
  add_kernels(ranges.names, std::move(ranges.values), 0, table);
  if (table.size() < all) count_the_rest(configuration, all, table);
  trace_.dropped = std::max(trace_.dropped, static_cast<std::int64_t>(all - table.size()));
  return table;
}

// Makes runs that begin to count later. The number of kernels from a launch id on shows at which kernel the id is, so
// this looks for the latest id that leaves no kernel out.
void RangeCounting::count_the_rest(const Configuration& configuration, std::size_t all, RangeTable& table) {
  std::size_t early = 0;              // an id that is not behind the first kernel that is missing
  std::size_t late = kNoPlace;        // one that is
  std::size_t id = table.size() / 2;  // an op launches about one kernel, and has an id, as its module does
  std::optional<std::size_t> ids;     // of a run
  while (table.size() < all && rounds_ < kMostRounds && early + 1 < late && id > early) {
    LateRanges found = kernels_from(id, configuration);
    if (found.ids == 0) return;                                                    // the body pushes no launch ids
    if (found.ids != ids.value_or(found.ids) || found.ranges.all() > all) return;  // it was another run
    ids = found.ids;
    const std::size_t before = all - found.ranges.all();
    if (!found.begun || before > table.size()) {
      late = std::min({late, id, found.ids});
      id = early + (late - early) / 2;
      continue;
    }
    const std::size_t kept = table.size();
    add_kernels(found.ranges.names, std::move(found.ranges.values), before, table);
    early = id;
    if (table.size() > kept) late = found.ids + 1;
    // The next id: where the next missing kernel is, if the ids that follow launch as many kernels each; a little
    // before that.
    const double kernels_per_id = static_cast<double>(all - before) / static_cast<double>(found.ids - id);
    const auto further = static_cast<std::size_t>(0.9 * static_cast<double>(table.size() - before) / kernels_per_id);
    id = std::min(early + std::max<std::size_t>(further, 1), late - 1);
  }
}

namespace {

int device_for(const CounterRequest& request, const cuda::Driver& driver) {
  if (request.device) return *request.device;
  if (const auto current = cuda::current_device(driver)) return *current;
  const std::vector<int> active = cuda::active_devices(driver);
  if (!active.empty()) return active.front();
  throw CollectorError("no device is in use whose counters could be read", "run something on it first");
}

// Keeps the device's context, whatever the body does, without making it this thread's.
class HeldContext {
 public:
  HeldContext(const cuda::Driver& driver, int device) : driver_(driver), device_(device) {
    const cuda::PrimaryContext context(driver, device);  // says what is wrong where it cannot be had
    driver_.primary_retain(&context_, device_);
  }
  ~HeldContext() { driver_.primary_release(device_); }
  HeldContext(const HeldContext&) = delete;
  HeldContext& operator=(const HeldContext&) = delete;

 private:
  const cuda::Driver& driver_;
  cuda::Device device_;
  cuda::Context context_ = nullptr;
};

void note_other_devices(int device, const cuda::Driver& driver, CounterTrace& trace) {
  std::string others;
  for (const int active : cuda::active_devices(driver)) {
    if (active != device) others.append(others.empty() ? "cuda:" : ", cuda:").append(std::to_string(active));
  }
  if (others.empty()) return;
  add_note(trace.notes, "counters-of-one-device",
           "the counters are of cuda:" + std::to_string(device) + " alone; this process uses " + others + " too");
}

std::vector<std::uint8_t> ask_availability(const Api& api, CUcontext context, CounterTrace& trace) {
  try {
    return counter_availability(api, context);
  } catch (const CuptiError& error) {  // if that prevents counting, switching the counters on will say so
    add_note(trace.notes, "counter-access-not-known",
             "which counters this system allows is not known: " + error.found());
    return {};
  }
}

HostProfiler host_for(int device, const Api& api, CounterTrace& trace) {
  const cuda::PrimaryContext context(cuda::driver(), device);
  check_supported(api, device);
  trace.chip = chip_name(api, static_cast<std::size_t>(device));
  return {api, trace.chip, ask_availability(api, static_cast<CUcontext>(context.get()), trace)};
}

// Puts a group's columns into the table, whose rows the first group makes.
void add_columns(MetricGroup& group, bool first, std::size_t columns, const RangeTable& counted, RangeTable& table) {
  const auto same_range = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!first && !std::ranges::equal(counted, table, same_range)) {
    group.failure = "the code did not launch the same in each run: " + std::to_string(table.size()) +
                    " ranges in the first one, " + std::to_string(counted.size()) + " in that of this counter";
    return;
  }
  for (const auto& [range, values] : counted) {
    std::vector<double>& row = table.try_emplace(range, columns, kNoValue).first->second;
    std::ranges::copy(values, row.begin() + static_cast<std::ptrdiff_t>(group.first_column));
  }
}

}  // namespace

CounterTrace count_ranges(const CounterRequest& request, const RangeCounting::Body& body) {
  const Api& api = cupti::api();
  require_counters(api);
  const cuda::Driver& driver = cuda::driver();
  const int device = device_for(request, driver);
  const HeldContext held(driver, device);
  const ProfilerLibrary library(api);
  CounterTrace trace;
  trace.ranges = request.ranges;
  note_other_devices(device, driver, trace);
  const HostProfiler host = host_for(device, api, trace);
  CounterPlan plan = plan_counters(host, request);
  RangeTable table;
  RangeCounting counting(request, device, body, trace);
  for (MetricGroup& group : plan.groups) {
    const bool first = &group == &plan.groups.front();
    try {
      add_columns(group, first, plan.columns, counting.count(*group.configuration), table);
    } catch (const CuptiError& error) {  // of the others there may still be values
      if (first) throw;
      group.failure = error.found();
    }
  }
  write_counters(std::move(plan), table, trace);
  return trace;
}

}  // namespace roofprof::cupti
