#pragma once
// The Universal Scalability Law, fitted to throughputs; roofprof/report/scaling/law.py says what it is and where it is
// from.

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace roofprof {

struct ScalingLaw {
  // Rank-seconds for a unit of work: the factors of 1, N - 1 and N (N - 1). 0 or more.
  using Costs = std::array<double, 3>;

  Costs costs{};
  bool from_residuals = false;            // where the uncertainty comes from; else from the errors
  std::vector<std::vector<Costs>> draws;  // for each form of the law that the points leave open; empty: nothing tells

  // Where throughput with so many ranks lies in that share of the draws, over all forms. Empty without draws.
  std::optional<std::pair<double, double>> interval(double ranks, double share) const;
};

// Least squares of relative deviations; two points give Amdahl's law. errors: the relative standard error of each
// throughput by itself, empty where it is not known. The uncertainty is that of the residuals where there are more
// points than factors, and never less than the errors; it is drawn 2,000 times, the same each time. Where the points
// leave open that a factor is 0, as two always do, these forms have draws too: those around a positive factor would
// miss the end of its range. Throws std::invalid_argument where the lists are not equally long, or empty.
ScalingLaw fit_scaling_law(const std::vector<double>& ranks, const std::vector<double>& throughputs,
                           const std::vector<std::optional<double>>& errors);

}  // namespace roofprof
