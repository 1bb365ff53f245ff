#pragma once
// The interval of a sum of predicted times.

#include <cmath>

namespace roofprof {

// Sums how far predicted times may be off to one side.
class Deviation {
 public:
  void add(double seconds) {
    sum_ += seconds;
    squares_ += seconds * seconds;
  }
  Deviation& operator+=(const Deviation& other) {
    sum_ += other.sum_;
    squares_ += other.squares_;
    return *this;
  }
  // `common` is the share of the squared error that all have in common: 1: all err the same way, so that deviations add
  // up; 0: each errs for itself, so that their squares do.
  double of_sum(double common) const { return std::sqrt(common * sum_ * sum_ + (1 - common) * squares_); }

 private:
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace roofprof
