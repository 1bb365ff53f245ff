// The driver as simulated by tests/fakes, which are built where there are CUPTI's headers.
#ifdef ROOFPROF_FAKES

#include <dlfcn.h>

#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"
#include "support/forked.h"

namespace roofprof::cuda {
namespace {

class FakeDriver : public WithFakes {
 protected:
  static std::string opening() {
    return message_of<CollectorError>([] { open_driver(); });
  }
};

TEST_F(FakeDriver, TellsItsVersionAndDevices) {
  fake_set("devices", 2);
  fake_set_text("device_name", "NVIDIA H100 80GB HBM3");
  const Driver driver = open_driver();
  EXPECT_EQ(driver.version, 13020);
  EXPECT_EQ(driver.devices, 2);
  EXPECT_EQ(driver.path, fake_library("all", "libcuda.so.1"));

  const auto all = devices(driver);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].index, 1);
  EXPECT_EQ(all[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(all[1].pci_bus_id, "0000:02:00.0");
  EXPECT_EQ(all[1].compute_major, 9);
  EXPECT_EQ(all[1].compute_minor, 0);
  EXPECT_EQ(all[1].memory_bytes, 80LL << 30);
  EXPECT_EQ(all[1].sm_count, 132);
  EXPECT_EQ(all[1].clock_hz, 1'980'000'000);
  EXPECT_EQ(all[1].l2_bytes, 50LL << 20);
  EXPECT_EQ(all[1].memory_clock_hz, 2'619'000'000);
}

TEST_F(FakeDriver, WhatADeviceDoesNotTellIsEmpty) {
  fake_set("memory_clock_khz", 0);  // as integrated ones answer
  fake_fail("cuDeviceGetPCIBusId", 1, 0);
  const auto device = devices(open_driver()).front();
  EXPECT_FALSE(device.memory_clock_hz.has_value());
  EXPECT_EQ(device.pci_bus_id, "");
}

TEST_F(FakeDriver, TheStubIsNoDriver) {
  fake_fail("cuInit", 34, 0);
  EXPECT_SAYS(fake_library("all", "libcuda.so.1") + " is the CUDA toolkit's stub, not a driver: ", opening());
  EXPECT_EQ(fake_calls("cuDeviceGetCount"), 0);
}

TEST_F(FakeDriver, NoDeviceIsSaid) {
  fake_set("devices", 0);
  EXPECT_SAYS("NVIDIA's driver works but shows no device: ", opening());
  fake_fail("cuInit", 100, 0);  // so it answers where CUDA_VISIBLE_DEVICES is empty
  EXPECT_SAYS("NVIDIA's driver works but shows no device: ", opening());
  EXPECT_SAYS("CUDA_VISIBLE_DEVICES", opening());
}

TEST_F(FakeDriver, ADriverThatDoesNotStartIsNamedByItsError) {
  fake_fail("cuInit", 803, 0);
  EXPECT_SAYS("NVIDIA's driver does not start: cuInit says CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): ", opening());
  fake_fail("cuInit", 4711, 0);
  EXPECT_SAYS("cuInit says error (4711)", opening());
}

TEST_F(FakeDriver, AMissingFunctionIsNamed) {
  use("ROOFPROF_CUDA_LIB", fake_library("lacking", "libcuda.so.1"));
  EXPECT_SAYS("the library of NVIDIA's driver lacks cuCtxSynchronize: ", opening());
  EXPECT_EQ(fake_calls("cuInit"), 0);
}

TEST_F(FakeDriver, IsFoundByItsNameWhereNoneIsAskedFor) {
  ASSERT_NE(dlopen(fake_library("all", "libcuda.so.1").c_str(), RTLD_NOW), nullptr);
  unsetenv("ROOFPROF_CUDA_LIB");
  EXPECT_EQ(open_driver().devices, 1);
}

// In a process of its own, as this one would keep it for the tests that follow.
TEST_F(FakeDriver, TheProcessKeepsTheOneThatWorked) {
  EXPECT_EQ(testing::in_child([&] {
              fake_fail("cuInit", 34, 0);
              bool refused = false;
              try {
                driver();
              } catch (const CollectorError&) {
                refused = true;
              }
              fake_fail("cuInit", 0, 0);
              const Driver& first = driver();
              use("ROOFPROF_CUDA_LIB", "/nowhere/libcuda.so.1");
              return refused && &driver() == &first;
            }),
            "");
}

class Synchronizing : public FakeDriver {
 protected:
  void TearDown() override {
    EXPECT_EQ(fake_live("primary_context"), 0);
    FakeDriver::TearDown();
  }
};

TEST_F(Synchronizing, WaitsForActiveDevicesOnly) {
  fake_set("devices", 3);
  const Driver driver = open_driver();
  synchronize_all(driver);
  EXPECT_EQ(fake_calls("cuCtxSynchronize"), 0);

  fake_kernel("a", 0, 7, 5'000'000);
  fake_kernel("b", 2, 7, 9'000'000);
  EXPECT_EQ(active_devices(driver), (std::vector<int>{0, 2}));
  const long long launched = fake_now();
  synchronize_all(driver);
  EXPECT_EQ(fake_calls("cuCtxSynchronize"), 2);
  EXPECT_EQ(fake_now() - launched, 9'000'000);
  EXPECT_EQ(current_context(driver), nullptr);
}

TEST_F(Synchronizing, ALostDeviceIsNamedAndTheOthersAreWaitedFor) {
  fake_set("devices", 2);
  fake_set_text("device_name", "NVIDIA H100");
  const Driver driver = open_driver();
  fake_kernel("a", 0, 0, 1000);
  fake_kernel("b", 1, 0, 1000);
  fake_fail("cuCtxSynchronize", 700, 1);
  EXPECT_SAYS("waiting for cuda:1 (NVIDIA H100) failed: the driver says CUDA_ERROR_ILLEGAL_ADDRESS (700): ",
              message_of<CollectorError>([&] { synchronize_all(driver); }));
  fake_fail("cuCtxSynchronize", 700, 0);
  const std::string both = message_of<CollectorError>([&] { synchronize_all(driver); });
  EXPECT_SAYS("cuda:0", both);
  EXPECT_SAYS("cuda:1", both);
}

TEST_F(Synchronizing, AContextThatIsNotGivenIsNamed) {
  const Driver driver = open_driver();
  fake_kernel("a", 0, 0, 1000);
  fake_fail("cuDevicePrimaryCtxRetain", 46, 0);
  EXPECT_SAYS("cuda:0 (Simulated GPU) failed: the driver says CUDA_ERROR_DEVICE_UNAVAILABLE (46)",
              message_of<CollectorError>([&] { synchronize_all(driver); }));
  fake_fail("cuDevicePrimaryCtxRetain", 0, 0);
  fake_fail("cuCtxPushCurrent", 700, 0);
  EXPECT_THROW(synchronize_all(driver), CollectorError);
  EXPECT_EQ(fake_live("primary_context"), 0);
}

TEST_F(Synchronizing, ThePrimaryContextIsCurrentWhileItIsHeld) {
  fake_set("devices", 2);
  const Driver driver = open_driver();
  {
    const PrimaryContext outer(driver, 0);
    {
      const PrimaryContext inner(driver, 1);
      EXPECT_EQ(current_context(driver), inner.get());
      EXPECT_NE(inner.get(), outer.get());
    }
    EXPECT_EQ(current_context(driver), outer.get());
    EXPECT_EQ(fake_live("primary_context"), 1);
  }
  EXPECT_EQ(current_context(driver), nullptr);
  EXPECT_THROW(PrimaryContext(driver, 2), CollectorError);
}

}  // namespace
}  // namespace roofprof::cuda

#endif
