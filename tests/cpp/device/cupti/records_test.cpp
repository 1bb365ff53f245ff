// What CUPTI's records say, and how they are delivered: in which buffers, in which order, how long, what is lost.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ostream>
#include <thread>
#include <tuple>
#include <vector>

#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

using Records = Traced;
using Settings = std::map<const char*, long long>;

struct Delivery {
  Settings settings;
  TraceLimits limits;
};
void PrintTo(const Delivery& given, std::ostream* out) {
  for (const auto& [setting, value] : given.settings) *out << setting << '=' << value << ' ';
}

class Deliveries : public Traced, public testing::WithParamInterface<Delivery> {};

TEST_P(Deliveries, EveryKernelArrivesUnderItsId) {
  for (const auto& [setting, value] : GetParam().settings) fake_set(setting, value);
  Tracer traced = tracer(GetParam().limits);
  const DeviceTrace found = trace(traced, launch_hundred);
  const Places all = places(found);
  ASSERT_EQ(all.size(), 100U);
  for (LaunchId id = 1; id <= 100; ++id) EXPECT_EQ(all.at("k" + std::to_string(id)), id);
  EXPECT_EQ(all_notes(found), "");
  EXPECT_EQ(found.dropped + found.incomplete, 0);
}

// Kernels' records as CUPTI 12, 13.0, 13.1 and one that is not there yet write them.
INSTANTIATE_TEST_SUITE_P(OfAllKinds, Deliveries,
                         testing::Values(Delivery{}, Delivery{{}, {.buffer_bytes = 512}},
                                         Delivery{{{"kernel_record_bytes", 208}, {"activity_room", 1024}}, {}},
                                         Delivery{{{"kernel_record_bytes", 248}, {"activity_room", 256}}, {}},
                                         Delivery{{{"activity_thread", 1}, {"activity_room", 300}}, {}},
                                         Delivery{{{"kernel_record_bytes", 216},
                                                   {"activity_room", 256},
                                                   {"activity_reversed", 1},
                                                   {"activity_thread", 1},
                                                   {"activity_keeps", 1}},
                                                  {}}));

struct Loss {
  Settings settings;
  std::size_t room;  // for records
  std::size_t kept;
  std::int64_t dropped;
  std::int64_t foreign;
  const char* note;
};
void PrintTo(const Loss& given, std::ostream* out) { *out << given.note; }

class Losses : public Traced, public testing::WithParamInterface<Loss> {};

TEST_P(Losses, AreCountedAndSaid) {
  const Loss& expected = GetParam();
  for (const auto& [setting, value] : expected.settings) fake_set(setting, value);
  TraceLimits limits;
  if (expected.room > 0) limits.records = expected.room;
  kernel("makes_a_context");
  Tracer traced = tracer(limits);
  for (int time = 0; time < 2; ++time) {  // the next trace has the same room
    const DeviceTrace found = trace(traced, launch_hundred);
    EXPECT_EQ(found.records.size(), expected.kept);
    EXPECT_EQ(found.dropped, expected.dropped);
    EXPECT_EQ(found.foreign, expected.foreign);
    EXPECT_SAYS(expected.note, all_notes(found));
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfAllKinds, Losses,
    testing::Values(Loss{{{"activity_drop_every", 4}}, 0, 75, 25, 0, ""},
                    Loss{{{"activity_drop_every", 4}, {"activity_context", 1}}, 0, 75, 25, 0, ""},
                    Loss{{}, 60, 60, 40, 0, "kernels-missing: 40 kernels and copies are missing"},
                    // There is room for 40 calls; two waits are calls as well.
                    Loss{{}, 10, 10, 90, 0, "launches-misplaced: 62 calls of CUDA had no room"},
                    // Not from the heap, each with a kernel of now and one of long ago.
                    Loss{{{"foreign_buffers", 3}}, 0, 103, 0, 3, "buffers of another profiler's came"},
                    Loss{{{"activity_broken", 1}}, 0, 100, 0, 0, "1 buffers of records could not be read to the end"}));

// The count that CUPTI keeps may be of somebody before us; and a buffer that it kept of ours comes when nothing is
// traced.
TEST_F(Records, OfOthersBetweenTracesAreNotOurs) {
  Tracer traced = tracer();
  fake_set("activity_keeps", 1);
  trace(traced, [](LaunchMarker*) { kernel(); });
  EXPECT_EQ(ActivityInbox::instance().buffers_out(), 1U);
  for (const int lost : {1, 0}) {
    fake_set("activity_drop_every", lost);
    api().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    kernel("of_somebody_else");
    api().cuptiActivityFlushAll(1);
    api().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  const DeviceTrace found = trace(traced, [](LaunchMarker*) {});
  EXPECT_TRUE(found.records.empty());
  EXPECT_EQ(found.dropped, 0);
}

TEST_F(Records, WithoutAStartAreCountedAndLeftOut) {
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker*) {
    fake_launch(FakeLaunch{.name = "unfinished", .incomplete = 1});
    kernel("finished");
  });
  EXPECT_EQ(found.incomplete, 1);
  EXPECT_EQ(places(found), (Places{{"finished", 0}}));
}

// A worker of CUPTI's reads on while the flush has returned.
TEST_F(Records, ThatAreStillReadAreWaitedFor) {
  static std::thread worker;
  static std::atomic<bool> reading;
  Api late = api();
  late.cuptiActivityGetNextRecord = [](std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record) {
    if (!reading.exchange(true)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return api().cuptiActivityGetNextRecord(buffer, bytes, record);
  };
  late.cuptiActivityFlushAll = [](std::uint32_t flag) {
    if (worker.joinable()) return worker.join(), CUPTI_SUCCESS;
    worker = std::thread([flag] { api().cuptiActivityFlushAll(flag); });
    while (!reading) std::this_thread::yield();
    return CUPTI_SUCCESS;
  };
  Tracer traced = tracer({}, late);
  EXPECT_EQ(trace(traced, launch_hundred).records.size(), 100U);
}

TEST_F(Records, ForgetWhatCameBefore) {
  Tracer traced = tracer();
  traced.start(Recorded::launches);
  kernel("warm-up", 5000);
  traced.forget();
  const std::int64_t begin = fake_now();
  kernel("timed", 300);
  const DeviceTrace found = traced.stop();
  EXPECT_EQ(places(found), (Places{{"timed", 0}}));
  EXPECT_EQ(found.start_ns, begin);
  EXPECT_EQ(found.names.size(), 1U);
}

// A launch takes the host 1,000 ns; work starts when its stream is free.
TEST_F(Records, HaveTimesNamesAndShapes) {
  const std::vector<std::pair<const char*, const char*>> names = {
      {"_Z4axpyIfEvPT_S1_i", "void axpy<float>(float*, float*, int)"},
      {"_ZN12_GLOBAL__N_14fillEPf", "(anonymous namespace)::fill(float*)"},
      {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
      {"i", "i"},  // would be "int"
      {"_Zbroken", "_Zbroken"}};
  Tracer traced = tracer();
  std::int64_t begin = 0;
  const DeviceTrace found = trace(traced, [&](LaunchMarker*) {
    begin = fake_now();
    for (const auto& [mangled, name] : names) {
      fake_launch(
          FakeLaunch{.name = mangled, .stream = 7, .duration_ns = 5000, .grid = {1024, 2, 3}, .block = {128, 4, 5}});
    }
    fake_launch(FakeLaunch{.name = names[0].first, .stream = 9, .duration_ns = 300});
  });
  ASSERT_EQ(found.records.size(), 6U);
  for (std::size_t i = 0; i < 5; ++i) {
    const KernelRecord& record = found.records[i];
    EXPECT_EQ(found.names.at(record.name), names[i].second);
    EXPECT_EQ(std::pair(record.start_ns - begin, record.end_ns - begin),
              std::pair(1000L + 5000L * static_cast<long>(i), 6000L + 5000L * static_cast<long>(i)));
    EXPECT_EQ(record.grid, (std::array{1024, 2, 3}));
    EXPECT_EQ(record.block, (std::array{128, 4, 5}));
    EXPECT_EQ(record.stream, 7U);
  }
  EXPECT_EQ(found.names.size(), 5U) << "each is kept once";
  EXPECT_EQ(found.records[5].start_ns - begin, 6000) << "beside the others";
  EXPECT_EQ(found.start_ns, begin);
  EXPECT_EQ(found.end_ns - begin, 26000) << "the trace ends when the devices were waited for";
}

TEST_F(Records, OfCopiesAndFillsSayWhichMemoryAndHowMuch) {
  fake_set("devices", 2);
  // The kind and the memories by CUPTI's numbers, and what they are.
  const std::vector<std::tuple<int, int, int, Memory, Memory, const char*>> copies = {
      {1, 1, 3, Memory::pageable, Memory::device, "[CUDA memcpy Host-to-Device]"},
      {2, 3, 2, Memory::device, Memory::pinned, "[CUDA memcpy Device-to-Host]"},
      {8, 6, 4, Memory::device, Memory::device, "[CUDA memcpy Device-to-Device]"},
      {1, 0, 0, Memory::unknown, Memory::device, "[CUDA memcpy Host-to-Device]"},  // by the kind
      {2, 7, 0, Memory::managed, Memory::unknown, "[CUDA memcpy Device-to-Host]"},
      {10, 3, 3, Memory::device, Memory::device, "[CUDA memcpy Peer-to-Peer]"}};
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [&](LaunchMarker* marker) {
    const Under op(marker, 3);
    for (const auto& [kind, from, to, source, target, name] : copies) {
      fake_launch(FakeLaunch{.kind = FAKE_COPY,
                             .device = kind == 10 ? 1U : 0U,
                             .bytes = 4096,
                             .copy_kind = kind,
                             .from_memory = from,
                             .to_memory = to});
    }
    fake_launch(FakeLaunch{.kind = FAKE_FILL, .bytes = 1 << 20, .to_memory = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE});
  });
  ASSERT_EQ(found.records.size(), 7U);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto& [kind, from, to, source, target, name] = copies[i];
    EXPECT_EQ(found.records[i].from, source) << i;
    EXPECT_EQ(found.records[i].to, target) << i;
    EXPECT_EQ(found.names.at(found.records[i].name), name);
    EXPECT_EQ(found.records[i].kind, KernelKind::copy);
    EXPECT_EQ(found.records[i].bytes, 4096);
    EXPECT_EQ(found.records[i].to_device, 0U);
    EXPECT_EQ(found.records[i].device, i == 5 ? 1U : 0U);
    EXPECT_EQ(found.records[i].launch, 3U);
  }
  EXPECT_EQ(found.records[6].kind, KernelKind::fill);
  EXPECT_EQ(found.records[6].bytes, 1 << 20);
  EXPECT_EQ(found.records[6].to, Memory::device);
  EXPECT_EQ(found.records[6].launch, 3U);
}

}  // namespace
}  // namespace roofprof::cupti
