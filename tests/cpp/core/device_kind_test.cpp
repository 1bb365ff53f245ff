#include "core/device_kind.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

TEST(DeviceKind, IsThatOfTorchsName) {
  EXPECT_EQ(device_kind("cpu"), DeviceKind::cpu);
  EXPECT_EQ(device_kind("cpu:0"), DeviceKind::cpu);
  EXPECT_EQ(device_kind("meta"), DeviceKind::meta);
  EXPECT_EQ(device_kind("cuda"), DeviceKind::nvidia);
  EXPECT_EQ(device_kind("cuda:11"), DeviceKind::nvidia);
  for (const auto* name : {"", "cudart", "mps", "xpu:0", "privateuseone"}) {
    EXPECT_EQ(device_kind(name), DeviceKind::other) << name;
  }
}

TEST(DeviceKind, HasACollectorWhereAVendorsLibrariesRecordWhatRuns) {
  EXPECT_TRUE(has_collector(DeviceKind::nvidia));
  for (const auto kind : {DeviceKind::cpu, DeviceKind::meta, DeviceKind::other}) EXPECT_FALSE(has_collector(kind));
}

}  // namespace
}  // namespace roofprof
