#include "analysis/permutation_test.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

#include "roofprof/error.h"

namespace roofprof {

namespace {

constexpr std::size_t kMostExact = 1'000;
constexpr std::size_t kRowsAtOnce = 256;  // whose logarithms stay in a cache

using Chosen = std::vector<std::size_t>;  // the runs that stand for the first report's

// Returns the number of ways to choose, or just some number above kMostExact if there are more than that.
std::size_t ways_to_choose(std::size_t chosen, std::size_t runs) {
  std::size_t ways = 1;
  for (std::size_t i = 1; i <= std::min(chosen, runs - chosen); ++i) {
    ways = ways * (runs - i + 1) / i;
    if (ways > kMostExact) break;  // it only grows
  }
  return ways;
}

// Makes the next choice in alphabetical order. Returns false after the last.
bool advance(Chosen& chosen, std::size_t runs) {
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (chosen[i] == runs - chosen.size() + i) continue;
    ++chosen[i];
    for (std::size_t j = i + 1; j < chosen.size(); ++j) chosen[j] = chosen[j - 1] + 1;
    return true;
  }
  return false;
}

// Returns arrangements, the observed one first.
std::vector<Chosen> arrangements_of(std::size_t first, std::size_t runs) {
  Chosen chosen(first);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  std::vector<Chosen> arrangements = {chosen};
  if (ways_to_choose(first, runs) <= kMostExact) {
    while (advance(chosen, runs)) arrangements.push_back(chosen);
    return arrangements;
  }
  std::mt19937_64 random(0);  // NOLINT(bugprone-random-generator-seed): equal reports give equal results
  std::vector<std::size_t> order(runs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  while (arrangements.size() < kMostExact) {
    for (std::size_t i = 0; i < first; ++i) std::swap(order[i], order[i + random() % (runs - i)]);
    arrangements.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return arrangements;
}

// Logarithms of the times of some rows, their squares and their sums. Run by run, so that a loop goes over rows.
class Rows {
 public:
  Rows(const RunsOfRows& before, const RunsOfRows& after, std::size_t begin, std::size_t end, std::int64_t step_ns)
      : count_(end - begin),
        first_(before[begin].size()),
        runs_(first_ + after[begin].size()),
        logs_(runs_ * count_),
        squares_(runs_ * count_),
        all_(count_),
        all_squares_(count_),
        least_(count_) {
    for (std::size_t row = 0; row < count_; ++row) {
      std::vector<std::int64_t> times = before[begin + row];
      times.insert(times.end(), after[begin + row].begin(), after[begin + row].end());
      for (auto& time : times) time = std::max<std::int64_t>(time, 1);
      add(row, std::move(times), step_ns);
    }
  }

  // Returns |t| of each row.
  std::vector<double> welch(const Chosen& chosen) const {
    std::vector<double> sums(count_), squares(count_), t(count_);
    for (const std::size_t run : chosen) {
      const double* logs = &logs_[run * count_];
      const double* squared = &squares_[run * count_];
      for (std::size_t row = 0; row < count_; ++row) {
        sums[row] += logs[row];
        squares[row] += squared[row];
      }
    }
    const auto first = static_cast<double>(first_), second = static_cast<double>(runs_ - first_);
    for (std::size_t row = 0; row < count_; ++row) {
      const double others = all_[row] - sums[row], mean = sums[row] / first, other_mean = others / second;
      const double variance = std::max((squares[row] - sums[row] * mean) / (first - 1), 0.0);
      const double other_variance =
          std::max((all_squares_[row] - squares[row] - others * other_mean) / (second - 1), 0.0);
      t[row] = std::abs(mean - other_mean) /
               std::sqrt((variance + least_[row]) / first + (other_variance + least_[row]) / second);
    }
    return t;
  }

 private:
  void add(std::size_t row, std::vector<std::int64_t> times, std::int64_t step_ns) {
    double mean = 0;
    for (const auto time : times) mean += std::log(static_cast<double>(time)) / static_cast<double>(runs_);
    for (std::size_t run = 0; run < runs_; ++run) {
      const double log = std::log(static_cast<double>(times[run])) - mean;
      logs_[run * count_ + row] = log;
      squares_[run * count_ + row] = log * log;
      all_[row] += log;
      all_squares_[row] += log * log;
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>((runs_ - 1) / 2);
    std::ranges::nth_element(times, middle);
    // The clock's step, and what floating point leaves of equal times, bound how well a variance is known.
    const double relative = static_cast<double>(step_ns) / static_cast<double>(*middle);
    least_[row] = relative * relative / 12 + 1e-18;
  }

  std::size_t count_, first_, runs_;
  std::vector<double> logs_, squares_;     // runs x rows
  std::vector<double> all_, all_squares_;  // sums over all runs
  std::vector<double> least_;              // variance
};

void check(const RunsOfRows& before, const RunsOfRows& after) {
  const auto as_many = [](const RunsOfRows& rows) {
    return std::ranges::all_of(rows, [&](const auto& runs) { return runs.size() == rows.front().size(); });
  };
  if (before.size() != after.size() || !as_many(before) || !as_many(after)) {
    throw InvalidArgument("each row needs as many runs as the others of its report");
  }
  if (before.front().size() < 2 || after.front().size() < 2) {
    throw InvalidArgument("each report needs two runs or more");
  }
}

}  // namespace

std::vector<double> adjusted_p_values(const RunsOfRows& before, const RunsOfRows& after, std::int64_t step_ns) {
  if (before.empty() && after.empty()) return {};
  check(before, after);
  const auto arrangements = arrangements_of(before.front().size(), before.front().size() + after.front().size());
  std::vector<double> largest(arrangements.size()), observed;
  for (std::size_t begin = 0; begin < before.size(); begin += kRowsAtOnce) {
    const Rows rows(before, after, begin, std::min(begin + kRowsAtOnce, before.size()), step_ns);
    for (std::size_t i = 0; i < arrangements.size(); ++i) {
      const auto t = rows.welch(arrangements[i]);
      if (i == 0) observed.insert(observed.end(), t.begin(), t.end());
      largest[i] = std::max(largest[i], *std::ranges::max_element(t));
    }
  }
  std::ranges::sort(largest);
  std::vector<double> shares;
  for (const double t : observed) {
    const auto as_large = largest.end() - std::ranges::lower_bound(largest, t * (1 - 1e-9));
    shares.push_back(static_cast<double>(as_large) / static_cast<double>(largest.size()));
  }
  return shares;
}

}  // namespace roofprof
