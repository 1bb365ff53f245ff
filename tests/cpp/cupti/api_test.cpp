#include "device/cupti/api.h"

#include <gtest/gtest.h>

#include "device/cuda/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {
namespace {

using Loading = WithFakes;

TEST_F(Loading, TheLibraryIsFoundBehindTheGate) {
  const Api found = open_api();
  EXPECT_EQ(found.version, 130202U);
  EXPECT_EQ(found.how, "ROOFPROF_CUPTI_LIB");
  EXPECT_EQ(found.path, fake_library("all", "libcupti.so.13"));
}

}  // namespace
}  // namespace roofprof::cupti
