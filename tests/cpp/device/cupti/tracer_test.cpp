// Simulated launches through the loader, CUPTI's callbacks and the tracer.
#include <gtest/gtest.h>

#include <cstdlib>
#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

using testing::Test;

class Tracing : public Traced {};

TEST_F(Tracing, ForgetsWhatCameBefore) {
  Tracer traced = tracer();
  traced.start(Recorded::launches);
  fake_kernel("warm-up", 0, 7, 5000);
  traced.forget();
  const std::int64_t begin = fake_now();
  fake_kernel("timed", 0, 7, 300);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"timed", 0}}));
  EXPECT_EQ(trace.start_ns, begin);
  EXPECT_EQ(trace.names.size(), 1U);
  EXPECT_TRUE(trace.notes.empty()) << all_notes(trace);
}

// A launch takes the host 1,000 ns; work starts when its stream is free.
TEST_F(Tracing, TimesAreThoseOfTheDevice) {
  Tracer traced = tracer();
  traced.start();
  const std::int64_t begin = fake_now();
  fake_kernel("first", 0, 7, 5000);
  fake_kernel("second", 0, 7, 300);
  fake_kernel("beside", 0, 9, 300);
  const DeviceTrace trace = traced.stop();

  ASSERT_EQ(trace.records.size(), 3U);
  EXPECT_EQ(trace.start_ns, begin);
  const auto time = [&](std::size_t i) {
    return std::pair(trace.records[i].start_ns - begin, trace.records[i].end_ns - begin);
  };
  EXPECT_EQ(time(0), std::pair(1000L, 6000L));
  EXPECT_EQ(time(1), std::pair(6000L, 6300L));
  EXPECT_EQ(time(2), std::pair(3000L, 3300L));
  EXPECT_EQ(trace.end_ns - begin, 6300) << "the trace ends when the devices were waited for";
  EXPECT_EQ(trace.records[0].stream, 7U);
  EXPECT_EQ(trace.records[2].stream, 9U);
  EXPECT_LT(trace.records[0].correlation, trace.records[1].correlation);
}

TEST_F(Tracing, NamesAreDemangledAndKeptOnce) {
  Tracer traced = tracer();
  traced.start();
  fake_kernel("_Z4axpyIfEvPT_S1_i", 0, 7, 1);
  fake_kernel("_Z4axpyIfEvPT_S1_i", 0, 7, 1);
  fake_kernel("_ZN12_GLOBAL__N_14fillEPf", 0, 7, 1);
  fake_kernel("triton_poi_fused_add_0", 0, 7, 1);
  fake_kernel("i", 0, 7, 1);  // would be "int"
  fake_kernel("_Zbroken", 0, 7, 1);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(trace.names,
            (std::vector<std::string>{"void axpy<float>(float*, float*, int)", "(anonymous namespace)::fill(float*)",
                                      "triton_poi_fused_add_0", "i", "_Zbroken"}));
  ASSERT_EQ(trace.records.size(), 6U);
  EXPECT_EQ(trace.records[0].name, trace.records[1].name);
}

TEST_F(Tracing, LaunchShapeIsThere) {
  Tracer traced = tracer();
  traced.start();
  FakeLaunch launch{};
  launch.name = "k";
  launch.device = 0;
  launch.grid[0] = 1024;
  launch.grid[1] = 2;
  launch.grid[2] = 3;
  launch.block[0] = 128;
  launch.block[1] = 4;
  launch.block[2] = 5;
  fake_launch(&launch);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(only(trace).grid, (std::array{1024, 2, 3}));
  EXPECT_EQ(only(trace).block, (std::array{128, 4, 5}));
  EXPECT_EQ(only(trace).kind, KernelKind::kernel);
}

FakeLaunch copy_launch(CUpti_ActivityMemcpyKind kind, CUpti_ActivityMemoryKind from, CUpti_ActivityMemoryKind to) {
  FakeLaunch launch{};
  launch.kind = FAKE_COPY;
  launch.copy_kind = kind;
  launch.from_memory = from;
  launch.to_memory = to;
  launch.bytes = 4096;
  launch.duration_ns = 10;
  return launch;
}

TEST_F(Tracing, CopiesSayWhichMemoryAndHowMuch) {
  Tracer traced = tracer();
  traced.start();
  for (const FakeLaunch& launch : {
           copy_launch(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
                       CUPTI_ACTIVITY_MEMORY_KIND_DEVICE),
           copy_launch(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                       CUPTI_ACTIVITY_MEMORY_KIND_PINNED),
           copy_launch(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC,
                       CUPTI_ACTIVITY_MEMORY_KIND_ARRAY),
           copy_launch(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN,
                       CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN),
           copy_launch(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC,
                       CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN),
       }) {
    fake_launch(&launch);
  }
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), 5U);
  const auto ends = [&](std::size_t i) { return std::pair(trace.records[i].from, trace.records[i].to); };
  EXPECT_EQ(ends(0), std::pair(Memory::pageable, Memory::device));
  EXPECT_EQ(ends(1), std::pair(Memory::device, Memory::pinned));
  EXPECT_EQ(ends(2), std::pair(Memory::device, Memory::device));
  EXPECT_EQ(ends(3), std::pair(Memory::unknown, Memory::device)) << "the kind says what the record does not";
  EXPECT_EQ(ends(4), std::pair(Memory::managed, Memory::unknown));
  for (const KernelRecord& record : trace.records) {
    EXPECT_EQ(record.kind, KernelKind::copy);
    EXPECT_EQ(record.bytes, 4096);
    EXPECT_EQ(record.to_device, record.device);
  }
  EXPECT_EQ(trace.names.at(trace.records[0].name), "[CUDA memcpy Host-to-Device]");
  EXPECT_EQ(trace.names.at(trace.records[1].name), "[CUDA memcpy Device-to-Host]");
}

TEST_F(Tracing, CopiesBetweenDevicesAndFills) {
  fake_set("devices", 2);
  Tracer traced = tracer();
  traced.start();
  FakeLaunch peer = copy_launch(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  peer.device = 1;
  peer.to_device = 0;
  FakeLaunch fill{};
  fill.kind = FAKE_FILL;
  fill.bytes = 1 << 20;
  fill.to_memory = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  {
    const Under op(traced.marker(), 3);
    fake_launch(&peer);
    fake_launch(&fill);
  }
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), 2U);
  EXPECT_EQ(trace.records[0].device, 1U);
  EXPECT_EQ(trace.records[0].to_device, 0U);
  EXPECT_EQ(trace.names.at(trace.records[0].name), "[CUDA memcpy Peer-to-Peer]");
  EXPECT_EQ(trace.records[1].kind, KernelKind::fill);
  EXPECT_EQ(trace.records[1].bytes, 1 << 20);
  EXPECT_EQ(trace.records[1].to, Memory::device);
  EXPECT_EQ(trace.records[0].launch, 3U);
  EXPECT_EQ(trace.records[1].launch, 3U);
}

}  // namespace
}  // namespace roofprof::cupti
