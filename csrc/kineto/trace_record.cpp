#include "kineto/trace_record.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "kineto/collectives.h"
#include "kineto/graph_replays.h"
#include "kineto/json_text.h"
#include "kineto/recorded_arguments.h"
#include "kineto/serving_steps.h"
#include "kineto/trace_reader.h"

namespace roofprof::kineto {
namespace {

// The longest time of a trace, and of anything in it.
constexpr std::int64_t kLongestNs = std::int64_t{7} * 24 * 3600 * 1'000'000'000;
// The largest sum of a trace's times, so that no sum overflows.
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 2;

// Numbers operators from 1 on; a call's number is its signature.
constexpr std::uint32_t kReplayOperator = ~std::uint32_t{0};
constexpr std::uint64_t kOwnKernels = kAnyInputs - 1;

struct Window {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t begin, std::int64_t end) {
    begin_ns = std::min(begin_ns, begin);
    end_ns = std::max(end_ns, end);
  }
  bool empty() const { return begin_ns > end_ns; }
};

// Returns the steps of a trace by number, each with its range on the host.
std::map<std::int64_t, Window> steps_of(const Trace& trace) {
  std::map<std::int64_t, Window> steps;
  for (const auto& event : trace.host) {
    if (event.kind != HostKind::range) continue;
    const auto number = step_number(trace.names[event.name]);
    if (number != kNone) steps[number].add(event.begin_ns, event.end_ns);
  }
  return steps;
}

// Removes the steps in which no op and no launch began, and returns their number: the profiler opens a step after the
// program's last one, which must not count in the mean. If all steps are like that, only kernels were recorded, and all
// stay.
std::int64_t leave_out_empty(std::map<std::int64_t, Window>& steps, const Trace& trace) {
  if (steps.empty()) return 0;
  std::vector<std::int64_t> begins;
  for (const auto& event : trace.host) {
    if (event.kind == HostKind::op || event.kind == HostKind::launch) begins.push_back(event.begin_ns);
  }
  std::ranges::sort(begins);
  const auto is_empty = [&](const auto& step) {
    const auto first = std::ranges::lower_bound(begins, step.second.begin_ns);
    return first == begins.end() || *first > step.second.end_ns;
  };
  if (std::ranges::all_of(steps, is_empty)) return 0;
  return static_cast<std::int64_t>(std::erase_if(steps, is_empty));
}

std::map<std::int64_t, Window> chosen_steps(const std::map<std::int64_t, Window>& all,
                                            const std::optional<StepRange>& wanted) {
  if (!wanted) return all;
  if (all.empty()) {
    throw TraceError("it has no steps to choose from: call prof.step() after each step while recording");
  }
  std::map<std::int64_t, Window> chosen;
  for (const auto& step : all) {
    if (step.first >= wanted->first && step.first <= wanted->second) chosen.insert(step);
  }
  if (chosen.empty()) {
    throw TraceError("it has the steps " + std::to_string(all.begin()->first) + " to " +
                     std::to_string(all.rbegin()->first) + ", none of " + std::to_string(wanted->first) + " to " +
                     std::to_string(wanted->second));
  }
  return chosen;
}

// Returns which of the wanted steps are there, where some are not; empty where all are, or all that there are were
// wanted.
std::string text_of_missing(const std::map<std::int64_t, Window>& chosen, const std::optional<StepRange>& wanted) {
  if (!wanted || wanted->second == std::numeric_limits<std::int64_t>::max()) return {};
  if (wanted->second - wanted->first < static_cast<std::int64_t>(chosen.size())) return {};
  std::vector<std::string> numbers;
  for (const auto& step : chosen) numbers.push_back(std::to_string(step.first));
  return "of the steps " + std::to_string(wanted->first) + " to " + std::to_string(wanted->second) +
         " the trace has only " + listed(numbers);
}

// Finds events whose times are far from all others: one that is decades away would make the trace decades long.
class Strays {
 public:
  explicit Strays(const Trace& trace) {
    constexpr std::size_t kSample = 100'000;
    std::vector<std::int64_t> begins;
    const auto step = (trace.host.size() + trace.device.records.size()) / kSample + 1;
    for (std::size_t i = 0; i < trace.host.size(); i += step) begins.push_back(trace.host[i].begin_ns);
    for (std::size_t i = 0; i < trace.device.records.size(); i += step) {
      begins.push_back(trace.device.records[i].start_ns);
    }
    if (begins.empty()) return;
    const auto middle = begins.begin() + std::ssize(begins) / 2;
    std::ranges::nth_element(begins, middle);
    middle_ns_ = *middle;
  }
  bool has(std::int64_t begin_ns, std::int64_t end_ns) {
    const auto length = end_ns - begin_ns;
    if (begin_ns < middle_ns_ - kLongestNs || end_ns > middle_ns_ + kLongestNs || length > kMostNs - sum_ns_) {
      return true;
    }
    sum_ns_ += length;
    return false;
  }

 private:
  std::int64_t middle_ns_ = 0;
  std::int64_t sum_ns_ = 0;
};

// Finds what launched each record: the index of the host's event; kNone: not known.
class Launchers {
 public:
  explicit Launchers(const std::vector<HostEvent>& host) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      if (host[i].correlation == 0) continue;
      if (host[i].kind == HostKind::launch)
        by_correlation_.try_emplace(host[i].correlation, static_cast<std::int32_t>(i));
      if (host[i].kind == HostKind::op) by_external_.try_emplace(host[i].correlation, static_cast<std::int32_t>(i));
    }
  }
  bool any() const { return !by_correlation_.empty(); }

  std::int32_t of(const KernelRecord& record, std::uint64_t captured, std::uint64_t external) const {
    const auto launch = captured == 0 ? record.correlation : captured;
    if (const auto call = by_correlation_.find(launch); call != by_correlation_.end()) return call->second;
    const auto op = external == 0 ? by_external_.end() : by_external_.find(external);
    return op == by_external_.end() ? kNone : op->second;
  }

 private:
  std::unordered_map<std::uint64_t, std::int32_t> by_correlation_;
  std::unordered_map<std::uint64_t, std::int32_t> by_external_;
};

class Import {
 public:
  Import(Trace trace, CallCosts& costs, const std::optional<StepRange>& steps, const CalledModel* model,
         std::vector<Capture> captures)
      : trace_(std::move(trace)), costs_(costs, trace_), is_part_(steps.has_value()), model_(model) {
    leave_out_strays();
    auto all = steps_of(trace_);
    empty_steps_ = leave_out_empty(all, trace_);
    steps_ = chosen_steps(all, steps);
    missing_steps_ = text_of_missing(steps_, steps);
    for (const auto& event : trace_.host) {
      if (event.kind == HostKind::launch && event.correlation != 0)
        launched_.emplace(event.correlation, event.begin_ns);
    }
    std::ranges::move(own_captures(trace_), std::back_inserter(captures));
    if (is_part_) keep_steps();
    for (const auto& event : trace_.host) window_.add(event.begin_ns, event.end_ns);
    find_list_types(trace_);
    collectives_.see_ranges(trace_);
    tree_ = host_tree(trace_.host);
    give_replays(trace_, tree_, std::move(captures), notes_);
    serving_ = find_serving_steps(trace_, tree_);
    collectives_.find(trace_, tree_);
    counted_ = counted_ops(trace_, tree_, costs_);
  }

  RunRecord run() && {
    const Launchers launchers(trace_.host);
    std::vector<std::int32_t> launcher_of;
    for (std::size_t i = 0; i < trace_.device.records.size(); ++i) {
      launcher_of.push_back(launchers.of(trace_.device.records[i], trace_.captured[i], trace_.external_ids[i]));
    }
    collectives_.see_kernels(trace_.device);
    leave_out_others(launcher_of, launchers.any());
    for (const auto& record : trace_.device.records) window_.add(record.start_ns, record.end_ns);
    if (window_.empty()) window_ = {0, 0};
    places_ = places_of(trace_, tree_, window_.begin_ns, window_.end_ns, model_);
    count_ops();
    give_launches(launcher_of);
    return finish();
  }

 private:
  void leave_out_strays() {
    Strays strays(trace_);
    trace_.damaged += static_cast<std::int64_t>(
        std::erase_if(trace_.host, [&](const HostEvent& event) { return strays.has(event.begin_ns, event.end_ns); }));
    auto& records = trace_.device.records;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (strays.has(records[i].start_ns, records[i].end_ns)) continue;
      records[kept] = records[i];
      trace_.external_ids[kept++] = trace_.external_ids[i];
    }
    trace_.damaged += std::ssize(records) - static_cast<std::int64_t>(kept);
    records.resize(kept);
    trace_.external_ids.resize(kept);
  }

  void keep_steps() {
    std::map<std::int64_t, std::int64_t> ends;  // of the windows, by their begin; those that overlap are one
    std::vector<Window> windows;
    for (const auto& [step, window] : steps_) windows.push_back(window);
    std::ranges::sort(windows, {}, &Window::begin_ns);
    for (const auto& window : windows) {
      const auto last = ends.empty() ? ends.end() : std::prev(ends.end());
      if (last != ends.end() && last->second >= window.begin_ns) {
        last->second = std::max(last->second, window.end_ns);
      } else {
        ends.emplace(window.begin_ns, window.end_ns);
      }
    }
    std::erase_if(trace_.host, [&](const HostEvent& event) {
      const auto behind = ends.upper_bound(event.begin_ns);
      return behind == ends.begin() || event.begin_ns >= std::prev(behind)->second;
    });
  }

  // Handles kernels that no event here launched: code before the trace, or other steps, launched them.
  void leave_out_others(std::vector<std::int32_t>& launcher_of, bool any_launches) {
    if (!any_launches && !is_part_) return;
    std::int64_t kept = 0;
    auto& records = trace_.device.records;
    std::int64_t before_ns = 0;
    std::int64_t before = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (launcher_of[i] == kNone) {
        const auto launch = launched_.find(records[i].correlation);
        if (launch == launched_.end()) {
          before_ns += records[i].end_ns - records[i].start_ns;
          ++before;
        }
        trace_.device.others.push_back({records[i].device, records[i].start_ns, records[i].end_ns});
        continue;
      }
      records[static_cast<std::size_t>(kept)] = records[i];
      launcher_of[static_cast<std::size_t>(kept)] = launcher_of[i];
      ++kept;
    }
    records.resize(static_cast<std::size_t>(kept));
    launcher_of.resize(static_cast<std::size_t>(kept));
    if (before == 0) return;
    add_note(notes_, "launched-before",
             counted(before, "kernel, copy or fill", "kernels, copies and fills") + " that took " +
                 microseconds(before_ns) +
                 " were launched before the trace began: they are in no row and in no sum, because what launched them "
                 "is not known");
  }

  std::size_t bucket_of(std::size_t event) {
    const auto& op = trace_.host[event];
    const auto& place = places_.of_event[event];
    const std::pair key(op.call, place);
    if (const auto known = buckets_.find(key); known != buckets_.end()) return known->second;
    const auto& call = trace_.calls[at(op.call)];
    const auto& cost = counted_.costs[at(op.call)];
    Pass::Op bucket;
    bucket.op = call.op;
    bucket.owner = place;
    describe(bucket, cost);
    if (call.triton) {
      bucket.fused = fused_ops(call.op, costs_);
      bucket.code = call.code;
    }
    bucket.number = number_of(op.name);
    bucket.signature = bucket.inputs = static_cast<std::uint64_t>(op.call);
    if (!cost.failure.empty()) pass_.failures.try_emplace(call.op, cost.failure);
    if (const auto assumed = costs_.assumed(call); cost.costed && !assumed.empty()) {
      assumed_.try_emplace(call.op, assumed);
    }
    pass_.ops.push_back(std::move(bucket));
    buckets_.emplace(key, pass_.ops.size() - 1);
    return pass_.ops.size() - 1;
  }

  void count_ops() {
    bucket_of_event_.assign(trace_.host.size(), kNone);
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      if (std::cmp_not_equal(counted_.owners[i], i)) continue;
      const auto index = bucket_of(i);
      auto& bucket = pass_.ops[index];
      bucket_of_event_[i] = static_cast<std::int32_t>(index);
      ++bucket.calls;
      bucket.work += counted_.costs[at(trace_.host[i].call)].work;
      bucket.time_ns = bucket.time_ns.value_or(0) + trace_.host[i].end_ns - trace_.host[i].begin_ns;
      const auto& call = trace_.calls[at(trace_.host[i].call)];
      if (!call.described && call.message == kNone) ++undescribed_;
      ++counted_calls_;
    }
  }

  LaunchId launch_id(LaunchKey key) {
    const std::pair id(key.key, key.op);
    const auto [known, fresh] = launch_ids_.try_emplace(id, static_cast<LaunchId>(launches_.size()));
    if (fresh) launches_.push_back(std::move(key));
    return known->second;
  }

  std::uint32_t number_of(std::uint32_t name) {
    return numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size() + 1)).first->second;
  }

  LaunchId launch_of_function(std::string_view function, const Owner& place) {
    const auto name = "nccl:" + std::string(function);
    const auto [known, fresh] = functions_.try_emplace(name, static_cast<std::uint32_t>(trace_.names.size()));
    if (fresh) trace_.names.push_back(name);
    return launch_id({{number_of(known->second), place, kOwnKernels}, name});
  }

  void give_launches(const std::vector<std::int32_t>& launcher_of) {
    launches_.emplace_back();  // kNoLaunch
    for (std::size_t i = 0; i < launcher_of.size(); ++i) {
      auto& record = trace_.device.records[i];
      const auto launcher = launcher_of[i];
      // NCCL's kernels that no op launched stand by themselves: they communicate.
      const auto function =
          record.kind == KernelKind::kernel ? function_of_kernel(trace_.device.names[record.name]) : std::string_view{};
      if (launcher == kNone) {
        if (!function.empty()) record.launch = launch_of_function(function, {kOutside});
        continue;
      }
      const auto owner = counted_.owners[at(launcher)];
      if (owner != kNone) {
        const auto& bucket = pass_.ops[at(bucket_of_event_[at(owner)])];
        if (record.kind == KernelKind::kernel) {
          collectives_.launched(at(owner), record, trace_.device.names[record.name]);
        }
        record.launch = launch_id({bucket.key(), bucket.op});
        continue;
      }
      // The op around it is a composite, or has others inside that count.
      const auto& place = places_.of_event[at(launcher)];
      if (!function.empty()) {
        record.launch = launch_of_function(function, place);
      } else if (launches_graph(trace_.names[trace_.host[at(launcher)].name])) {
        record.launch = launch_id({{kReplayOperator, place, kOwnKernels}, std::string(kGraphReplay)});
      } else if (const auto op = innermost_op(trace_.host, tree_, launcher); op != kNone) {
        const auto name = trace_.host[at(op)].name;
        record.launch = launch_id({{number_of(name), place, kOwnKernels}, trace_.names[name]});
      } else if (place != Owner{kOutside}) {
        record.launch = launch_id({{0, place}, {}});
      }
    }
    number_graphs();
  }

  // Numbers the kernels that one launch of a graph runs: their order distinguishes them.
  void number_graphs() {
    auto& records = trace_.device.records;
    std::unordered_map<std::uint64_t, std::int64_t> of_launch;
    for (const auto& record : records) ++of_launch[record.correlation];
    std::unordered_map<std::uint64_t, std::uint64_t> next;
    std::ranges::stable_sort(records, {}, &KernelRecord::start_ns);
    for (auto& record : records) {
      if (record.correlation == 0 || record.graph_node != 0 || of_launch[record.correlation] == 1) continue;
      record.graph_node = ++next[record.correlation];
    }
  }

  std::uint32_t main_device() const {
    std::map<std::uint32_t, std::int64_t> records;
    for (const auto& record : trace_.device.records) ++records[record.device];
    const auto most = std::ranges::max_element(records, {}, [](const auto& count) { return count.second; });
    return most == records.end() ? 0 : most->first;
  }

  // Returns what the trace says of a device. ROCm numbers devices in another way: where all are alike, it is any of
  // them.
  DeviceProperties properties_of(std::uint32_t number) const {
    if (number < trace_.devices.size()) return trace_.devices[number];
    const auto alike = [&](const DeviceProperties& one) { return one.name == trace_.devices.front().name; };
    return std::ranges::all_of(trace_.devices, alike) && !trace_.devices.empty() ? trace_.devices.front()
                                                                                 : DeviceProperties{};
  }

  bool any_ops() const {
    return std::ranges::any_of(trace_.host, [](const HostEvent& event) { return event.kind == HostKind::op; });
  }

  void note_what_lacks() {
    if (trace_.recorder != Trace().recorder) {
      add_note(
          notes_, "trace-lacks",
          trace_.recorder +
              " records no operators and no modules: times are by kernels and ranges, and what work they do is not "
              "known");
    } else {
      note_what_the_profiler_lacks();
    }
    if (!missing_steps_.empty()) add_note(notes_, "trace-lacks", missing_steps_);
    if (empty_steps_ > 0) {
      add_note(notes_, "trace-lacks",
               counted(empty_steps_, "step") + " of the trace without any op " + (empty_steps_ == 1 ? "is" : "are") +
                   " left out, of what is said of steps too: the profiler opens one behind the last");
    }
    if (trace_.damaged > 0) {
      add_note(notes_, "trace-lacks",
               counted(trace_.damaged, "event") +
                   " without a name or a time, or with a time far from all others, were left out");
    }
  }

  // Notes what the trace has about generated kernels.
  void note_generated() {
    std::set<std::string_view> kernels;
    for (const auto& op : pass_.ops) {
      if (!op.fused.empty()) kernels.insert(op.op);
    }
    if (kernels.empty()) return;
    add_note(notes_, "compiled-kernels",
             counted(std::ssize(kernels), "generated kernel") +
                 " of compiled code: the ops in them are by their names, bytes by the sizes of their tensors, each "
                 "once; what a kernel updates in place moves twice, which the trace tells where no other of its "
                 "tensors can be its output; " +
                 (places_.model.empty() ? "no trace says which modules their ops are of"
                                        : "the module is the one that called the compiled code, and no trace says "
                                          "which ones in it their ops are of"));
  }

  void note_what_the_profiler_lacks() {
    if (trace_.event_list) {
      add_note(notes_, "trace-lacks",
               "the file has names and times of operators alone, as EventList.export_chrome_trace (of prof.events()) "
               "writes it: prof.export_chrome_trace of torch.profiler.profile writes shapes, modules and kernels, too");
      return;
    }
    if (counted_calls_ > 0 && undescribed_ == counted_calls_) {
      const bool unchecked = model_ != nullptr && places_.unaligned.empty() && !places_.model.empty();
      add_note(notes_, "trace-lacks",
               std::string("the trace has no shapes, so the work of its ops is not known") +
                   (unchecked ? ", nor whether its modules have the sizes of the given model's" : "") +
                   ": record with record_shapes=True");
    } else if (undescribed_ > 0) {
      add_note(notes_, "trace-lacks",
               "the trace has no shapes of " + counted(undescribed_, "call of an op", "calls of ops") +
                   ": their work is not known");
    }
    if (counted_calls_ == 0 && !trace_.device.records.empty()) {
      add_note(
          notes_, "trace-lacks",
          "the trace has kernels but no operators, so their work is not known: record with ProfilerActivity.CPU too");
    }
    if (!assumed_.empty()) {
      std::string text = "traces leave out arguments that are texts; their defaults are taken:";
      for (const auto& [op, argument] : assumed_) {
        text += text.ends_with(':') ? " " : ", ";
        text += op;
        text += ' ';
        text += argument;
      }
      add_note(notes_, "trace-lacks", std::move(text));
    }
    if (!any_ops() && trace_.device.records.empty()) {
      add_note(
          notes_, "trace-lacks",
          std::string(is_part_ ? "the steps have" : "the trace has") +
              " no operators: no op of torch's ran on the threads that were recorded, which are the profiler's own "
              "and autograd's, unless profile_all_threads is set");
    } else if (places_.model.empty() && trace_.python_frames == 0) {
      add_note(notes_, "trace-lacks",
               "the trace has no modules, so all ops stand under regions or (outside): record with with_stack=True");
    } else if (places_.model.empty()) {
      add_note(notes_, "trace-lacks",
               "the trace has stacks, but no call of an nn.Module in them, so all ops stand under regions or "
               "(outside): stacks are recorded of threads that run when the profiler starts");
    }
    if (!places_.unaligned.empty()) {
      add_note(notes_, "model-not-aligned",
               "the calls in the trace are not those of the model: " + places_.unaligned +
                   "; rows are named by class and number: give the model that was recorded, as a whole");
    }
    if (trace_.device.records.empty() && !launched_.empty()) {
      add_note(notes_, "trace-lacks",
               trace_.counter_ranges > 0
                   ? "the trace has ranges of hardware counters instead of kernels, so device times are not known"
                   : "the trace has launches but no kernels, so the times are the host's: record with "
                     "ProfilerActivity.CUDA");
    }
  }

  // Returns the innermost Python frame that the host was in for most of the time before the first launch; empty if
  // the stacks do not show one.
  std::string ran_before_launches() const {
    constexpr double kMost = 0.6;
    auto first_ns = window_.end_ns;
    for (const auto& record : trace_.device.records) first_ns = std::min(first_ns, record.start_ns);
    const auto before = static_cast<double>(first_ns - window_.begin_ns);
    const auto share_of = [&](const PythonFrame& frame) {
      const auto until = std::min(frame.end_ns, first_ns);
      return static_cast<double>(until - std::max(frame.begin_ns, window_.begin_ns)) / before;
    };
    const PythonFrame* innermost = nullptr;
    for (const auto& frame : trace_.long_frames) {
      if (before <= 0 || share_of(frame) < kMost) continue;
      const auto lasts = [](const PythonFrame& one) { return one.end_ns - one.begin_ns; };
      if (innermost == nullptr || lasts(frame) < lasts(*innermost)) innermost = &frame;
    }
    return innermost == nullptr ? "" : innermost->name + " for " + percent(share_of(*innermost)) + " of that time";
  }

  RunRecord finish() {
    RunRecord observed;
    const bool on_device = !trace_.device.records.empty();
    const auto number = main_device();
    const auto device = properties_of(number);
    auto& run = observed.run;
    run.model = places_.model.empty() ? "trace" : places_.model;
    run.device = on_device ? "cuda:" + std::to_string(number) : "cpu";
    run.mode = Mode::block;
    run.bypass_sought = false;
    observed.tree = {std::move(places_.modules), std::move(places_.region_paths)};
    observed.regions = std::move(places_.regions);
    observed.more_regions = places_.more_regions;
    observed.imported = Imported{trace_.recorder + (trace_.recorded_by.empty() ? "" : " (" + trace_.recorded_by + ")")};
    observed.launches = std::move(launches_);
    const auto tell = [&](std::string_view key, EnvironmentValue fact) {
      run.environment.emplace_back(key, std::move(fact));
    };
    if (on_device && !device.name.empty()) tell(fact_keys::kGpu, device.name);
    if (!trace_.recorded_by.empty()) tell("recorded_by", observed.imported->source);
    if (trace_.rank != kNone) tell(fact_keys::kRank, trace_.rank);
    if (!trace_.host_name.empty()) tell(fact_keys::kHost, trace_.host_name);
    if (!steps_.empty()) {
      tell(fact_keys::kRecordedSteps, text_of(RecordedSteps{steps_.begin()->first, steps_.rbegin()->first}));
    }
    if (auto ran = ran_before_launches(); on_device && !ran.empty())
      tell(fact_keys::kHostBeforeLaunches, std::move(ran));
    if (trace_.world_size > 0) tell(fact_keys::kWorldSize, trace_.world_size);
    for (const auto& [step, window] : steps_) {
      ++run.runs.steps;
      if (run.runs.step_ns.size() < kStepsTimed) run.runs.step_ns.push_back(window.end_ns - window.begin_ns);
    }
    if (is_part_ && run.runs.steps > 0) run.runs.after_steps.emplace();  // nothing else was kept
    note_what_lacks();
    note_generated();
    pass_.collectives = collectives_.of_pass(trace_, counted_, bucket_of_event_, pass_.ops);
    add_notes(notes_, collectives_.notes());
    note_serving(serving_, notes_);
    run.token_calls = std::move(serving_.tokens);
    observed.notes = std::move(notes_);
    pass_.wall_ns = window_.end_ns - window_.begin_ns;
    pass_.clocks = std::move(places_.clocks);
    pass_.regions = std::move(places_.region_clocks);
    pass_.unknown_backward_nodes = places_.unknown_backward_nodes;
    if (on_device) {
      trace_.device.start_ns = window_.begin_ns;
      for (const auto& record : trace_.device.records) {
        trace_.device.start_ns = std::min(trace_.device.start_ns, record.start_ns);
      }
      trace_.device.end_ns = window_.end_ns;
      pass_.device = std::make_shared<const DeviceTrace>(std::move(trace_.device));
      observed.on_device = DeviceFacts{};
      if (!trace_.rocm) observed.on_device->compute_capability = device.compute_capability;
    }
    observed.counting = pass_;
    observed.timed.push_back(std::move(pass_));
    return observed;
  }

  Trace trace_;
  CollectiveCosts costs_;
  Collectives collectives_;
  bool is_part_ = false;  // some of its steps alone
  const CalledModel* model_ = nullptr;
  std::map<std::int64_t, Window> steps_;
  std::int64_t empty_steps_ = 0;
  std::string missing_steps_;
  std::unordered_map<std::uint64_t, std::int64_t> launched_;  // when, by correlation: in and out of the window
  Window window_;
  HostTree tree_;
  ServingSteps serving_;
  CountedOps counted_;
  Places places_;
  Pass pass_;
  std::map<std::pair<std::int32_t, Owner>, std::size_t> buckets_;
  std::map<std::string, std::uint32_t> functions_;            // of NCCL: index into names
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;  // of operators, by name
  std::vector<std::int32_t> bucket_of_event_;
  std::int64_t counted_calls_ = 0;
  std::int64_t undescribed_ = 0;
  std::map<std::pair<OpKey, std::string>, LaunchId> launch_ids_;
  std::vector<LaunchKey> launches_;
  std::map<std::string, std::string> assumed_;  // by operator: arguments that the trace lacks
  std::vector<Note> notes_;
};

}  // namespace

RunRecord trace_record(Trace trace, CallCosts& costs, const std::optional<StepRange>& steps, const CalledModel* model,
                       std::vector<Capture> captures) {
  return Import(std::move(trace), costs, steps, model, std::move(captures)).run();
}

}  // namespace roofprof::kineto
