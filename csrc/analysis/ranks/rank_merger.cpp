#include "analysis/ranks/rank_merger.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "analysis/ranks/merged_sums.h"
#include "analysis/ranks/rank_figures.h"
#include "analysis/rows.h"
#include "core/median.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

// The number of texts that are kept of one code. A note that several ranks have is kept once.
constexpr std::ptrdiff_t kTextsOfACode = 10;

// The environment's fact about a trace: "4-6".
constexpr std::string_view kRecordedSteps = "recorded_steps";

std::string kind_of_report(const ProfileData& data) {
  std::string kind = data.mode == "block" ? "a block" : data.runs.chosen < 0 ? "a count" : "a run";
  if (data.mode == "block" && data.runs.chosen < 0) kind += " without times";
  if (data.part) kind += " within '" + shown(data.part->region) + "'";
  return data.device_timed ? kind + " with times of a device" : kind;
}

}  // namespace

struct RankMerger::Merged {
  // The times of one row, of all ranks.
  struct Times {
    std::vector<std::int64_t> ns;
    double sum = 0;
    std::int64_t slowest = 0;
    std::int64_t longest_ns = -1;

    void add(std::int64_t time_ns, std::int64_t rank) {
      ns.push_back(time_ns);
      sum += static_cast<double>(time_ns);
      if (time_ns > longest_ns || (time_ns == longest_ns && rank < slowest)) {
        longest_ns = time_ns;
        slowest = rank;
      }
    }

    TimeOverRanks over_ranks() const {
      if (ns.empty()) return {};
      return {std::ssize(ns),
              std::ranges::min(ns),
              static_cast<std::int64_t>(median(ns)),
              longest_ns,
              sum / static_cast<double>(ns.size()),
              slowest};
    }
  };

  // Collects which ranks have which value of something that should be the same everywhere.
  struct Values {
    std::string what;
    std::map<std::string, std::vector<std::int64_t>> ranks;
  };

  ProfileData first;  // for what holds for all: the environment, roofs, kind
  std::string first_name;
  MergedTree tree;
  MergedSums sums;
  MergedCollectives collectives;
  std::vector<std::int64_t> other_clocks;  // ranks whose clocks are not known
  std::vector<std::int64_t> other_steps;   // ranks whose traces are of other steps than the first's
  std::vector<AlignedClock> aligned_clocks;
  std::vector<Rank> ranks;
  std::set<std::int64_t> known;
  std::int64_t expected = 0;
  std::vector<Times> times;  // by merged module
  Times total;
  KnownSum wall, peak, busy;
  std::int64_t most_memory = 0;
  double roofs_apart = 0;
  std::vector<std::int64_t> other_roofs;  // ranks whose roofs are not comparable with the first's
  std::vector<Values> values = {{"the model", {}},
                                {"torch", {}},
                                {"steps", {}},
                                {"the number of ranks", {}},
                                {"the range of recorded steps", {}},
                                {"what is known of kernels of compiled code", {}}};
  std::map<std::string, std::int64_t> unobserved;
  std::int64_t dropped_records = 0, unattributed_kernels = 0;
  bool bypass_sought = true;
  bool crossings_known = true;
  std::int64_t idle_before_ns = 0;
  std::int64_t idle_after_ns = 0;
  IdleBasis idle_basis = IdleBasis::unsettled;  // the one with most of the observer in it
  std::int64_t observing_ns = 0;
  std::vector<Note> notes;
  std::map<std::string, std::int64_t> notes_left_out;
  std::vector<KeptReport> kept;

  void check(const ProfileData& data, const std::string& name, std::int64_t rank) const;
  void add_facts(const ProfileData& data, std::int64_t rank);
  void add_notes_of(const ProfileData& data);
  void compare_roofs(const ProfileData& data, std::int64_t rank);
  void add_collectives(const ProfileData& data, const MergedIndices& indices, const std::vector<std::int64_t>& buckets,
                       std::optional<ClockOffset> clock, const std::string& host, std::int64_t rank);
  std::vector<std::int64_t> missing() const;
  void note_aligned(std::vector<Note>& notes) const;
  void write_notes(ProfileData& data) const;
};

void RankMerger::Merged::check(const ProfileData& data, const std::string& name, std::int64_t rank) const {
  const auto refuse = [&](const std::string& why) { throw std::invalid_argument(name + ": " + why); };
  if (data.merged() != nullptr) refuse("it is a merged report already: give those of the ranks");
  if (rank < 0) {
    refuse(std::string("it does not say which rank it is of: ") +
           (!data.imported ? "torchrun's RANK and WORLD_SIZE did not name one"
                           : "its trace was recorded without torch.distributed"));
  }
  if (known.contains(rank)) refuse("rank " + std::to_string(rank) + " is there already");
  if (ranks.empty()) return;
  if (kind_of_report(data) != kind_of_report(first)) {
    refuse("it is " + kind_of_report(data) + ", and " + first_name + " is " + kind_of_report(first) +
           ": merge reports of one kind");
  }
}

void RankMerger::Merged::add_notes_of(const ProfileData& data) {
  for (const auto& note : data.notes) {
    const auto same_code = [&](const Note& other) { return other.code == note.code; };
    const auto same = [&](const Note& other) { return same_code(other) && other.text == note.text; };
    const bool is_known = std::ranges::any_of(notes, same);
    if (!is_known && std::ranges::count_if(notes, same_code) >= kTextsOfACode) {
      notes_left_out[note.code] += note.count;
    } else {
      add_note(notes, note);
    }
  }
}

void RankMerger::Merged::compare_roofs(const ProfileData& data, std::int64_t rank) {
  const auto apart = distance_of_roofs(first.ceilings, data.ceilings);
  if (!apart) {
    other_roofs.push_back(rank);
  } else {
    roofs_apart = std::max(roofs_apart, *apart);
  }
}

void RankMerger::Merged::add_collectives(const ProfileData& data, const MergedIndices& indices,
                                         const std::vector<std::int64_t>& buckets, std::optional<ClockOffset> clock,
                                         const std::string& host, std::int64_t rank) {
  const auto boot = text_in(data.environment, "boot");
  const auto host_name = host.empty() ? text_in(data.environment, "host") : host;
  const bool is_first = ranks.empty();
  // A trace's times are by the clock of its machine. Calls are numbered from the first recorded step on.
  const bool is_trace = !clock && !is_first && data.imported && first.imported;
  const bool by_ends =
      is_trace && text_in(data.environment, kRecordedSteps) == text_in(first.environment, kRecordedSteps);
  if (!clock && (is_first || (!boot.empty() && boot == text_in(first.environment, "boot")))) clock = ClockOffset{};
  if (!clock && !by_ends && !data.collectives.calls.empty()) (is_trace ? other_steps : other_clocks).push_back(rank);
  collectives.add(data, indices, buckets, host_name,
                  {clock, by_ends, !host_name.empty() && host_name == text_in(first.environment, "host")});
}

void RankMerger::Merged::add_facts(const ProfileData& data, std::int64_t rank) {
  wall.add(value_of_run(data.runs.total_ns, data.runs.chosen));
  peak.add(data.peak_memory);
  most_memory = std::max(most_memory, data.peak_memory.value_or(0));
  busy.add(data.busy_ns);
  idle_before_ns = saturating_add(idle_before_ns, data.idle_before_ns);
  idle_after_ns = saturating_add(idle_after_ns, data.idle_after_ns);
  idle_basis = std::max(idle_basis, data.idle_basis);
  observing_ns = std::max(observing_ns, data.observing_ns);
  expected = std::max(expected, number_in(data.environment, "world_size").value_or(0));
  values[0].ranks[data.model].push_back(rank);
  values[1].ranks[text_in(data.environment, "torch")].push_back(rank);
  values[2].ranks[std::to_string(data.runs.steps)].push_back(rank);
  if (const auto size = number_in(data.environment, "world_size")) {
    values[3].ranks[std::to_string(*size)].push_back(rank);
  }
  if (data.imported) values[4].ranks[text_in(data.environment, kRecordedSteps)].push_back(rank);
  const auto is_compiled = [](const OpBucket& op) { return is_compiled_code(op.op); };
  if (!data.compiled_kernels.empty() || std::ranges::any_of(data.ops, is_compiled))
    values[5].ranks[data.compiled_kernels.empty() ? "nothing" : "their times"].push_back(rank);
  for (const auto& [name, calls] : data.unobserved) unobserved[name] = saturating_add(unobserved[name], calls);
  dropped_records = saturating_add(dropped_records, data.dropped_records);
  unattributed_kernels = saturating_add(unattributed_kernels, data.unattributed_kernels);
  bypass_sought = bypass_sought && data.bypass_sought;
  crossings_known = crossings_known && data.crossings_known;
  compare_roofs(data, rank);
  add_notes_of(data);
}

std::vector<std::int64_t> RankMerger::Merged::missing() const {
  std::vector<std::int64_t> missing;
  for (std::int64_t rank = 0; rank < expected; ++rank) {
    if (!known.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

void RankMerger::Merged::note_aligned(std::vector<Note>& notes) const {
  constexpr std::size_t kRanksNamed = 8;
  const auto in_us = [](std::int64_t ns, std::int64_t more) { return std::to_string((ns + more) / 1000) + " µs"; };
  std::vector<std::int64_t> lost, of_first_host;
  std::vector<std::string> differences;
  std::int64_t largest_ns = 0, error_ns = 0, fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [rank, collectives, is_of_first_host, clock] : aligned_clocks) {
    const auto number = ranks[static_cast<std::size_t>(rank)].rank;
    if (collectives == 0) {
      (is_of_first_host ? of_first_host : lost).push_back(number);
      continue;
    }
    const auto apart_ns = std::abs(clock.offset_ns);
    fewest = std::min(fewest, collectives);
    largest_ns = std::max(largest_ns, apart_ns);
    error_ns = std::max(error_ns, clock.error_ns);
    differences.push_back("rank " + std::to_string(number) + " is " + in_us(apart_ns, 500) +
                          (clock.offset_ns <= 0 ? " ahead" : " behind"));
  }
  if (!differences.empty()) {
    std::string text = "clocks, aligned by the ends of " + std::to_string(fewest) +
                       " or more collectives that ranks share, differ from rank " + std::to_string(ranks.front().rank) +
                       "'s: " + listed(differences, kRanksNamed);
    if (differences.size() > kRanksNamed) text += ", by up to " + in_us(largest_ns, 500);
    add_note(
        notes, "ranks-clocks",
        text + "; nine of ten ends agree within " + in_us(error_ns, 999) + ": waits are no more certain than that");
  }
  if (!other_steps.empty()) {
    add_note(notes, "ranks-clocks",
             named_ranks(other_steps) + " recorded other steps than rank " + std::to_string(ranks.front().rank) +
                 ": which calls of collectives are the same is not known, and so are no waits of calls with " +
                 (other_steps.size() == 1 ? "it" : "them"));
  }
  if (!of_first_host.empty()) {
    add_note(notes, "ranks-clocks",
             named_ranks(of_first_host) + (of_first_host.size() == 1 ? " is" : " are") +
                 " taken to have the clock of rank " + std::to_string(ranks.front().rank) +
                 ", whose host has the same name: there are no three collectives that end alike on both");
  }
  if (!lost.empty()) {
    add_note(notes, "ranks-clocks",
             (lost.size() == 1 ? "the clock of " : "the clocks of ") + named_ranks(lost) +
                 " could not be aligned, as there are no three collectives that end alike there and on other ranks: "
                 "waits of calls with " +
                 (lost.size() == 1 ? "it" : "them") + " are not known");
  }
}

void RankMerger::Merged::write_notes(ProfileData& data) const {
  if (const auto lost = missing(); !lost.empty()) {
    add_note(data.notes, "ranks-missing",
             named_ranks(lost) + " of " + std::to_string(expected) + (lost.size() == 1 ? " is" : " are") +
                 " missing: sums and comparisons are of the others");
  }
  for (const auto& [what, ranks_by_value] : values) {
    if (ranks_by_value.size() < 2) continue;
    std::string text;
    for (const auto& [value, its_ranks] : ranks_by_value) {
      add_item(text, shown(value) + " on " + named_ranks(its_ranks));
    }
    add_note(data.notes, "ranks-differ", (what + " is not the same on all ranks: ").append(text));
  }
  if (!other_roofs.empty()) {
    add_note(data.notes, "ranks-roofs",
             "the roofs of " + named_ranks(other_roofs) +
                 " are of another device, or of other dtypes or memory levels, so merged rows have no bounds: each "
                 "rank's share of its roof is in the table of ranks");
  } else if (roofs_apart > 0) {
    add_note(data.notes, "ranks-roofs",
             "the roofs of " + first_name + " stand for all: those of others are up to " + percent(roofs_apart) +
                 " away from them");
  }
  note_aligned(data.notes);
  if (!other_clocks.empty()) {
    add_note(data.notes, "ranks-clocks",
             "ranks " + listed_ranks(other_clocks) +
                 " have clocks of other machines: how long others waited for them in collectives is not known "
                 "(roofprof.gather aligns clocks)");
  } else if (aligned_clocks.empty() && collectives.clock_error_ns() > 0) {
    add_note(data.notes, "ranks-clocks",
             "clocks of several machines were aligned, and are at most " +
                 std::to_string((collectives.clock_error_ns() + 999) / 1000) +
                 " µs off: waits in collectives are no more certain than that");
  }
  add_notes(data.notes, notes);
  for (const auto& [code, count] : notes_left_out) {
    const auto kind = std::ranges::find(kNoteKinds, code, &NoteKind::code);
    if (kind == kNoteKinds.end()) continue;
    Note note = make_note(*kind, "more of this kind are in the reports of the ranks");
    note.count = count;
    data.notes.push_back(std::move(note));
  }
}

RankMerger::RankMerger() : merged_(std::make_unique<Merged>()) {}
RankMerger::~RankMerger() = default;

void RankMerger::note_assumed(const std::string& text) { add_note(merged_->notes, "ranks-assumed", text); }

void RankMerger::expect(std::int64_t world_size) { merged_->expected = std::max(merged_->expected, world_size); }

std::int64_t RankMerger::add(const ProfileData& data, const std::string& name, std::int64_t given_rank,
                             const std::string& host, const std::optional<ClockOffset>& clock) {
  const std::int64_t rank = given_rank >= 0 ? given_rank : number_in(data.environment, "rank").value_or(-1);
  merged_->check(data, name, rank);
  check_consistent(data);  // reading a file does not check it
  const auto rows = join_rows(data);
  const auto total = join_total(data, rows);

  auto& merged = *merged_;
  if (merged.ranks.empty()) {
    merged.first_name = name;
    merged.first.model = data.model;
    merged.first.device = data.device;
    merged.first.mode = data.mode;
    merged.first.part = data.part;
    merged.first.device_timed = data.device_timed;
    merged.first.compute_capability = data.compute_capability;
    merged.first.counters = data.counters;
    merged.first.counter_ranges = data.counter_ranges;
    merged.first.counter_passes = data.counter_passes;
    merged.first.ceilings = data.ceilings;
    merged.first.environment = data.environment;
    merged.first.imported = data.imported;
    merged.first.runs.chosen = data.runs.chosen;  // for the kind of report
  }
  const auto indices = merged.tree.add(data);
  const auto buckets = merged.sums.add(data, indices);
  merged.add_collectives(data, indices, buckets, clock, host, rank);
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].time_ns) continue;
    const auto at = index_of(indices.module(ids[i]));
    if (at >= merged.times.size()) merged.times.resize(at + 1);
    merged.times[at].add(*rows[i].time_ns, rank);
  }
  if (total.time_ns) merged.total.add(*total.time_ns, rank);
  merged.add_facts(data, rank);
  merged.ranks.push_back(rank_line(data, total, rank));
  if (!host.empty()) merged.ranks.back().host = host;
  merged.known.insert(rank);
  return rank;
}

std::vector<std::int64_t> RankMerger::typical_ranks() const {
  // Sorts ranks by what each computed; if that is not known, by its time.
  const auto& ranks = merged_->ranks;
  const bool computed = std::ranges::all_of(ranks, [](const Rank& rank) { return rank.compute_ns.has_value(); });
  std::vector<std::pair<std::int64_t, std::int64_t>> by_time;
  for (const auto& rank : ranks) {
    by_time.emplace_back((computed ? rank.compute_ns : rank.time_ns).value_or(0), -rank.rank);
  }
  if (by_time.empty()) return {};
  std::ranges::sort(by_time);
  const auto slowest = -by_time.back().second, middle = -by_time[(by_time.size() - 1) / 2].second;
  return slowest == middle ? std::vector{slowest} : std::vector{slowest, middle};
}

void RankMerger::keep(std::int64_t rank, std::string json) { merged_->kept.push_back({rank, std::move(json)}); }

ProfileData RankMerger::finish() {
  const auto merged = std::exchange(merged_, std::make_unique<Merged>());
  if (merged->ranks.empty()) throw std::invalid_argument("there are no reports to merge");
  ProfileData data = std::move(merged->first);
  data.runs = {};
  std::erase_if(data.environment, [](const auto& fact) {
    return fact.first == "rank" || fact.first == "host" || fact.first == "boot" || fact.first == kRecordedSteps;
  });
  data.modules = merged->tree.modules();
  data.regions = merged->tree.regions();
  merged->sums.write(data);
  if (const auto wall = merged->wall.value()) {
    data.runs.total_ns = {*wall};
    data.runs.chosen = 0;
  }
  if (merged->peak.value()) data.peak_memory = merged->most_memory;
  data.alive_at_peak.clear();  // of one rank
  data.memory_timeline = {};
  data.busy_ns = merged->busy.value().value_or(0);
  data.idle_before_ns = merged->idle_before_ns;
  data.idle_after_ns = merged->idle_after_ns;
  data.idle_basis = merged->idle_basis;
  data.observing_ns = merged->observing_ns;
  if (!merged->other_roofs.empty()) data.ceilings = {};
  data.unobserved = merged->unobserved;
  data.dropped_records = merged->dropped_records;
  data.unattributed_kernels = merged->unattributed_kernels;
  data.bypass_sought = merged->bypass_sought;
  data.crossings_known = merged->crossings_known;
  merged->aligned_clocks = merged->collectives.align();
  std::vector<std::optional<std::int64_t>> waiting;
  merged->collectives.write(data, waiting);
  for (std::size_t i = 0; i < waiting.size(); ++i) merged->ranks[i].waiting_ns = waiting[i];
  MergedRanks ranks;
  ranks.ranks = merged->ranks;
  std::ranges::sort(ranks.ranks, {}, &Rank::rank);
  ranks.missing = merged->missing();
  ranks.kept = std::move(merged->kept);
  std::ranges::sort(ranks.kept, {}, &KeptReport::rank);
  data.partial = !ranks.missing.empty() || std::ranges::any_of(ranks.ranks, &Rank::partial);
  ranks.total = merged->total.over_ranks();
  for (std::size_t id = 0; id < merged->times.size(); ++id) {
    const auto time = merged->times[id].over_ranks();
    if (time.ranks > 0) ranks.modules.push_back({static_cast<ModuleId>(id), time});
  }
  data.kind = std::move(ranks);
  merged->write_notes(data);
  return data;
}

}  // namespace roofprof
