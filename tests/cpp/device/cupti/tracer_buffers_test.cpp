// How CUPTI delivers: in which buffers, in which order, how long its records are, what is lost.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <ostream>

#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

class Buffers : public Traced {
 protected:
  // A hundred kernels, each under an id that its name tells.
  static void launch_hundred(LaunchMarker* marker) {
    for (LaunchId id = 1; id <= 100; ++id) {
      const Under op(marker, id);
      fake_kernel(("k" + std::to_string(id)).c_str(), 0, 7, 10);
    }
  }

  static void expect_hundred(const DeviceTrace& trace) {
    const auto found = places(trace);
    ASSERT_EQ(found.size(), 100U);
    for (LaunchId id = 1; id <= 100; ++id) EXPECT_EQ(found.at("k" + std::to_string(id)), id);
  }
};

// By the fake's settings. 208 bytes: a kernel's record of CUPTI 12 (Kernel9), 216: of 13.0, 224: of 13.1 and newer,
// 248: one that is not there yet.
struct Delivery {
  const char* how;
  std::map<const char*, long long> settings;
  TraceLimits limits;
};
void PrintTo(const Delivery& given, std::ostream* out) { *out << given.how; }

class Deliveries : public Buffers, public testing::WithParamInterface<Delivery> {};

TEST_P(Deliveries, EveryKernelArrivesUnderItsId) {
  for (const auto& [setting, value] : GetParam().settings) fake_set(setting, value);
  Tracer traced = tracer(GetParam().limits);
  traced.start();
  launch_hundred(traced.marker());
  const DeviceTrace trace = traced.stop();
  expect_hundred(trace);
  EXPECT_TRUE(trace.notes.empty()) << all_notes(trace);
  EXPECT_EQ(trace.dropped + trace.incomplete, 0);
}

INSTANTIATE_TEST_SUITE_P(
    OfAllKinds, Deliveries,
    testing::Values(Delivery{"one buffer", {}, {}}, Delivery{"small ones of our own", {}, {.buffer_bytes = 512}},
                    Delivery{"of CUPTI 12", {{"kernel_record_bytes", 208}, {"activity_room", 1024}}, {}},
                    Delivery{"of CUPTI 13.0", {{"kernel_record_bytes", 216}, {"activity_room", 300}}, {}},
                    Delivery{"of a later CUPTI", {{"kernel_record_bytes", 248}, {"activity_room", 256}}, {}},
                    Delivery{"the last record first", {{"activity_reversed", 1}}, {}},
                    Delivery{
                        "the last one first, in small buffers", {{"activity_reversed", 1}, {"activity_room", 300}}, {}},
                    Delivery{"on CUPTI's thread", {{"activity_thread", 1}, {"activity_room", 300}}, {}},
                    Delivery{"on a thread that still reads as the flush returns", {{"activity_thread", 2}}, {}},
                    Delivery{"a buffer is kept", {{"activity_keeps", 1}, {"activity_room", 1024}}, {}},
                    Delivery{"all of it",
                             {{"kernel_record_bytes", 216},
                              {"activity_room", 256},
                              {"activity_reversed", 1},
                              {"activity_thread", 1},
                              {"activity_keeps", 1}},
                             {}}));

TEST_F(Buffers, OlderCopyRecordsAreRead) {
  fake_set("copy_record_bytes", 80);
  Tracer traced = tracer();
  traced.start();
  FakeLaunch copy{};
  copy.kind = FAKE_COPY;
  copy.copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  copy.bytes = 123;
  fake_launch(&copy);
  copy.bytes = 456;
  fake_launch(&copy);
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), 2U);
  EXPECT_EQ(trace.records[0].bytes, 123);
  EXPECT_EQ(trace.records[1].bytes, 456);
}

TEST_F(Buffers, RecordsWithoutAStartAreCountedAndLeftOut) {
  Tracer traced = tracer();
  traced.start();
  FakeLaunch unfinished{};
  unfinished.name = "unfinished";
  unfinished.incomplete = 1;
  fake_launch(&unfinished);
  fake_kernel("finished", 0, 7, 10);
  fake_launch(&unfinished);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(trace.incomplete, 2);
  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"finished", 0}}));
}

TEST_F(Buffers, DroppedRecordsAreCounted) {
  for (const int of_a_context : {0, 1}) {
    fake_set("activity_context", of_a_context);
    Tracer traced = tracer();
    fake_set("activity_drop_every", 4);
    traced.start();
    launch_hundred(traced.marker());
    const DeviceTrace trace = traced.stop();
    EXPECT_EQ(trace.dropped, 25);
    EXPECT_EQ(trace.records.size(), 75U);
  }
}

// The count that CUPTI keeps may be of somebody before us.
TEST_F(Buffers, WhatOthersLostBeforeIsNotOurs) {
  fake_set("activity_drop_every", 1);
  api().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  fake_kernel("lost_before", 0, 7, 10);
  api().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  fake_set("activity_drop_every", 0);
  Tracer traced = tracer();
  traced.start();
  fake_kernel("k", 0, 7, 10);
  EXPECT_EQ(traced.stop().dropped, 0);
}

TEST_F(Buffers, BeyondTheLimitRecordsCountAsDropped) {
  Tracer traced = tracer({.records = 60});
  traced.start();
  launch_hundred(traced.marker());
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(trace.records.size(), 60U);
  EXPECT_EQ(trace.dropped, 40);
  EXPECT_NE(all_notes(trace).find("40 kernels and copies are missing"), std::string::npos) << all_notes(trace);

  traced.start();
  launch_hundred(traced.marker());
  EXPECT_EQ(traced.stop().dropped, 40) << "the next trace has the same room";
}

TEST_F(Buffers, SoDoIdsOfCalls) {
  Tracer traced = tracer({.records = 10});
  traced.start();
  launch_hundred(traced.marker());  // and room for 40; the wait at the end has none either
  EXPECT_SAYS("61 calls of CUDA had no room", all_notes(traced.stop()));
}

TEST_F(Buffers, BuffersOfOthersAreReadAndNeverFreed) {
  fake_set("foreign_buffers", 3);  // which are not from the heap, each with a kernel of now and one of long ago
  Tracer traced = tracer();
  traced.start();
  fake_kernel("ours", 0, 7, 10);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(trace.foreign, 3);
  std::map<std::string, int> kernels;
  for (const KernelRecord& record : trace.records) ++kernels[trace.names.at(record.name)];
  EXPECT_EQ(kernels, (std::map<std::string, int>{{"ours", 1}, {"of_another_client", 3}}));
  EXPECT_NE(all_notes(trace).find("another profiler's"), std::string::npos);
}

TEST_F(Buffers, ABrokenRecordIsSaid) {
  fake_set("activity_broken", 1);
  Tracer traced = tracer();
  traced.start();
  launch_hundred(traced.marker());
  const DeviceTrace trace = traced.stop();
  expect_hundred(trace);
  EXPECT_NE(all_notes(trace).find("1 buffers of records could not be read to the end"), std::string::npos);
}

// Another client registers its own callbacks in the middle: CUPTI has one pair, and ours gets nothing any more.
TEST_F(Buffers, AnotherClientMayTakeTheRecords) {
  static std::vector<std::uint8_t> memory(1 << 16);
  static std::size_t received;
  received = 0;
  Tracer traced = tracer();
  traced.start();
  api().cuptiActivityRegisterCallbacks(
      [](std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
        *buffer = memory.data();
        *size = memory.size();
        *most = 0;
      },
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t valid) { received += valid; });
  fake_kernel("taken", 0, 7, 10);
  EXPECT_TRUE(traced.stop().records.empty());
  EXPECT_GT(received, 0U);

  traced.start();
  fake_kernel("ours", 0, 7, 10);
  EXPECT_EQ(traced.stop().records.size(), 1U) << "the next trace has them again";
}

// CUPTI may keep a buffer of ours, and give it back when nothing is traced.
TEST_F(Buffers, WhatComesWhileNothingIsTracedIsThrownAway) {
  fake_set("activity_keeps", 1);
  Tracer traced = tracer();
  traced.start();
  fake_kernel("ours", 0, 7, 10);
  EXPECT_EQ(traced.stop().records.size(), 1U);
  EXPECT_EQ(ActivityInbox::instance().buffers_out(), 1U);

  api().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  fake_kernel("of_somebody_else", 0, 7, 10);
  api().cuptiActivityFlushAll(1);
  api().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);

  traced.start();
  EXPECT_TRUE(traced.stop().records.empty());
}

std::size_t resident_pages() {
  std::size_t total = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

TEST_F(Buffers, AThousandTracesLeaveNothing) {
  const auto once = [](Tracer& traced) {
    traced.start();
    for (LaunchId id = 1; id <= 20; ++id) {
      const Under op(traced.marker(), id);
      fake_kernel("k", 0, 7, 10);
    }
    ASSERT_EQ(traced.stop().records.size(), 20U);
  };
  Tracer traced = tracer();
  for (int i = 0; i < 100; ++i) once(traced);
  [[maybe_unused]] const std::size_t before = resident_pages();
  for (int i = 0; i < 1000; ++i) once(traced);
  // Sanitizers keep what was freed for a while, and find what was not by themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_pages(), before + 256) << "a megabyte more";  // a trace's buffer alone is one
#endif
  EXPECT_EQ(ActivityInbox::instance().buffers_out(), 0U);
  expect_nothing_left();
}

}  // namespace
}  // namespace roofprof::cupti
