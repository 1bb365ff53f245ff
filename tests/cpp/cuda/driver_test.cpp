#include "device/cuda/driver.h"

#include <gtest/gtest.h>

#include "device/collector.h"

namespace roofprof::cuda {
namespace {

TEST(Driver, ALibraryThatIsNotThereIsNamed) {
  setenv("ROOFPROF_CUDA_LIB", "/nowhere/libcuda.so.1", 1);
  try {
    open_driver();
    FAIL() << "a driver was found";
  } catch (const CollectorError& error) {
    EXPECT_NE(error.found().find("/nowhere/libcuda.so.1"), std::string::npos) << error.found();
    EXPECT_NE(error.found().find("ROOFPROF_CUDA_LIB"), std::string::npos) << error.found();
  }
  unsetenv("ROOFPROF_CUDA_LIB");
}

}  // namespace
}  // namespace roofprof::cuda
