// Simulated launches through the loader, CUPTI's callbacks and the tracer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

using testing::Test;

class Tracing : public Traced {};

TEST_F(Tracing, KernelsComeBackUnderTheIdsTheyWereLaunchedUnder) {
  Tracer traced = tracer();
  EXPECT_EQ(traced.marker(), nullptr);
  traced.start();
  LaunchMarker* marker = traced.marker();
  ASSERT_NE(marker, nullptr);
  {
    const Under module(marker, 7, LaunchLevel::module);
    fake_kernel("before_op", 0, 7, 100);
    {
      const Under op(marker, 8);
      fake_kernel("in_op", 0, 7, 200);
      const Under inner(marker, 9);
      fake_kernel("innermost", 0, 7, 300);
    }
    fake_kernel("after_op", 0, 7, 400);
  }
  fake_kernel("outside", 0, 7, 500);
  const DeviceTrace trace = traced.stop();

  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{
                               {"before_op", 7}, {"in_op", 8}, {"innermost", 9}, {"after_op", 7}, {"outside", 0}}));
  EXPECT_EQ(trace.dropped + trace.incomplete + trace.foreign, 0);
  EXPECT_TRUE(trace.notes.empty()) << all_notes(trace);
  EXPECT_EQ(traced.marker(), nullptr);
}

TEST_F(Tracing, LaunchesAloneHaveTimesAndNoIds) {
  Tracer traced = tracer();
  traced.start(Recorded::launches);
  EXPECT_EQ(traced.marker(), nullptr);
  EXPECT_EQ(fake_live("activity_kind"), 4) << "kernels, two kinds of copies, fills";
  const std::int64_t begin = fake_now();
  fake_kernel("first", 0, 7, 5000);
  fake_kernel("second", 0, 7, 300);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"first", 0}, {"second", 0}}));
  EXPECT_EQ(trace.records[1].start_ns - begin, 6000);
  EXPECT_TRUE(trace.notes.empty()) << all_notes(trace);
  expect_nothing_left();
  traced.start();
  EXPECT_NE(traced.marker(), nullptr) << "the next trace has ids again";
  traced.stop();
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

TEST_F(Tracing, IdsOfOthersAreNotOurs) {
  Tracer traced = tracer();
  traced.start();
  api().cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 55);
  api().cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 56);
  fake_kernel("theirs", 0, 7, 1);
  {
    const Under op(traced.marker(), 3);
    fake_kernel("ours", 0, 7, 1);
  }
  std::uint64_t last = 0;
  api().cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
  EXPECT_EQ(last, 55U) << "their stack is as they left it";
  api().cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, &last);
  EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"theirs", 0}, {"ours", 3}}));
}

TEST_F(Tracing, EachThreadHasItsOwnIds) {
  constexpr int kThreads = 8;
  constexpr int kLaunches = 200;
  fake_set("activity_room", 1000);  // many buffers, given back by whichever thread fills them
  Tracer traced = tracer();
  traced.start();
  LaunchMarker* marker = traced.marker();
  const Under main(marker, 99);
  std::vector<std::thread> threads;
  for (unsigned t = 1; t <= kThreads; ++t) {
    threads.emplace_back([=] {
      const std::string name = "of_thread_" + std::to_string(t);
      for (int i = 0; i < kLaunches; ++i) {
        const Under module(marker, t * 1000);
        const Under op(marker, t);
        fake_kernel(name.c_str(), 0, t, 10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), static_cast<std::size_t>(kThreads * kLaunches));
  for (const KernelRecord& record : trace.records) {
    EXPECT_EQ(record.launch, record.stream);
    EXPECT_EQ(trace.names.at(record.name), "of_thread_" + std::to_string(record.stream));
  }
  EXPECT_GT(fake_calls("cuptiActivityFlushAll"), 0);
}

TEST_F(Tracing, PopsOfNothingAndLeftOversDoNoHarm) {
  Tracer traced = tracer();
  traced.start();
  LaunchMarker* marker = traced.marker();
  marker->pop(LaunchLevel::op);
  marker->pop(LaunchLevel::module);
  fake_kernel("outside", 0, 7, 1);
  marker->push(5, LaunchLevel::op);  // never popped, on this thread and on another that lives on
  std::thread other([&] { marker->push(6, LaunchLevel::op); });
  other.join();
  EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"outside", 0}}));

  traced.start();
  fake_kernel("next_trace", 0, 7, 1);
  EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"next_trace", 0}}));
  std::uint64_t last = 0;
  EXPECT_EQ(api().cuptiActivityPopExternalCorrelationId(kOurIds, &last), CUPTI_ERROR_QUEUE_EMPTY);
}

// A thread that was inside of a scope when a trace ended, and is there no more in the next.
TEST_F(Tracing, AThreadsLeftOversEndAtItsNextId) {
  Tracer traced = tracer();
  traced.start();
  LaunchMarker* marker = traced.marker();
  std::thread worker;
  std::atomic<int> step = 0;
  worker = std::thread([&] {
    marker->push(5, LaunchLevel::module);
    marker->push(6, LaunchLevel::op);
    step = 1;
    while (step < 2) std::this_thread::yield();
    {
      const Under op(marker, 3);
      fake_kernel("inside", 0, 7, 1);
    }
    fake_kernel("outside", 0, 7, 1);
  });
  while (step < 1) std::this_thread::yield();
  traced.stop();
  traced.start();
  step = 2;
  worker.join();
  EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"inside", 3}, {"outside", 0}}));
}

TEST_F(Tracing, WhatNestsTooDeepBelongsToTheDeepestKept) {
  Tracer traced = tracer();
  traced.start();
  LaunchMarker* marker = traced.marker();
  for (LaunchId id = 1; id <= 300; ++id) marker->push(id, LaunchLevel::module);
  fake_kernel("deep", 0, 7, 1);
  for (int i = 0; i < 299; ++i) marker->pop(LaunchLevel::module);
  fake_kernel("shallow", 0, 7, 1);
  marker->pop(LaunchLevel::module);
  fake_kernel("outside", 0, 7, 1);
  EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"deep", 128}, {"shallow", 1}, {"outside", 0}}));
}

TEST_F(Tracing, CallsThatLaunchNothingAreSkippedWhereTheLibraryCan) {
  Tracer traced = tracer();
  traced.start();
  EXPECT_GT(fake_live("skipped_call"), 10);
  traced.stop();

  Api older = api();
  older.cuptiActivityEnableRuntimeApi = nullptr;
  older.cuptiActivityEnableDriverApi = nullptr;
  Tracer without(older, [] {});
  without.start();
  fake_kernel("k", 0, 7, 1);
  EXPECT_EQ(without.stop().records.size(), 1U);
}

}  // namespace
}  // namespace roofprof::cupti
