#include "ncu/match.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/counter_join.h"
#include "ncu/counters.h"
#include "ncu/kernel_names.h"

namespace roofprof::ncu {

namespace {

constexpr std::int32_t kNobody = -1;
using Keys = std::vector<std::int32_t>;  // of kernels: equal where they may be the same launch

// A stretch of keys that two sequences have in common.
struct Stretch {
  std::size_t first = 0;   // in the one
  std::size_t second = 0;  // in the other
  std::size_t length = 0;
};

// All stretches of a sequence, as a suffix automaton (Blumer et al. 1985): finds the longest that another one shares in
// a time that grows with the length of the two alone.
class Stretches {
 public:
  Stretches(const Keys& keys, std::size_t begin, std::size_t end) : begin_(begin) {
    states_.emplace_back();
    for (std::size_t i = begin; i < end; ++i) append(keys[i], i - begin + 1);
  }

  // Returns the longest; of equal ones the first of `other`, and there the first of the sequence.
  Stretch longest_in(const Keys& other, std::size_t begin, std::size_t end) const {
    Stretch best;
    std::size_t state = 0;
    std::size_t length = 0;
    for (std::size_t i = begin; i < end; ++i) {
      auto next = states_[state].next.find(other[i]);
      while (state != 0 && next == states_[state].next.end()) {
        state = states_[state].link;
        length = states_[state].length;
        next = states_[state].next.find(other[i]);
      }
      if (next == states_[state].next.end()) continue;
      state = next->second;
      if (++length > best.length) best = {begin_ + states_[state].first_end - length, i + 1 - length, length};
    }
    return best;
  }

 private:
  static constexpr std::size_t kNoLink = ~std::size_t{0};
  struct State {
    std::map<std::int32_t, std::size_t> next;
    std::size_t link = kNoLink;
    std::size_t length = 0;
    std::size_t first_end = 0;  // where it stands first, behind its last key
  };

  void append(std::int32_t key, std::size_t position) {
    const std::size_t added = states_.size();
    states_.push_back({{}, 0, position, position});
    auto state = last_;
    for (; state != kNoLink && !states_[state].next.contains(key); state = states_[state].link) {
      states_[state].next[key] = added;
    }
    if (state != kNoLink) {
      const auto next = states_[state].next[key];
      states_[added].link = states_[state].length + 1 == states_[next].length ? next : split(state, key, next);
    }
    last_ = added;
  }

  std::size_t split(std::size_t state, std::int32_t key, std::size_t next) {
    const std::size_t copy = states_.size();
    states_.push_back(states_[next]);
    states_[copy].length = states_[state].length + 1;
    states_[next].link = copy;
    for (; state != kNoLink; state = states_[state].link) {
      const auto found = states_[state].next.find(key);
      if (found == states_[state].next.end() || found->second != next) break;
      found->second = copy;
    }
    return copy;
  }

  std::vector<State> states_;
  std::size_t last_ = 0;
  std::size_t begin_ = 0;
};

// The length of sequences that may be compared, all comparisons together: beyond it what is left is not matched.
constexpr std::size_t kCompared = 20'000'000;

// The kernel of ncu's for each launch of the trace; kNobody: none.
struct Matching {
  std::vector<std::int32_t> of_launch;
  std::int64_t matched = 0;
  std::int64_t again = 0;  // of them, those whose kernel another launch has too
};

class Matcher {
 public:
  // `steps`: of the trace; 0: they are not marked.
  Matcher(const Keys& trace, const Keys& counted, std::int64_t steps) : steps_(steps) {
    matching_.of_launch.assign(trace.size(), kNobody);
    keep_common(trace, counted, trace_, trace_at_);
    keep_common(counted, trace, counted_, counted_at_);
  }

  Matching run() && {
    match(0, trace_.size(), 0, counted_.size());
    if (matching_.matched > 0 && steps_ != 1) match_again();
    return std::move(matching_);
  }

 private:
  static void keep_common(const Keys& keys, const Keys& others, Keys& kept, std::vector<std::size_t>& at) {
    const std::unordered_set<std::int32_t> known(others.begin(), others.end());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!known.contains(keys[i])) continue;
      kept.push_back(keys[i]);
      at.push_back(i);
    }
  }

  void take(const Stretch& stretch) {
    for (std::size_t i = 0; i < stretch.length; ++i) {
      matching_.of_launch[trace_at_[stretch.second + i]] = static_cast<std::int32_t>(counted_at_[stretch.first + i]);
    }
    matching_.matched += static_cast<std::int64_t>(stretch.length);
  }

  void match(std::size_t begin, std::size_t end, std::size_t counted_begin, std::size_t counted_end) {
    std::vector<std::array<std::size_t, 4>> todo = {{begin, end, counted_begin, counted_end}};
    while (!todo.empty()) {
      const auto [first, last, counted_first, counted_last] = todo.back();
      todo.pop_back();
      compared_ += last - first + counted_last - counted_first;
      if (first == last || counted_first == counted_last || compared_ > kCompared) continue;
      const auto found = Stretches(counted_, counted_first, counted_last).longest_in(trace_, first, last);
      if (found.length == 0) continue;
      take(found);
      todo.push_back({first, found.second, counted_first, found.first});
      todo.push_back({found.second + found.length, last, found.first + found.length, counted_last});
    }
  }

  // Stretches that are left, such as further steps of the trace, are held against all that ncu counted.
  void match_again() {
    constexpr std::size_t kLong = 8;  // shorter ones may be other code with the same kernels
    const auto least =
        std::max(std::min(kLong, counted_.size()), steps_ > 1 ? counted_.size() / 4 : counted_.size() * 9 / 10);
    const Stretches all(counted_, 0, counted_.size());
    std::vector<std::pair<std::size_t, std::size_t>> todo;
    for (std::size_t i = 0; i < trace_.size();) {
      const auto begin = i;
      while (i < trace_.size() && matching_.of_launch[trace_at_[i]] == kNobody) ++i;
      if (i > begin) todo.emplace_back(begin, i);
      if (i == begin) ++i;
    }
    while (!todo.empty()) {
      const auto [begin, end] = todo.back();
      todo.pop_back();
      compared_ += end - begin;
      if (begin == end || compared_ > kCompared) continue;
      const auto found = all.longest_in(trace_, begin, end);
      if (found.length < least) continue;
      take(found);
      matching_.again += static_cast<std::int64_t>(found.length);
      todo.emplace_back(begin, found.second);
      todo.emplace_back(found.second + found.length, end);
    }
  }

  Keys trace_;  // those that the other has too
  Keys counted_;
  std::vector<std::size_t> trace_at_;  // where they stand
  std::vector<std::size_t> counted_at_;
  std::size_t compared_ = 0;
  std::int64_t steps_;
  Matching matching_;
};

// The part of a launch's sizes that ncu's table has.
enum class Sizes : std::uint8_t { none, products, all };

Sizes sizes_in(const Output& output) {
  const auto all = [&](auto known) { return std::ranges::all_of(output.kernels, known); };
  if (all([](const auto& kernel) { return kernel.grid[0] > 0 && kernel.block[0] > 0; })) return Sizes::all;
  if (all([](const auto& kernel) { return kernel.blocks > 0 && kernel.block_threads > 0; })) return Sizes::products;
  return Sizes::none;
}

std::int64_t product(const std::array<std::int32_t, 3>& sizes) { return std::int64_t{sizes[0]} * sizes[1] * sizes[2]; }

// Numbers names: those that have a counterpart by their plain form by that, all others by the function's name.
class NameKeys {
 public:
  NameKeys(const std::vector<std::string>& traced, const std::vector<std::string>& counted) {
    std::vector<std::string> traced_plain;
    std::vector<std::string> counted_plain;
    std::ranges::transform(traced, std::back_inserter(traced_plain), [](const auto& name) { return plain_name(name); });
    std::ranges::transform(counted, std::back_inserter(counted_plain),
                           [](const auto& name) { return plain_name(name); });
    const std::unordered_set<std::string> of_trace(traced_plain.begin(), traced_plain.end());
    const std::unordered_set<std::string> of_ncu(counted_plain.begin(), counted_plain.end());
    const auto add = [&](const auto& names, const auto& plain, const auto& others, auto& keys, auto* loose) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const bool is_loose = !others.contains(plain[i]);
        // No plain name ends so.
        keys.push_back(number_of(is_loose ? function_name(names[i]) + " " : plain[i]));
        if (loose != nullptr) loose->push_back(is_loose);
      }
    };
    add(traced, traced_plain, of_ncu, traced_, &loose_);
    add(counted, counted_plain, of_trace, counted_, static_cast<std::vector<bool>*>(nullptr));
  }

  std::int32_t of_traced(std::uint32_t name) const { return traced_[name]; }
  std::int32_t of_counted(std::uint32_t name) const { return counted_[name]; }
  bool loose(std::uint32_t traced_name) const { return loose_[traced_name]; }

 private:
  std::int32_t number_of(const std::string& text) {
    return numbers_.try_emplace(text, static_cast<std::int32_t>(numbers_.size())).first->second;
  }

  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::int32_t> traced_;
  std::vector<std::int32_t> counted_;
  std::vector<bool> loose_;
};

using Launched = std::tuple<std::int32_t, std::array<std::int64_t, 3>, std::array<std::int64_t, 3>>;

std::array<std::int64_t, 3> sizes_by(Sizes known, const std::array<std::int32_t, 3>& sizes, std::int64_t whole) {
  if (known == Sizes::none) return {};
  if (known == Sizes::products) return {whole, 0, 0};
  return {sizes[0], sizes[1], sizes[2]};
}

class Joining {
 public:
  Joining(const Output& output, const DeviceTrace& trace, const std::string& device, std::int64_t steps)
      : output_(output),
        steps_(steps),
        trace_(trace),
        launches_(launches_of(trace, {})),
        kernels_(counted_kernels(launches_, device)),
        sizes_(sizes_in(output)),
        names_(trace.names, output.names) {
    for (const auto* kernel : kernels_) {
      const auto& record = *kernel->record;
      keys_.push_back(key_of({names_.of_traced(record.name), sizes_by(sizes_, record.grid, product(record.grid)),
                              sizes_by(sizes_, record.block, product(record.block))}));
    }
  }

  CounterTrace run(std::string_view compute_capability) && {
    choose();
    auto all = counters_of(output_, compute_capability);
    CounterTrace counters = all;
    counters.records.clear();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const auto counted = matching_.of_launch[i];
      counters.records.push_back({i, counted == kNobody ? CounterValues{} : all.records[at(counted)].values});
    }
    add_joined(counters.notes);
    add_missing(counters.notes);
    return counters;
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  std::int32_t key_of(const Launched& launched) {
    return numbers_.try_emplace(launched, static_cast<std::int32_t>(numbers_.size())).first->second;
  }

  // Chooses among several devices the trace's, among several processes the one that fits best.
  void choose() {
    std::set<std::int64_t> devices;
    for (const auto& kernel : output_.kernels) devices.insert(kernel.device);
    std::map<std::int64_t, std::vector<std::size_t>> of_process;
    for (std::size_t i = 0; i < output_.kernels.size(); ++i) {
      const auto& kernel = output_.kernels[i];
      const bool elsewhere = devices.size() > 1 && !kernels_.empty() &&
                             std::cmp_not_equal(kernel.device, kernels_.front()->record->device);
      if (!elsewhere) of_process[kernel.process].push_back(i);
    }
    processes_ = of_process.size();
    matching_.of_launch.assign(kernels_.size(), kNobody);
    for (const auto& [process, indices] : of_process) {
      Keys counted;
      for (const auto i : indices) {
        const auto& kernel = output_.kernels[i];
        counted.push_back(key_of({names_.of_counted(kernel.name), sizes_by(sizes_, kernel.grid, kernel.blocks),
                                  sizes_by(sizes_, kernel.block, kernel.block_threads)}));
      }
      auto matching = Matcher(keys_, counted, steps_).run();
      if (matching.matched < matching_.matched || (process_ && matching.matched == matching_.matched)) continue;
      for (auto& index : matching.of_launch) {
        if (index != kNobody) index = static_cast<std::int32_t>(indices[at(index)]);
      }
      matching_ = std::move(matching);
      process_ = process;
    }
  }

  void add_joined(std::vector<Note>& notes) const {
    if (matching_.matched == 0) return;
    const auto used = std::set<std::int32_t>(matching_.of_launch.begin(), matching_.of_launch.end());
    const auto of_ncu = std::ssize(used) - (used.contains(kNobody) ? 1 : 0);
    std::string text =
        counted(matching_.matched, "launch", "launches") + " of the trace " +
        (matching_.matched == 1 ? "has" : "have") + " the counters of " + std::to_string(of_ncu) + " of the " +
        counted(std::ssize(output_.kernels), "launch", "launches") + " that ncu counted: matched by name, " +
        (sizes_ == Sizes::all        ? "grid, block and order"
         : sizes_ == Sizes::products ? "blocks and threads, as their number alone is in the table, and order"
                                     : "and order, as grids are not in the table");
    if (processes_ > 1) text += "; of " + std::to_string(processes_) + " processes, that which fits best";
    if (matching_.again > 0) {
      text += "; " + std::to_string(matching_.again) +
              " of them, in further steps, have the counters of launches of the step that ncu counted";
    }
    std::set<std::string> loose;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const auto name = kernels_[i]->record->name;
      if (matching_.of_launch[i] != kNobody && names_.loose(name)) loose.insert(function_name(trace_.names[name]));
    }
    if (!loose.empty()) {
      std::vector<std::string> listed_names;
      for (const auto& name : loose) listed_names.push_back(shown(name));
      text += "; by the name of the function alone, as ncu writes its template arguments in another way: " +
              listed(listed_names, kNamed);
    }
    if (output_.rounded) text += "; values with prefixes are rounded, --print-units base gives all digits";
    add_note(notes, "ncu-matched", std::move(text));
  }

  void add_missing(std::vector<Note>& notes) const {
    std::map<std::string, std::int64_t> missing;  // time by name
    std::int64_t launches = 0;
    double missing_ns = 0;
    double all_ns = 0;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const auto ns = kernels_[i]->duration_ns();
      all_ns += static_cast<double>(ns);
      if (matching_.of_launch[i] != kNobody) continue;
      ++launches;
      missing_ns += static_cast<double>(ns);
      auto& sum = missing[trace_.names[kernels_[i]->record->name]];
      sum = saturating_add(sum, ns);
    }
    if (launches == 0) return;
    std::vector<std::pair<std::string, std::int64_t>> longest(missing.begin(), missing.end());
    std::ranges::stable_sort(longest, std::ranges::greater(), &std::pair<std::string, std::int64_t>::second);
    std::vector<std::string> names;
    for (const auto& [name, ns] : longest) names.push_back(shown(name));
    add_note(notes, "ncu-not-matched",
             "ncu counted no launch that is " + std::to_string(launches) + " of the trace's " +
                 counted(std::ssize(kernels_), "launch", "launches") + " of kernels" +
                 (all_ns > 0 ? ", " + percent(missing_ns / all_ns) + " of their time" : "") +
                 ": they have no counters: " + listed(names, kNamed));
  }

  const Output& output_;
  std::int64_t steps_;
  const DeviceTrace& trace_;
  Launches launches_;
  std::vector<const Launch*> kernels_;
  Sizes sizes_;
  NameKeys names_;
  std::map<Launched, std::int32_t> numbers_;
  Keys keys_;
  Matching matching_;
  std::optional<std::int64_t> process_;
  std::size_t processes_ = 0;
};

}  // namespace

CounterTrace counters_for(const Output& output, const DeviceTrace& trace, const std::string& device,
                          std::string_view compute_capability, std::int64_t steps) {
  return Joining(output, trace, device, steps).run(compute_capability);
}

}  // namespace roofprof::ncu
