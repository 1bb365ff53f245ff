#pragma once
// Settings of torch's that decide what a matrix product on a GPU computes with, set for a measurement and put back.

#include <ATen/Context.h>

namespace roofprof {

// Decides for as long as this lives whether fp32 products on a GPU may use tf32. Afterwards all that torch keeps of it
// is as it was: the old flags, the new precisions, and whether a precision was set or is inherited.
class Fp32Products {
 public:
  explicit Fp32Products(bool allow_tf32);
  ~Fp32Products();
  Fp32Products(const Fp32Products&) = delete;
  Fp32Products& operator=(const Fp32Products&) = delete;

 private:
  at::Float32Precision cuda_;
  at::Float32Precision mkldnn_;
  at::Float32MatmulPrecision legacy_ = at::Float32MatmulPrecision::HIGHEST;
};

// Lets torch use algorithms whose results vary, which it otherwise refuses for some products.
class AnyAlgorithm {
 public:
  AnyAlgorithm();
  ~AnyAlgorithm();
  AnyAlgorithm(const AnyAlgorithm&) = delete;
  AnyAlgorithm& operator=(const AnyAlgorithm&) = delete;

 private:
  bool deterministic_;
  bool warn_only_;
};

}  // namespace roofprof
