#include "analysis/ranks/rank_merger.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
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

std::string kind_of_report(const Profile& data) {
  const bool in_block = data.run.mode == Mode::block;
  const bool timed = data.run.runs.chosen >= 0;
  std::string kind = in_block ? "a block" : timed ? "a run" : "a count";
  if (in_block && !timed) kind += " without times";
  if (data.origin.part) kind += " within '" + shown(data.origin.part->region) + "'";
  return data.device ? kind + " with times of a device" : kind;
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

  Profile first;  // what holds for all of it, and nothing that is summed
  EnvironmentFacts first_facts;
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
  KnownSum wall;
  double roofs_apart = 0;
  std::vector<std::int64_t> other_roofs;  // ranks whose roofs are not comparable with the first's
  std::vector<Values> values = {{"the model", {}},
                                {"torch", {}},
                                {"steps", {}},
                                {"the number of ranks", {}},
                                {"the range of recorded steps", {}},
                                {"what is known of kernels of compiled code", {}}};
  bool bypass_sought = true;
  std::vector<Note> notes;
  std::map<std::string, std::int64_t> notes_left_out;
  std::vector<KeptReport> kept;

  void check(const Profile& data, const std::string& name, std::int64_t rank) const;
  void add_facts(const Profile& data, const EnvironmentFacts& facts, std::int64_t rank);
  void add_notes_of(const Profile& data);
  void compare_roofs(const Profile& data, std::int64_t rank);
  void add_collectives(const Profile& data, const MergedIndices& indices, const std::vector<std::int64_t>& buckets,
                       std::optional<ClockOffset> clock, const EnvironmentFacts& facts, std::int64_t rank);
  std::vector<std::int64_t> missing() const;
  void note_aligned(std::vector<Note>& notes) const;
  void write_notes(Profile& data) const;
};

void RankMerger::Merged::check(const Profile& data, const std::string& name, std::int64_t rank) const {
  const auto refuse = [&](const std::string& why) { throw InvalidArgument(name + ": " + why); };
  if (data.origin.merged() != nullptr) refuse("it is a merged report already: give those of the ranks");
  if (rank < 0) {
    refuse(std::string("it does not say which rank it is of: ") +
           (!data.origin.imported ? "torchrun's RANK and WORLD_SIZE did not name one"
                                  : "its trace was recorded without torch.distributed"));
  }
  if (known.contains(rank)) refuse("rank " + std::to_string(rank) + " is there already");
  if (ranks.empty()) return;
  if (kind_of_report(data) != kind_of_report(first)) {
    refuse("it is " + kind_of_report(data) + ", and " + first_name + " is " + kind_of_report(first) +
           ": merge reports of one kind");
  }
}

void RankMerger::Merged::add_notes_of(const Profile& data) {
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

void RankMerger::Merged::compare_roofs(const Profile& data, std::int64_t rank) {
  const auto apart = distance_of_roofs(first.roofs, data.roofs);
  if (!apart) {
    other_roofs.push_back(rank);
  } else {
    roofs_apart = std::max(roofs_apart, *apart);
  }
}

void RankMerger::Merged::add_collectives(const Profile& data, const MergedIndices& indices,
                                         const std::vector<std::int64_t>& buckets, std::optional<ClockOffset> clock,
                                         const EnvironmentFacts& facts, std::int64_t rank) {
  const bool is_first = ranks.empty();
  // A trace's times are by the clock of its machine. Calls are numbered from the first recorded step on.
  const bool is_trace = !clock && !is_first && data.origin.imported && first.origin.imported;
  const bool by_ends = is_trace && facts.recorded_steps == first_facts.recorded_steps;
  if (!clock && (is_first || (!facts.boot.empty() && facts.boot == first_facts.boot))) clock = ClockOffset{};
  if (!clock && !by_ends && !data.comms->calls.empty()) (is_trace ? other_steps : other_clocks).push_back(rank);
  collectives.add(data, indices, buckets, facts.host,
                  {clock, by_ends, !facts.host.empty() && facts.host == first_facts.host});
}

void RankMerger::Merged::add_facts(const Profile& data, const EnvironmentFacts& facts, std::int64_t rank) {
  const auto& runs = data.run.runs;
  wall.add(value_of_run(runs.total_ns, runs.chosen));
  expected = std::max(expected, facts.world_size.value_or(0));
  values[0].ranks[data.run.model].push_back(rank);
  values[1].ranks[facts.torch].push_back(rank);
  values[2].ranks[std::to_string(runs.steps)].push_back(rank);
  if (facts.world_size) values[3].ranks[std::to_string(*facts.world_size)].push_back(rank);
  const auto steps = facts.recorded_steps ? text_of(*facts.recorded_steps) : "";
  if (data.origin.imported) values[4].ranks[steps].push_back(rank);
  const auto is_compiled = [](const OpBucket& op) { return is_compiled_code(op.op); };
  const auto& kernels = data.times->compiled_kernels;
  if (!kernels.empty() || std::ranges::any_of(data.counts.ops, is_compiled))
    values[5].ranks[kernels.empty() ? "nothing" : "their times"].push_back(rank);
  bypass_sought = bypass_sought && data.run.bypass_sought;
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

void RankMerger::Merged::write_notes(Profile& data) const {
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

std::int64_t RankMerger::add(const Profile& data, const std::string& name, std::int64_t given_rank,
                             const std::string& host, const std::optional<ClockOffset>& clock) {
  auto facts = facts_in(data.run.environment);
  const std::int64_t rank = given_rank >= 0 ? given_rank : facts.rank.value_or(-1);
  merged_->check(data, name, rank);
  check_consistent(data);  // reading a file does not check it
  const auto rows = join_rows(data);
  const auto total = join_total(data, rows);

  auto& merged = *merged_;
  if (merged.ranks.empty()) {
    merged.first_name = name;
    merged.first.run = data.run;
    merged.first.origin = data.origin;
    merged.first.roofs = data.roofs;
    if (data.device) merged.first.device.make();  // for the kind of report
    merged.first_facts = facts;
  }
  if (!host.empty()) facts.host = host;
  const auto indices = merged.tree.add(data);
  const auto buckets = merged.sums.add(data, indices);
  merged.add_collectives(data, indices, buckets, clock, facts, rank);
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].time_ns) continue;
    const auto at = index_of(indices.module(ids[i]));
    if (at >= merged.times.size()) merged.times.resize(at + 1);
    merged.times[at].add(*rows[i].time_ns, rank);
  }
  if (total.time_ns) merged.total.add(*total.time_ns, rank);
  merged.add_facts(data, facts, rank);
  merged.ranks.push_back(rank_line(data, total, rank));
  merged.ranks.back().host = facts.host;
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

void RankMerger::keep(std::int64_t rank, std::shared_ptr<const Profile> report) {
  merged_->kept.push_back({rank, std::move(report)});
}

Profile RankMerger::finish() {
  const auto merged = std::exchange(merged_, std::make_unique<Merged>());
  if (merged->ranks.empty()) throw InvalidArgument("there are no reports to merge");
  Profile data = std::move(merged->first);
  data.tree = merged->tree.tree();
  data.counts = merged->sums.counts();
  if (auto times = merged->sums.times(); times != Times{}) data.times = std::move(times);
  if (data.device) data.device = merged->sums.device();
  if (!merged->other_roofs.empty()) data.roofs = {};
  merged->aligned_clocks = merged->collectives.align();
  std::vector<std::optional<std::int64_t>> waiting;
  if (auto comms = merged->collectives.finish(waiting); comms != CollectiveData{}) data.comms = std::move(comms);
  for (std::size_t i = 0; i < waiting.size(); ++i) merged->ranks[i].waiting_ns = waiting[i];
  MergedRanks ranks;
  ranks.ranks = merged->ranks;
  std::ranges::sort(ranks.ranks, {}, &Rank::rank);
  ranks.missing = merged->missing();
  ranks.kept = std::move(merged->kept);
  std::ranges::sort(ranks.kept, {}, &KeptReport::rank);
  ranks.total = merged->total.over_ranks();
  for (std::size_t id = 0; id < merged->times.size(); ++id) {
    const auto time = merged->times[id].over_ranks();
    if (time.ranks > 0) ranks.modules.push_back({static_cast<ModuleId>(id), time});
  }
  data.run.partial = !ranks.missing.empty() || std::ranges::any_of(ranks.ranks, &Rank::partial);
  data.run.bypass_sought = merged->bypass_sought;
  data.run.token_calls = merged->sums.token_calls();
  data.run.runs = {};
  if (const auto wall = merged->wall.value()) {
    data.run.runs.total_ns = {*wall};
    data.run.runs.chosen = 0;
  }
  std::erase_if(data.run.environment, [](const auto& fact) { return is_of_one_rank(fact.first); });
  data.origin.kind = std::move(ranks);
  merged->write_notes(data);
  return data;
}

}  // namespace roofprof
