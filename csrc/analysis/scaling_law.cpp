#include "analysis/scaling_law.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

namespace roofprof {

namespace {

using Costs = ScalingLaw::Costs;
using Column = std::vector<double>;  // a value for each point
using Columns = std::vector<std::size_t>;

constexpr std::size_t kDraws = 2'000;
constexpr double kRuledOut = 0.01;  // a form that so few draws have is none that the points leave open
constexpr double kMostNoise = 3.0;  // of a logarithm

using Forms = std::vector<Columns>;
Forms all_forms() { return {{0}, {0, 1}, {0, 2}, {0, 1, 2}}; }
Forms linear() { return {{0}}; }
Forms amdahl() { return {{0}, {0, 1}}; }
Forms coherency_alone() { return {{0}, {0, 2}}; }

Costs terms_of(double ranks) { return {1, ranks - 1, ranks * (ranks - 1)}; }

double dot(const Costs& left, const Costs& right) {
  return left[0] * right[0] + left[1] * right[1] + left[2] * right[2];
}

double dot(const Column& left, const Column& right) {
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

// Turns both columns into ones at right angles; true where they were not.
bool rotate(Column& a, Column& b, Column& along_a, Column& along_b) {
  const double both = dot(a, b), difference = dot(b, b) - dot(a, a);
  if (std::abs(both) <= std::numeric_limits<double>::epsilon() * std::sqrt(dot(a, a) * dot(b, b))) return false;
  const double slope = difference / (2 * both);
  const double tangent = std::copysign(1.0, slope) / (std::abs(slope) + std::sqrt(1 + slope * slope));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (auto [first, second] : {std::pair(&a, &b), std::pair(&along_a, &along_b)}) {
    for (std::size_t i = 0; i < first->size(); ++i) {
      const double x = (*first)[i], y = (*second)[i];
      (*first)[i] = cosine * x - sine * y;
      (*second)[i] = sine * x + cosine * y;
    }
  }
  return true;
}

// The pseudo-inverse of a few columns: a line for each of them. By singular values (one-sided Jacobi), those that
// rounding made left out.
std::vector<Column> pseudo_inverse(std::vector<Column> columns) {
  const std::size_t count = columns.size(), points = columns.front().size();
  std::vector<Column> along(count, Column(count));
  for (std::size_t i = 0; i < count; ++i) along[i][i] = 1;
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = i + 1; j < count; ++j) turned |= rotate(columns[i], columns[j], along[i], along[j]);
    }
  }
  double largest = 0;
  for (const auto& column : columns) largest = std::max(largest, std::sqrt(dot(column, column)));
  const double least = static_cast<double>(std::max(count, points)) * std::numeric_limits<double>::epsilon() * largest;
  std::vector<Column> inverse(count, Column(points));
  for (std::size_t s = 0; s < count; ++s) {
    const double squared = dot(columns[s], columns[s]);
    if (std::sqrt(squared) <= least) continue;
    for (std::size_t line = 0; line < count; ++line) {
      for (std::size_t i = 0; i < points; ++i) inverse[line][i] += along[s][line] * columns[s][i] / squared;
    }
  }
  return inverse;
}

// Least squares with some of the factors, of what each point costs relative to a scale.
class Form {
 public:
  Form(Columns columns, const std::vector<Costs>& terms, const Column& scale) : columns_(std::move(columns)) {
    for (const std::size_t column : columns_) {
      Column weighted;
      for (std::size_t i = 0; i < terms.size(); ++i) weighted.push_back(terms[i][column] / scale[i]);
      norms_.push_back(std::sqrt(dot(weighted, weighted)));
      weighted_.push_back(std::move(weighted));
    }
    if (!is_defined()) return;
    auto unit = weighted_;
    for (std::size_t i = 0; i < unit.size(); ++i) {
      for (double& value : unit[i]) value /= norms_[i];
    }
    inverse_ = pseudo_inverse(std::move(unit));
  }

  bool is_defined() const {
    return std::ranges::all_of(norms_, [](double norm) { return norm > 0; });
  }

  // Takes the factors into `best` where they are possible and fit better than `least`, the squares that it leaves.
  void improve(const Column& wanted, Costs& best, double& least) const {
    Costs found{};
    for (std::size_t i = 0; i < columns_.size(); ++i) found[columns_[i]] = dot(inverse_[i], wanted) / norms_[i];
    if (found[0] <= 0 || !std::ranges::all_of(found, [](double factor) { return factor >= 0; })) return;
    double left = 0;
    for (std::size_t point = 0; point < wanted.size(); ++point) {
      double deviation = -wanted[point];
      for (std::size_t i = 0; i < columns_.size(); ++i) deviation += found[columns_[i]] * weighted_[i][point];
      left += deviation * deviation;
    }
    if (left >= least) return;
    least = left;
    best = found;
  }

 private:
  Columns columns_;
  std::vector<Column> weighted_, inverse_;
  Column norms_;
};

// The best of some forms whose factors are 0 or more.
class Fitter {
 public:
  Fitter(const std::vector<Columns>& forms, const std::vector<Costs>& terms, const Column& scale) : scale_(scale) {
    for (const auto& columns : forms) {
      Form form(columns, terms, scale);
      if (form.is_defined()) forms_.push_back(std::move(form));
    }
  }

  Costs fit(const Column& costs) const {
    Column wanted(costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) wanted[i] = costs[i] / scale_[i];
    Costs best{};
    double least = std::numeric_limits<double>::infinity();
    for (const auto& form : forms_) form.improve(wanted, best, least);
    return best;
  }

 private:
  Column scale_;
  std::vector<Form> forms_;
};

// The same numbers each time, on every machine, and nobody else's.
class Normal {
 public:
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }  // in [0, 1)
  std::mt19937_64 random_{0};  // NOLINT(bugprone-random-generator-seed): equal reports give equal results
};

// Factors that each point's costs may as well have had. residuals: squares of them, of so many that were free.
std::vector<Column> drawn_factors(const std::vector<std::optional<double>>& errors, std::optional<double> residuals,
                                  std::size_t free) {
  Normal normal;
  std::vector<Column> draws;
  while (draws.size() < kDraws) {
    double deviation = 0;
    if (residuals) {
      double chi_squared = 0;
      for (std::size_t i = 0; i < free; ++i) {
        const double value = normal();
        chi_squared += value * value;
      }
      deviation = std::sqrt(*residuals / chi_squared);
    }
    Column factors;
    for (const auto& error : errors) {
      const double noise = normal() * std::max(deviation, error.value_or(0.0));
      factors.push_back(std::exp(std::clamp(noise, -kMostNoise, kMostNoise)));  // costs stay above 0
    }
    draws.push_back(std::move(factors));
  }
  return draws;
}

// Between the values on both sides of it, of sorted ones.
double quantile(const Column& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  const double share_above = place - static_cast<double>(below);
  return low == high || share_above == 0 ? low : low + (high - low) * share_above;  // they may be infinite
}

}  // namespace

std::optional<std::pair<double, double>> ScalingLaw::interval(double ranks, double share) const {
  std::optional<std::pair<double, double>> found;
  const Costs terms = terms_of(ranks);
  for (const auto& form : draws) {
    Column rates;
    for (const auto& drawn : form) rates.push_back(ranks / dot(drawn, terms));
    std::ranges::sort(rates);
    const double low = quantile(rates, (1 - share) / 2), high = quantile(rates, (1 + share) / 2);
    found = found ? std::pair(std::min(found->first, low), std::max(found->second, high)) : std::pair(low, high);
  }
  return found;
}

ScalingLaw fit_scaling_law(const std::vector<double>& ranks, const std::vector<double>& throughputs,
                           const std::vector<std::optional<double>>& errors) {
  const std::size_t points = ranks.size();
  if (points == 0 || throughputs.size() != points || errors.size() != points) {
    throw std::invalid_argument("each number of ranks needs a throughput and an error");
  }
  std::vector<Costs> terms;
  Column costs;
  for (std::size_t i = 0; i < points; ++i) {
    terms.push_back(terms_of(ranks[i]));
    costs.push_back(ranks[i] / throughputs[i]);
  }
  const auto fitter = [&](const std::vector<Columns>& forms) { return Fitter(forms, terms, costs); };
  const auto forms = points > 2 ? all_forms() : amdahl();

  ScalingLaw law;
  law.costs = fitter(forms).fit(costs);
  const auto used = static_cast<std::size_t>(std::ranges::count_if(law.costs, [](double cost) { return cost > 0; }));
  law.from_residuals = points > 3 && points > used;
  const bool errors_known = std::ranges::all_of(errors, [](const auto& error) { return error.has_value(); });
  if (!law.from_residuals && !errors_known && points != 2) return law;

  std::optional<double> residuals;
  if (law.from_residuals) {
    residuals = 0;
    for (std::size_t i = 0; i < points; ++i) {
      const double deviation = 1 - dot(terms[i], law.costs) / costs[i];
      *residuals += deviation * deviation;
    }
  }
  const auto factors = drawn_factors(errors, residuals, points - used);
  const auto drawn = [&](const std::vector<Columns>& of_forms) {
    const Fitter fit = fitter(of_forms);
    const Costs fitted = fit.fit(costs);
    std::vector<Costs> draws;
    for (const auto& factor : factors) {
      Column moved;
      for (std::size_t i = 0; i < points; ++i) moved.push_back(dot(terms[i], fitted) * factor[i]);
      draws.push_back(fit.fit(moved));
    }
    return draws;
  };

  if (points == 2) {
    law.draws = {drawn(amdahl()), drawn(coherency_alone())};
    return law;
  }
  law.draws = {drawn(all_forms())};
  const auto left_open = [&](std::size_t factor) {
    const auto without = std::ranges::count_if(law.draws.front(), [&](const auto& draw) { return draw[factor] <= 0; });
    return static_cast<double>(without) > kRuledOut * static_cast<double>(kDraws);
  };
  const bool no_contention = left_open(1), no_coherency = left_open(2);
  if (no_contention) law.draws.push_back(drawn(coherency_alone()));
  if (no_coherency) law.draws.push_back(drawn(amdahl()));
  if (no_contention && no_coherency) law.draws.push_back(drawn(linear()));
  return law;
}

}  // namespace roofprof
