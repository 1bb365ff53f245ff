#include "device/nvidia/driver.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "device/interface/collector.h"

namespace roofprof::cuda {
namespace {

std::string open_from(const std::string& path) {
  setenv("ROOFPROF_CUDA_LIB", path.c_str(), 1);
  std::string said = "a driver was found";
  try {
    open_driver();
  } catch (const CollectorError& error) {
    EXPECT_FALSE(error.advice().empty());
    said = error.what();
  }
  unsetenv("ROOFPROF_CUDA_LIB");
  return said;
}

TEST(OpenDriver, NamesALibraryThatIsNotThere) {
  const std::string said = open_from("/nowhere/libcuda.so.1");
  EXPECT_TRUE(said.starts_with("ROOFPROF_CUDA_LIB cannot be loaded (/nowhere/libcuda.so.1:")) << said;
}

TEST(OpenDriver, NamesWhatIsNoDriver) {
  // A library that is there on any Linux.
  EXPECT_EQ(
      open_from("libdl.so.2"),
      "the library of NVIDIA's driver lacks cuInit: it is too old or something else under its name; update the driver");
}

}  // namespace
}  // namespace roofprof::cuda
