#include "machine/gpu/peaks.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace roofprof {
namespace {

using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

constexpr std::array kPlaces = {
    std::pair{Float32Backend::GENERIC, Float32Op::ALL}, std::pair{Float32Backend::CUDA, Float32Op::ALL},
    std::pair{Float32Backend::CUDA, Float32Op::MATMUL}, std::pair{Float32Backend::CUDA, Float32Op::CONV},
    std::pair{Float32Backend::MKLDNN, Float32Op::ALL},  std::pair{Float32Backend::MKLDNN, Float32Op::MATMUL},
    std::pair{Float32Backend::MKLDNN, Float32Op::CONV},
};

std::vector<Float32Precision> in_force() {
  std::vector<Float32Precision> found;
  for (const auto& [backend, op] : kPlaces) found.push_back(at::globalContext().float32Precision(backend, op));
  return found;
}

// What holds now, and what comes to hold when the settings that others inherit from change: the same for all that was
// set in the same way.
std::vector<Float32Precision> behaviour() {
  auto& context = at::globalContext();
  std::vector<Float32Precision> found = in_force();
  const auto generic = context.float32Precision(Float32Backend::GENERIC, Float32Op::ALL);
  for (const auto changed : {Float32Precision::IEEE, Float32Precision::TF32, Float32Precision::NONE}) {
    context.setFloat32Precision(Float32Backend::GENERIC, Float32Op::ALL, changed);
    for (const auto precision : in_force()) found.push_back(precision);
  }
  context.setFloat32Precision(Float32Backend::GENERIC, Float32Op::ALL, generic);
  return found;
}

class Fp32ProductsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    auto& context = at::globalContext();
    context.setFloat32Precision(Float32Backend::GENERIC, Float32Op::ALL, Float32Precision::NONE);
    context.setFloat32Precision(Float32Backend::CUDA, Float32Op::ALL, Float32Precision::NONE);
    context.setFloat32MatmulPrecision("highest");
  }

  static void expect_put_back() {
    const auto before = behaviour();
    for (const bool allow : {true, false}) {
      {
        const Fp32Products products(allow);
        EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), allow);
        EXPECT_EQ(at::globalContext().float32Precision(Float32Backend::CUDA, Float32Op::MATMUL),
                  allow ? Float32Precision::TF32 : Float32Precision::IEEE);
      }
      EXPECT_EQ(behaviour(), before) << "tf32 " << allow;
    }
  }
};

TEST_F(Fp32ProductsTest, PutsBackTheOldFlags) {
  for (const std::string precision : {"highest", "high", "medium"}) {
    at::globalContext().setFloat32MatmulPrecision(precision);
    const auto legacy = at::globalContext().float32MatmulPrecision();
    expect_put_back();
    EXPECT_EQ(at::globalContext().float32MatmulPrecision(), legacy) << precision;
  }
  at::globalContext().setAllowTF32CuBLAS(true);
  expect_put_back();
  EXPECT_TRUE(at::globalContext().allowTF32CuBLAS());
}

TEST_F(Fp32ProductsTest, PutsBackWhatIsInheritedAsInherited) {
  auto& context = at::globalContext();
  for (const auto precision : {Float32Precision::IEEE, Float32Precision::TF32}) {
    context.setFloat32Precision(Float32Backend::GENERIC, Float32Op::ALL, precision);
    expect_put_back();
    // Set to the same as it would inherit: it must not become an inheritor.
    context.setFloat32Precision(Float32Backend::CUDA, Float32Op::MATMUL, precision);
    expect_put_back();
    context.setFloat32Precision(Float32Backend::CUDA, Float32Op::MATMUL, Float32Precision::NONE);
    context.setFloat32Precision(Float32Backend::CUDA, Float32Op::ALL, precision);
    expect_put_back();
    context.setFloat32Precision(Float32Backend::CUDA, Float32Op::ALL, Float32Precision::NONE);
  }
}

}  // namespace
}  // namespace roofprof
