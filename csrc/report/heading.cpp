// Adds the paragraphs above every table: what was profiled, how, and what a reader must know.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "analysis/rows.h"
#include "analysis/whole/analysis.h"
#include "core/idle.h"
#include "core/median.h"
#include "core/phrases.h"
#include "core/profile.h"
#include "core/region_table.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

namespace {

constexpr std::size_t kShownPlaces = 3;

// ---- ranks

std::size_t hosts_of(const std::vector<Rank>& ranks) {
  std::set<std::string> hosts;
  for (const auto& rank : ranks) hosts.insert(rank.host);
  return hosts.size();
}

std::string rank_words(const Report& report) {
  const auto& ranks = report.ranks();
  std::string text = counted(std::ssize(ranks), "rank");
  const bool hosts_known = std::ranges::all_of(ranks, [](const Rank& rank) { return !rank.host.empty(); });
  if (hosts_known) text += " on " + counted(static_cast<std::int64_t>(hosts_of(ranks)), "host");
  text += ": work and times are sums over ranks";
  const auto wall = std::ranges::max_element(ranks, {}, [](const Rank& rank) { return rank.wall_ns.value_or(-1); });
  if (wall != ranks.end() && wall->wall_ns) {
    text += fmt::format("; the longest took {} (rank {})", human_time(static_cast<double>(*wall->wall_ns)), wall->rank);
  }
  return text;
}

std::string late_rank_words(const Report& report) {
  const auto& late = analysis_of(report).late_rank();
  if (!late) return "";
  const auto time = [](std::int64_t ns) { return human_time(static_cast<double>(ns)); };
  std::string text = fmt::format("rank {} keeps the others waiting: they wait {} in collectives, it {}", late->rank,
                                 time(late->others_ns), time(late->waiting_ns));
  const auto rank = std::ranges::find(report.ranks(), late->rank, &Rank::rank);
  if (rank->compute_ns && rank->idle_ns) {
    text += fmt::format("; it computes {} and is idle {}", time(*rank->compute_ns), time(*rank->idle_ns));
  }
  return text;
}

std::string slow_rank_words(const Report& report) {
  const auto& slow = analysis_of(report).slow_rank();
  if (!slow) return "";
  const std::string text =
      fmt::format("rank {} computes {} times as long as the median rank", slow->rank, human_ratio(slow->ratio));
  std::vector<std::string> modules;
  for (const auto& path : topmost_of(slow->modules)) modules.push_back(path);
  return modules.empty() ? text : text + ", most in " + listed(modules, kNamed);
}

// ---- the run

// Something was done outside of a block's steps.
bool goes_on_outside_steps(const Runs& runs) { return runs.after_steps && runs.after_steps->work != Work{}; }

std::string mode_words(const Profile& data) {
  const bool in_block = data.run.mode == Mode::block;
  const std::string steps = counted(data.run.runs.steps, "step", "steps");
  if (data.origin.imported) {
    return "a trace of " + data.origin.imported->source + (data.run.runs.steps > 0 ? ", " + steps : "");
  }
  const bool goes_back =
      std::ranges::any_of(data.counts.ops, [](const auto& op) { return op.owner.phase == Phase::backward; });
  const std::string_view call = goes_back ? "one call, forward and backward" : "one call";
  if (data.origin.part) return fmt::format("within {}, in {}", data.origin.part->region, in_block ? "a block" : call);
  if (!in_block) return std::string(call);
  if (data.run.runs.steps == 0) return "a block";
  if (!goes_on_outside_steps(data.run.runs)) return "a block of " + steps;
  const bool between =
      std::ranges::find(data.tree.regions, kBetweenSteps, &RegionPath::name) != data.tree.regions.end();
  return "a block of " + steps + (between ? " and what ran between them" : " and what came after");
}

// "a step on average: 255 µs, 4.09G MACs, 8.22G FLOPs, 426 MB (the block's time and work by the number of steps)";
// empty where no steps were marked, or it is not known what came after them.
std::string step_words(const Report& report) {
  const Runs& runs = data_of(report).run.runs;
  const bool goes_on = goes_on_outside_steps(runs);
  if (!runs.after_steps || (runs.steps < 2 && !goes_on)) return "";
  const AfterSteps& after = *runs.after_steps;
  const auto mean = [&](std::int64_t sum) { return static_cast<double>(sum) / static_cast<double>(runs.steps); };
  const RooflineRow& total = report.total();
  std::string text = "a step on average: ";
  std::string_view what = "the steps' work";
  if (total.wall_ns && !data_of(report).device) {
    text += human_time(mean(*total.wall_ns - after.wall_ns)) + ", ";
    what = goes_on ? "the block's time and work without what was outside of steps" : "the block's time and work";
  } else if (total.wall_ns && !goes_on) {  // the last step ends when the device has done it
    text += human_time(mean(*total.wall_ns)) + ", ";
    what = "the block's time, until the device had done all, and its work";
  }
  const std::string_view at_least = total.incomplete ? ">=" : "";
  text += fmt::format(
      "{0}{1} MACs, {0}{2} FLOPs, {0}{3}", at_least, human_count(mean(total.macs - after.work.macs), "", ""),
      human_count(mean(total.flops - after.work.flops()), "", ""), human_bytes(mean(total.bytes - after.work.bytes())));
  return text + fmt::format(" ({} by the number of steps)", what);
}

// A trace's steps have the numbers of ProfilerStep, which --steps takes; a block's are counted from 0. Empty: numbers
// are missing in between.
std::optional<std::int64_t> number_of_first_step(const Report& report) {
  if (!data_of(report).origin.imported) return 0;
  const auto recorded = facts_in(report.environment()).recorded_steps;
  if (!recorded || recorded->last - recorded->first + 1 != report.steps()) return std::nullopt;
  return recorded->first;
}

// "single steps, each from the end of the one before: median 250 us, spread 12%, slowest 280 us (step 3 of 0 to 9)";
// empty where no steps were marked.
std::string step_time_words(const Report& report) {
  const auto steps = report.step_statistics();
  if (!steps || steps->count < 2) return "";
  std::string text = "single steps";
  if (steps->count < report.steps().value_or(0)) text += fmt::format(", of the first {}", steps->count);
  text +=
      data_of(report).origin.imported ? ", as long as the host was in each" : ", each from the end of the one before";
  if (data_of(report).device) text += ", by the host's clock, which waits for no device";
  text += fmt::format(": median {}, spread {}, slowest {}", human_time(steps->median_ns),
                      human_percent(100 * steps->spread), human_time(static_cast<double>(steps->slowest_ns)));
  const auto first = number_of_first_step(report);
  if (!first) return text;
  return text + fmt::format(" (step {} of {} to {}{})", *first + steps->slowest_index, *first,
                            *first + steps->count - 1,
                            data_of(report).origin.imported ? ", by ProfilerStep's numbers" : "");
}

// "decode: 63 calls with 63 new tokens, contexts of 513 to 575, 8.10 ms a call, 123 tokens/s, AI 0.49; the cache held
// up to 37.7 MB beside 498 MB of weights"
std::string token_words(const TokenPhase& phase) {
  std::string text = fmt::format("{}: {} with {}", phase.name, counted(phase.calls, "call", "calls"),
                                 counted(phase.tokens, "new token", "new tokens"));
  if (phase.most_context) {
    const bool one = phase.least_context == phase.most_context;
    text += one ? fmt::format(", a context of {}", *phase.most_context)
                : fmt::format(", contexts of {} to {}", phase.least_context.value_or(0), *phase.most_context);
  }
  if (phase.time_ns && phase.calls > 0) {
    text +=
        fmt::format(", {} a call", human_time(static_cast<double>(*phase.time_ns) / static_cast<double>(phase.calls)));
  }
  if (phase.tokens_per_second) text += fmt::format(", {}", human_count(*phase.tokens_per_second, "tokens/s"));
  if (phase.intensity) text += fmt::format(", AI {}", human_ratio(*phase.intensity));
  if (phase.weight_bytes == 0) return text;  // a trace does not have them
  text += "; ";
  if (phase.cache_bytes > 0)
    text += fmt::format("the cache held up to {} beside ", human_bytes(static_cast<double>(phase.cache_bytes)));
  return text + human_bytes(static_cast<double>(phase.weight_bytes)) + " of weights";
}

// "MFU 31.2%, HFU 41.0%: 2 x MACs a second of the peak in 48.0 ms (its wall time), ..."; of language models and where
// something was recomputed.
std::string utilization_words(const Report& report) {
  const auto& data = data_of(report);
  const auto utilization = report.flops_utilization();
  const auto recomputed = [](const OpBucket& bucket) { return bucket.owner.phase == Phase::recompute; };
  if (!utilization || (data.run.token_calls.empty() && std::ranges::none_of(data.counts.ops, recomputed))) return "";
  const auto limit = report.total().incomplete ? ">=" : "";
  return fmt::format("MFU {0}{1}, HFU {0}{2}: 2 x MACs a second of the peak in {3} ({4}), HFU with what was recomputed",
                     limit, human_percent(utilization->mfu), human_percent(utilization->hfu),
                     human_time(static_cast<double>(utilization->time_ns)), utilization->time_of);
}

std::string machine_words(const Report& report) {
  const auto facts = facts_in(report.environment());
  std::vector<std::string> words;
  const auto& device = facts.gpu.empty() ? facts.processor : facts.gpu;
  if (!device.empty() && device != data_of(report).run.device) words.push_back(device);
  if (facts.torch_threads) words.push_back(counted(*facts.torch_threads, "thread", "threads"));
  if (!facts.torch.empty()) words.push_back("torch " + facts.torch);
  return fmt::format("{}", fmt::join(words, ", "));
}

// Returns the words for what busy and idle time add up to.
std::string_view words_of(IdleBasis basis) {
  switch (basis) {
    case IdleBasis::bare:
      return " of a bare call";
    case IdleBasis::observing:
      return " without what observing adds";
    case IdleBasis::seen:
    case IdleBasis::unsettled:
      break;
  }
  return " as recorded";
}

// "; device busy for 5.66 ms of 6.12 ms of a bare call (92.5%)"; empty where none was traced.
std::string device_words(const Report& report) {
  const Profile& data = data_of(report);
  const RooflineRow& total = report.total();
  if (!total.busy_ns || !total.idle_ns || !total.utilization) return "";
  const auto time = [](std::int64_t ns) { return human_time(static_cast<double>(ns)); };
  const auto both = saturating_add(*total.busy_ns, *total.idle_ns);
  const auto devices = std::max<std::int64_t>(devices_of(*data.device), 1);
  const bool several = devices > 1;
  std::string text =
      fmt::format("; {} busy for {} of {}{}{} ({})", several ? "devices" : "device", time(*total.busy_ns),
                  several ? fmt::format("{} x ", devices) : "", time(both / devices),
                  words_of(data.device->timeline.idle_basis), human_percent(*total.utilization));
  const auto before = total.wall_ns.value_or(0) - both;
  const bool launched_before = !several && find_note(data.notes, "launched-before") != nullptr;
  if (launched_before && before > 0) text += fmt::format(", the other {} with earlier launches", time(before));
  return text;
}

// ", predicted: 12.3 ms (80% of models: 10.9 ms to 14.1 ms); under autocast in fp16"
std::string prediction_words(const Report& report) {
  const RooflineRow& total = report.total();
  std::string text = ", predicted";
  if (total.time_ns) text += ": " + human_time(static_cast<double>(*total.time_ns));
  if (total.time_low_ns && total.time_high_ns) {
    text += fmt::format(" (80% of models: {} to {})", human_time(static_cast<double>(*total.time_low_ns)),
                        human_time(static_cast<double>(*total.time_high_ns)));
  }
  return text + "; " + report.prediction();
}

std::string run_words(const Report& report) {
  const Profile& data = data_of(report);
  const Runs& runs = data.run.runs;
  std::string text = mode_words(data);
  if (data.origin.merged() != nullptr) return text + " on " + rank_words(report);
  const auto wall = report.total().wall_ns;
  if (!wall && data.origin.part) {
    return text + ": no time is known of it, since no run was timed or those that were opened it less often, as " +
           "compiled code does; so there are no rates and bounds";
  }
  if (!wall) return text + ", counted only: no run was timed, so there are no times, rates and bounds";
  if (data.origin.predicted() != nullptr) return text + prediction_words(report);
  text += ": " + human_time(static_cast<double>(*wall));
  if (data.origin.part && data.device) text += " on the host";
  if (runs.total_ns.size() > 1) {
    text +=
        fmt::format(", {} {} runs", data.origin.part ? "in the median one of" : "the median of", runs.total_ns.size());
    if (runs.warmup > 0) text += fmt::format(" after {} for warm-up", runs.warmup);
  }
  if (report.total().time_spread) text += ", spread " + human_percent(100 * *report.total().time_spread);
  if (!runs.bare_ns.empty()) text += "; bare " + human_time(median(runs.bare_ns));
  if (const auto overhead = observer_overhead(runs)) {
    text += fmt::format(", so observing adds {}", human_percent(100 * *overhead));
  }
  return text + device_words(report);
}

// "peak memory 1.2 GB of 24 GB"; empty where it was not measured.
std::string memory_words(const Report& report) {
  const auto peak = report.total().peak_memory;
  if (!peak) return "";
  std::string text = "peak memory " + human_bytes(static_cast<double>(*peak));
  const bool watched = find_note(data_of(report).notes, "memory-by-sizes") != nullptr;
  if (watched || data_of(report).run.device == "meta") text += " by the sizes of tensors";
  std::optional<std::int64_t> room;  // of the machine, or what its control groups allow
  for (const auto& [key, value] : report.environment()) {
    const auto* bytes = std::get_if<std::int64_t>(&value);
    if (bytes != nullptr && (key == "memory_total_bytes" || key == "memory_limit_bytes"))
      room = std::min(room.value_or(*bytes), *bytes);
  }
  if (room && data_of(report).run.device == "cpu") text += " of " + human_bytes(static_cast<double>(*room));
  return text + ", above what was allocated before the call";
}

// Empty where everything ran.
std::string partial_words(const Profile& data) {
  if (!data.run.partial) return "";
  if (data.origin.merged() == nullptr) return "an exception ended it; this is what ran before";
  if (!data.origin.merged()->missing.empty()) return "some ranks are missing; sums are of the others";
  return "on some ranks an exception ended it; of these it is what ran before";
}

}  // namespace

void add_heading(Document& document, const Report& report) {
  const Profile& data = data_of(report);
  const std::string machine = machine_words(report);
  std::string title = fmt::format("{} on {}", data.run.model.empty() ? "model" : data.run.model, data.run.device);
  if (!machine.empty()) title += " (" + machine + ")";
  document.add_title(std::move(title));
  document.say("", run_words(report));
  const auto say_if_any = [&](const std::string& words) {
    if (!words.empty()) document.say("", words);
  };
  for (const auto& words : {step_words(report), step_time_words(report), memory_words(report)}) say_if_any(words);
  for (const TokenPhase& phase : analysis_of(report).language_model()) document.say("", token_words(phase));
  for (const auto& words : {utilization_words(report), slow_rank_words(report), late_rank_words(report)}) {
    say_if_any(words);
  }
  const auto warn = [&](std::string label, std::string text) {
    document.add(Paragraph{.label = std::move(label), .text = std::move(text), .role = Role::warning});
  };
  if (auto words = partial_words(data); !words.empty()) warn("PARTIAL", std::move(words));
  for (const auto& note : data.notes) {
    if (note.level == NoteLevel::attention) warn("ATTENTION", note_text(note));
  }
}

std::string note_text(const Note& note) {
  std::string text = note.text;
  if (note.count < 2 || note.level == NoteLevel::info) return text;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(note.where.size(), kShownPlaces); ++i) {
    shown.push_back(note.where[i].empty() ? "the model" : note.where[i]);
  }
  if (note.where.size() > kShownPlaces) shown.emplace_back("...");
  return text + fmt::format(" ({} times{}{})", note.count, shown.empty() ? "" : ": ", fmt::join(shown, ", "));
}

}  // namespace roofprof
