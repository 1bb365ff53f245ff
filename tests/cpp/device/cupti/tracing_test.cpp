// A trace of the simulated device: what its records say and how they are delivered, whose launches are, other clients
// of CUPTI, what goes wrong, and that every trace leaves nothing behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "device/cupti/launch_calls.h"
#include "device/cupti/tracer.h"
#include "device/interface/collector.h"
#include "device/nvidia/driver.h"
#include "device/replay/replay.h"
#include "support/fake_libraries.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace roofprof::cupti {
namespace {

using Places = std::map<std::string, LaunchId>;

// Ids are pushed for as long as this lives, as the observer does around an op.
class Under {
 public:
  Under(LaunchMarker* marker, LaunchId id, LaunchLevel level = LaunchLevel::op) : marker_(marker), level_(level) {
    marker_->push(id, level_);
  }
  ~Under() { marker_->pop(level_); }
  Under(const Under&) = delete;
  Under& operator=(const Under&) = delete;

 private:
  LaunchMarker* marker_;
  LaunchLevel level_;
};

// Has CUPTI's only subscription, as torch's profiler up to torch 2.14 after its first use.
class OtherSubscriber {
 public:
  OtherSubscriber() { EXPECT_EQ(api().cuptiSubscribe(&subscriber_, nullptr, nullptr), CUPTI_SUCCESS); }
  ~OtherSubscriber() { api().cuptiUnsubscribe(subscriber_); }
  OtherSubscriber(const OtherSubscriber&) = delete;
  OtherSubscriber& operator=(const OtherSubscriber&) = delete;

 private:
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

void kernel(const std::string& name = "k", long long duration_ns = 10, unsigned correlation = 0) {
  fake_launch(FakeLaunch{.name = name.c_str(), .stream = 7, .duration_ns = duration_ns, .correlation = correlation});
}

// A hundred kernels, each under an id that its name tells.
void launch_hundred(LaunchMarker* marker) {
  for (LaunchId id = 1; id <= 100; ++id) {
    const Under op(marker, id);
    kernel("k" + std::to_string(id));
  }
}

void one_in_an_op(LaunchMarker* marker) {
  const Under op(marker, 3);
  kernel();
}

// The launch id of each kernel, by its name; for traces in which every name is there once.
Places places(const DeviceTrace& trace) {
  Places found;
  for (const KernelRecord& record : trace.records) {
    EXPECT_TRUE(found.emplace(trace.names.at(record.name), record.launch).second) << "a name is there twice";
  }
  return found;
}

class Traced : public WithFakes {
 protected:
  void TearDown() override {
    expect_nothing_left();
    WithFakes::TearDown();
  }
  static void expect_nothing_left() {
    for (const char* what : {"subscriber", "activity_kind", "activity_buffer"}) EXPECT_EQ(fake_live(what), 0) << what;
  }
  static void synchronize() { cuda::synchronize_all(cuda::driver()); }
  static Tracer tracer(TraceLimits limits = {}, const Api& of = api()) { return {of, synchronize, limits}; }
  static DeviceTrace trace(Tracer& traced, const std::function<void(LaunchMarker*)>& body) {
    traced.start();
    body(traced.marker());
    return traced.stop();
  }
  // All is as before, and a trace can be made.
  static void expect_usable(Tracer& traced) {
    EXPECT_EQ(places(trace(traced, [](LaunchMarker*) { kernel("afterwards"); })), (Places{{"afterwards", 0}}));
    expect_nothing_left();
  }
};

// ---- records

using Records = Traced;

// Kernels' records as CUPTI 12, 13.0, 13.1 and one that is not there yet write them, in many buffers or few.
TEST_F(Records, OfEveryKernelArriveUnderItsId) {
  for (const auto& [record_bytes, room, buffer] :
       {std::tuple(224, 0, 0), {224, 0, 512}, {208, 1024, 0}, {216, 256, 0}, {248, 256, 0}}) {
    fake_set("kernel_record_bytes", record_bytes);
    fake_set("activity_room", room);
    TraceLimits limits;
    if (buffer != 0) limits.buffer_bytes = static_cast<std::size_t>(buffer);
    Tracer traced = tracer(limits);
    const DeviceTrace found = trace(traced, launch_hundred);
    const Places all = places(found);
    ASSERT_EQ(all.size(), 100U);
    for (LaunchId id = 1; id <= 100; ++id) EXPECT_EQ(all.at("k" + std::to_string(id)), id);
    EXPECT_EQ(all_notes(found), "");
    EXPECT_EQ(found.dropped + found.incomplete, 0);
  }
}

TEST_F(Records, ThatAreLostAreCountedAndReported) {
  for (const auto& [drop_every, room, kept, note] :
       {std::tuple(4, 0U, 75U, ""),
        {0, 60U, 60U, "kernels-missing: 40 kernels and copies are missing"},
        // There is room for 40 calls; two waits are calls as well.
        {0, 10U, 10U, "launches-misplaced: 62 calls of CUDA had no room"}}) {
    fake_set("activity_drop_every", drop_every);
    TraceLimits limits;
    if (room > 0) limits.records = room;
    kernel("makes_a_context");
    Tracer traced = tracer(limits);
    for (int time = 0; time < 2; ++time) {  // the next trace has the same room
      const DeviceTrace found = trace(traced, launch_hundred);
      EXPECT_EQ(found.records.size(), kept);
      EXPECT_EQ(found.dropped, 100 - kept);
      EXPECT_SAYS(note, all_notes(found));
    }
  }
  fake_reset();
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
      {1, 0, 0, Memory::unknown, Memory::device, "[CUDA memcpy Host-to-Device]"},  // by the kind
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
  ASSERT_EQ(found.records.size(), 5U);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto& [kind, from, to, source, target, name] = copies[i];
    const KernelRecord& record = found.records[i];
    EXPECT_EQ(std::tuple(record.from, record.to, found.names.at(record.name)), std::tuple(source, target, name)) << i;
    EXPECT_EQ(std::tuple(record.kind, record.bytes, record.launch), std::tuple(KernelKind::copy, 4096, 3U));
    EXPECT_EQ(std::pair(record.device, record.to_device), std::pair(i == 3 ? 1U : 0U, 0U));
  }
  const KernelRecord& fill = found.records.back();
  EXPECT_EQ(std::tuple(fill.kind, fill.bytes, fill.launch), std::tuple(KernelKind::fill, 1 << 20, 3U));
}

// ---- whose launches are. The parameter: CUPTI tells of launches; else they are found by the ids that it records.

class Owners : public Traced, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Traced::SetUp();
    if (!GetParam()) other_.emplace();
    kernel("makes_a_context");
    synchronize();
  }
  void TearDown() override {
    other_.reset();
    Traced::TearDown();
  }
  static Places places_of(const std::function<void(LaunchMarker*)>& body) {
    Tracer traced = tracer();
    return places(trace(traced, body));
  }

 private:
  std::optional<OtherSubscriber> other_;
};

INSTANTIATE_TEST_SUITE_P(Reported, Owners, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(ByIds, Owners, testing::Values(false));

TEST_P(Owners, KernelsComeBackUnderTheIdsTheyWereLaunchedUnder) {
  Tracer traced = tracer();
  EXPECT_EQ(traced.marker(), nullptr);
  const DeviceTrace found = trace(traced, [](LaunchMarker* marker) {
    {
      const Under module(marker, 7, LaunchLevel::module);
      kernel("before_op");
      {
        const Under op(marker, 8);
        kernel("in_op");
        const Under inner(marker, 9);
        kernel("innermost");
      }
      kernel("after_op");
    }
    kernel("outside");
  });
  EXPECT_EQ(places(found), (Places{{"before_op", 7}, {"in_op", 8}, {"innermost", 9}, {"after_op", 7}, {"outside", 0}}));
  EXPECT_EQ(found.notes.size(), GetParam() ? 0U : 1U) << all_notes(found);
  EXPECT_EQ(traced.marker(), nullptr);
}

// CUSTOM0 is torch's profiler's.
TEST_P(Owners, IdsOfOthersAreNotOurs) {
  EXPECT_EQ(places_of([](LaunchMarker* marker) {
              api().cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 55);
              kernel("theirs");
              {
                const Under op(marker, 3);
                kernel("ours");
              }
              std::uint64_t last = 0;
              api().cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
              EXPECT_EQ(last, 55U) << "their stack is as they left it";
            }),
            (Places{{"theirs", 0}, {"ours", 3}}));
}

TEST_P(Owners, EachThreadHasItsOwnIds) {
  constexpr unsigned kThreads = 8;
  constexpr unsigned kLaunches = 200;
  fake_set("activity_room", 1000);  // many buffers, given back by whichever thread fills them
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker* marker) {
    const Under main(marker, 99);
    std::vector<std::thread> threads;
    for (unsigned t = 1; t <= kThreads; ++t) {
      threads.emplace_back([=] {
        for (unsigned i = 0; i < kLaunches; ++i) {
          const Under module(marker, t * 1000);
          const Under op(marker, t);
          fake_kernel("k", 0, t, 10);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  ASSERT_EQ(found.records.size(), std::size_t{kThreads * kLaunches});
  for (const KernelRecord& record : found.records) EXPECT_EQ(record.launch, record.stream);
}

TEST_P(Owners, PopsOfNothingAndLeftOversDoNoHarm) {
  EXPECT_EQ(places_of([](LaunchMarker* marker) {
              marker->pop(LaunchLevel::op);
              marker->pop(LaunchLevel::module);
              kernel("outside");
              marker->push(5, LaunchLevel::op);  // never popped
            }),
            (Places{{"outside", 0}}));
  EXPECT_EQ(places_of([](LaunchMarker*) { kernel("next_trace"); }), (Places{{"next_trace", 0}}));
}

// Three kernels, which the runtime and in it the driver launch, among a hundred frames and waits.
TEST_P(Owners, OnlyLaunchesCost) {
  Tracer traced = tracer();
  traced.start();
  const auto of_cupti = fake_calls("cupti*");
  const auto before = fake_calls("callback");
  for (unsigned i = 0; i < 100; ++i) {
    const Under module(traced.marker(), 7, LaunchLevel::module);
    const Under op(traced.marker(), 8 + i);
    synchronize();
    if (i < 3) fake_call(i + 1000);
  }
  EXPECT_EQ(fake_calls("callback") - before, GetParam() ? 3 * 2 * 2 : 0) << "as each of both calls begins and ends";
  EXPECT_EQ(fake_calls("cupti*") - of_cupti, GetParam() ? 0 : 100 * 2 * 2) << "two pushes and two pops";
  for (unsigned i = 0; i < 3; ++i) kernel("k", 10, i + 1000);
  const DeviceTrace found = traced.stop();
  ASSERT_EQ(found.records.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found.records[i].launch, 8 + i);
}

TEST_P(Owners, LaunchesAloneNeedNoCallback) {
  Tracer traced = tracer();
  const auto before = fake_calls("callback");
  traced.start(Recorded::launches);
  EXPECT_EQ(traced.marker(), nullptr);
  EXPECT_EQ(fake_live("subscriber"), GetParam() ? 0 : 1) << "torch's profiler may have it";
  EXPECT_EQ(fake_live("activity_kind"), 4) << "kernels, two kinds of copies, fills";
  kernel();
  EXPECT_EQ(traced.stop().records.size(), 1U);
  EXPECT_EQ(fake_calls("callback"), before);
}

TEST_P(Owners, WhereCallsAreNotKnownAllAreRecordedFromThenOn) {
  fake_set("kernel_call", CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);  // by whose name it launches nothing
  Tracer traced = tracer();
  const DeviceTrace first = trace(traced, one_in_an_op);
  EXPECT_EQ(places(first), (Places{{"k", kNoLaunch}}));
  EXPECT_SAYS("CUPTI did not tell of the calls that launched 1 kernels and copies", all_notes(first));
  const DeviceTrace second = trace(traced, one_in_an_op);
  EXPECT_EQ(places(second), (Places{{"k", 3}}));
  Api older = api();  // names no calls
  older.cuptiGetCallbackName = nullptr;
  older.cuptiActivityEnableRuntimeApi = nullptr;
  older.cuptiActivityEnableDriverApi = nullptr;
  Tracer by_older = tracer({}, older);
  EXPECT_EQ(places(trace(by_older, one_in_an_op)), (Places{{"k", 3}}));
}

// Some that launched in recorded traces of CUDA, their newer forms, and some that did not.
TEST(LaunchCalls, AreKnownByTheirNames) {
  for (const char* launches : {"__cudaLaunchKernel_ptsz_v13000", "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020",
                               "cudaGraphLaunch_v10000", "cuLaunchKernelEx", "cuMemcpyBatchAsync_v2_ptsz"}) {
    EXPECT_TRUE(may_launch(launches)) << launches;
  }
  for (const char* other : {"cudaGetDevice_v3020", "cudaEventRecord_v3020", "cuCtxSynchronize", "cuMemSetAccess"}) {
    EXPECT_FALSE(may_launch(other)) << other;
  }
}

// ---- CUDA graphs: one launch, many kernels, told apart by their nodes; those that run are clones, 1000 higher here

void launch_graph(LaunchMarker* marker, LaunchId launcher, std::initializer_list<unsigned long long> nodes) {
  const Under op(marker, launcher);
  unsigned correlation = 0;
  for (const auto node : nodes) {
    const std::string name = "node" + std::to_string(node);
    correlation = fake_launch(FakeLaunch{.name = name.c_str(), .graph_node = node, .correlation = correlation});
  }
}

using Graphs = Traced;

TEST_F(Graphs, NodesBelongToTheModuleThatCapturedThem) {
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker* marker) {
    {
      const Under first(marker, 11);
      fake_graph_node(1, 0);
    }
    std::thread([&] {
      const Under second(marker, 12);
      fake_graph_node(2, 0);
    }).join();
    fake_graph_node(3, 0);  // outside of every module
    {
      const Under instantiating(marker, 13);
      for (unsigned long long node = 1; node <= 4; ++node) fake_graph_node(node + 1000, node);
    }
    launch_graph(marker, 20, {1001, 1002, 1003, 1004});  // the last was captured when nobody looked
    launch_graph(marker, 21, {1009});
  });
  EXPECT_EQ(places(found),
            (Places{{"node1001", 11}, {"node1002", 12}, {"node1003", 20}, {"node1004", 20}, {"node1009", 21}}));
  EXPECT_EQ(found.records[1].graph_node, 1002U);
  EXPECT_EQ(all_notes(found),
            "graph-launches: launches of CUDA graphs: 2, which ran 5 kernels and copies; 2 belong to the module that "
            "captured them; 3 belong to the module that launched the graph, as they were captured before the trace or "
            "outside of every module\n");
  EXPECT_EQ(places(trace(traced, [](LaunchMarker* marker) { launch_graph(marker, 20, {1001}); })),
            (Places{{"node1001", 20}}))
      << "11 stands for something else in this trace";
}

// As an H200's driver does: tests/data/gpu/h200.
TEST_F(Graphs, AFillThatTheDriverRunsAsAKernelIsAFill) {
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker*) {
    fake_launch(FakeLaunch{.name = "memset32", .graph_node = 3});
    kernel("memset32");  // a program's own
  });
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(found.records[0].kind, KernelKind::fill);
  EXPECT_EQ(found.records[1].kind, KernelKind::kernel);
}

// ---- beside torch's profiler: before, after and while it is at work

std::uint64_t CUPTIAPI ticks() {
#ifdef __x86_64__
  return __rdtsc();
#else
  return 0;
#endif
}

// What torch's profiler does with CUPTI, call by call. Each start puts the processor's counter in the place of CUPTI's
// clock, which cannot be undone, and its own callbacks for buffers in the place of others'; each stop switches the
// kinds of records off that others may have switched on.
void use_torchs_profiler() {
  static std::array<std::uint8_t, 4096> memory;
  api().cuptiActivityRegisterTimestampCallback(&ticks);
  api().cuptiActivityRegisterCallbacks(
      [](std::uint8_t** buffer, std::size_t* size, std::size_t*) {
        *buffer = memory.data();
        *size = memory.size();
      },
      [](CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
        if (buffer != memory.data()) std::free(buffer);  // ours, for the leak sanitizer: the real one forgets it
      });
  api().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  kernel("of_torchs_trace");
  api().cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  api().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

class BesideTorch : public Traced {
 protected:
  void SetUp() override {
    Traced::SetUp();
#ifndef __x86_64__
    GTEST_SKIP() << "torch's profiler leaves CUPTI's clock alone on this processor";
#endif
  }
  // A kernel of 5,000 ns is found again, in its place and with this time. Returns the notes.
  static std::string expect_true_times(Tracer& traced) {
    std::int64_t begin = 0;
    const DeviceTrace found = trace(traced, [&](LaunchMarker* marker) {
      begin = fake_now();
      const Under op(marker, 8);
      kernel("first", 5000);
    });
    EXPECT_EQ(places(found), (Places{{"first", 8}}));
    EXPECT_EQ(found.records.at(0).start_ns - begin, 1000);
    EXPECT_EQ(found.records.at(0).end_ns - begin, 6000);
    return all_notes(found);
  }
};

TEST_F(BesideTorch, AfterItsUseTimesAreTrue) {
  Tracer traced = tracer();
  EXPECT_EQ(expect_true_times(traced), "");
  EXPECT_EQ(fake_calls("cuptiActivityRegisterTimestampCallback"), 0) << "untouched the clock is left alone";
  for (const bool subscribes : {false, true}) {
    std::optional<OtherSubscriber> kept;
    if (subscribes) kept.emplace();
    use_torchs_profiler();
    const std::string notes = expect_true_times(traced);
    EXPECT_EQ(notes.substr(0, 12), subscribes ? "cupti-shared" : "");
    EXPECT_EQ(clock_unit(api()), ClockUnit::cpu_ticks) << "its clock is as it was: it converts ticks itself";
  }
}

TEST_F(BesideTorch, AClockThatCannotBeMendedGivesNoTimes) {
  Tracer traced = tracer();
  use_torchs_profiler();
  for (const bool refused : {true, false}) {
    if (refused) {
      fake_fail("cuptiActivityRegisterTimestampCallback", CUPTI_ERROR_NOT_COMPATIBLE, 0);
    } else {  // one of nobody knows whom
      fake_reset();
      api().cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return 1ULL << 62; });
    }
    EXPECT_SAYS("replaced CUPTI's clock", message_of<CollectorError>([&] { traced.start(); }));
    expect_nothing_left();
  }
}

// CUPTI converts times when it hands records over, by the clock that is there then.
TEST_F(BesideTorch, WhenItBeginsWithinATraceTheTimesAreNotUsed) {
  Tracer traced = tracer();
  traced.start();
  kernel("before");
  use_torchs_profiler();
  EXPECT_SAYS("began within this trace and replaced CUPTI's clock", message_of<CollectorError>([&] { traced.stop(); }));
  expect_nothing_left();
  expect_true_times(traced);
}

// ---- what goes wrong

using Failing = Traced;

TEST_F(Failing, AStartThatFailsLeavesNothingBehind) {
  for (const auto& [function, calls_that_work] :
       std::vector<std::pair<const char*, int>>{{"cuptiSubscribe", 0},
                                                {"cuptiActivityRegisterCallbacks", 0},
                                                {"cuptiActivityEnable", 0},
                                                {"cuptiActivityEnable", 6},
                                                {"cuptiGetTimestamp", 0}}) {
    Tracer traced = tracer();
    fake_fail(function, CUPTI_ERROR_NOT_COMPATIBLE, calls_that_work);
    EXPECT_SAYS(std::string(function) + ": CUPTI_ERROR_NOT_COMPATIBLE",
                message_of<CuptiError>([&] { traced.start(); }));
    EXPECT_EQ(traced.marker(), nullptr);
    expect_nothing_left();
    fake_fail(function, 0, 0);
    expect_usable(traced);
  }
}

TEST_F(Failing, WhatFailsLaterIsANote) {
  for (const auto& [function, code, words] : std::vector<std::tuple<const char*, int, const char*>>{
           {"cuptiActivityFlushAll", CUPTI_ERROR_UNKNOWN, "kernels-missing: CUPTI could not hand over all"},
           {"cuptiGetTimestamp", CUPTI_ERROR_UNKNOWN, "cupti-failed: CUPTI could not tell when the trace ended"},
           {"cuptiActivityDisable", CUPTI_ERROR_UNKNOWN, "cupti-failed: CUPTI could not end recording"},
           {"cuptiUnsubscribe", CUPTI_ERROR_UNKNOWN, "cupti-failed: CUPTI could not end our session"},
           {"cuCtxSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
           // These are not needed.
           {"cuptiGetCallbackName", CUPTI_ERROR_UNKNOWN, ""},
           {"cuptiActivityGetNumDroppedRecords", CUPTI_ERROR_UNKNOWN, ""}}) {
    Tracer traced = tracer();
    const DeviceTrace found = trace(traced, [name = function, with = code](LaunchMarker* marker) {
      one_in_an_op(marker);
      fake_fail(name, with, 0);
    });
    EXPECT_SAYS(words, all_notes(found));
    fake_reset();
    trace(traced, [](LaunchMarker*) {});  // what was left is taken away
    expect_usable(traced);
  }
}

TEST_F(Failing, ASecondClientIsDistinguished) {
  Tracer traced = tracer();
  {
    const OtherSubscriber other;
    setenv("NV_NSIGHT_INJECTION_PORT_BASE", "49152", 1);
    EXPECT_SAYS("another profiler is at work", message_of<CollectorError>([&] { traced.start(); }));
    unsetenv("NV_NSIGHT_INJECTION_PORT_BASE");
    EXPECT_EQ(fake_live("subscriber"), 1) << "the other's session goes on";
    EXPECT_EQ(fake_live("activity_kind"), 0);
    EXPECT_EQ(fake_calls("cuptiActivityRegisterCallbacks"), 0) << "the other's callbacks stay";
  }
  expect_usable(traced);
}

// CUPTI gives back what it holds when a process ends, be it in the middle of a trace.
TEST_F(Failing, AProcessMayEndInTheMiddle) {
  const auto end_in_the_middle = [] {
    Tracer before = tracer();  // the library is loaded, and what it keeps goes after the handler below
    trace(before, [](LaunchMarker*) {});
    std::atexit([] { api().cuptiActivityFlushAll(1); });
    static auto* traced = new Tracer(tracer());
    traced->start();
    traced->marker()->push(3, LaunchLevel::op);
    kernel();
    std::exit(0);
  };
  EXPECT_EXIT(end_in_the_middle(), testing::ExitedWithCode(0), "");
}

// ---- as the profiler uses it

void axpy(LaunchMarker* marker) {
  if (marker != nullptr) marker->push(3, LaunchLevel::op);
  fake_launch(FakeLaunch{.name = "_Z4axpyPf", .duration_ns = 700, .dram_read_bytes = 4096, .dram_write_bytes = 1024});
  if (marker != nullptr) marker->pop(LaunchLevel::op);
}

using Collecting = Traced;

TEST_F(Collecting, TimesAndCountersOfOneDeviceAreRecordedOnRequest) {
  EXPECT_EQ(make_collector("cpu"), nullptr);
  EXPECT_EQ(fake_calls("cupti*"), 0);
  const std::string path = testing::TempDir() + "/roofprof_collector_" + std::to_string(getpid()) + ".json";
  setenv("ROOFPROF_RECORD_DEVICE", path.c_str(), 1);
  const auto collector = make_collector("cuda:0");
  unsetenv("ROOFPROF_RECORD_DEVICE");
  EXPECT_TRUE(collector->simulated());
  EXPECT_FALSE(collector->by_host_clock() || collector->can_forget());
  axpy(nullptr);
  collector->start_tracing();
  axpy(collector->marker());
  RecordedData expected;
  expected.traces.push_back(collector->stop_tracing());
  EXPECT_EQ(places(expected.traces[0]), (Places{{"axpy(float*)", 3}}));
  EXPECT_EQ(expected.traces[0].records[0].end_ns - expected.traces[0].records[0].start_ns, 700);
  expected.counters.push_back(collector->count({.expected_launches = 1}, axpy));
  ASSERT_EQ(expected.counters[0].records.size(), 1U);
  EXPECT_EQ(expected.counters[0].records[0].values[static_cast<std::size_t>(Counter::dram_bytes)], 5120.0);
  EXPECT_EQ(read_recorded_file(path), expected);
  std::filesystem::remove(path);
}

TEST_F(Collecting, OneAtATimeAndUsableAfterAFailure) {
  const auto first = make_collector("cuda:0");
  const auto second = make_collector("cuda:0");
  axpy(nullptr);
  const auto refused = [](auto&& call) {
    EXPECT_SAYS("another measurement of roofprof's is under way", message_of<CollectorError>(call));
  };
  EXPECT_THROW(first->stop_tracing(), CollectorError);
  first->start_tracing();
  refused([&] { second->start_tracing(); });
  refused([&] { first->count({}, axpy); });
  axpy(nullptr);
  EXPECT_EQ(first->stop_tracing().records.size(), 1U);
  first->count({}, [&](LaunchMarker* marker) {
    axpy(marker);
    refused([&] { second->start_tracing(); });
    refused([&] { first->count({}, axpy); });
  });
  EXPECT_THROW(first->count({}, [](LaunchMarker*) { throw std::domain_error("the user's"); }), std::domain_error);
  make_collector("cuda:0")->start_tracing();  // one that goes gives the device back
  second->start_tracing();
  axpy(nullptr);
  EXPECT_EQ(second->stop_tracing().records.size(), 1U);
}

}  // namespace
}  // namespace roofprof::cupti
