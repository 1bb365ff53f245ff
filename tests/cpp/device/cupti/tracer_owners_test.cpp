// Whose launches are: as CUPTI tells of each, or, where another client has the callbacks, by the ids that it records;
// and what finding that out costs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "device/cupti/launch_calls.h"
#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

// The parameter: CUPTI tells of launches.
class Owners : public Traced, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Traced::SetUp();
    if (!GetParam()) other_.emplace(api());
  }
  void TearDown() override {
    other_.reset();
    Traced::TearDown();
  }

  // CUPTI's functions, of which one counts the records that are read.
  static const Api& counting_api() {
    static const Api counting = [] {
      Api with = api();
      with.cuptiActivityGetNextRecord = [](std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record) {
        const CUptiResult result = api().cuptiActivityGetNextRecord(buffer, bytes, record);
        if (result == CUPTI_SUCCESS) ++records[(*record)->kind];
        return result;
      };
      return with;
    }();
    return counting;
  }
  static inline std::map<CUpti_ActivityKind, int> records;

  static void synchronize() { cuda::synchronize_all(cuda::driver()); }

 private:
  std::optional<OtherSubscriber> other_;
};

INSTANTIATE_TEST_SUITE_P(Told, Owners, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(ByIds, Owners, testing::Values(false));

TEST_P(Owners, KernelsComeBackUnderTheIdsTheyWereLaunchedUnder) {
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
  EXPECT_EQ(trace.notes.size(), GetParam() ? 0U : 1U) << all_notes(trace);
  EXPECT_EQ(traced.marker(), nullptr);
}

// CUPTI's numbers of calls have 32 bits and begin again after the last; an id has 64 where single calls are kept.
TEST_P(Owners, CallsAreKnownWhoseNumbersBeginAgain) {
  constexpr std::array kCalls = {0xfffffffeU, 0xffffffffU, 1U, 2U};
  Tracer traced = tracer();
  traced.start();
  for (const unsigned call : kCalls) {
    const Under op(traced.marker(), with_event(7, call));
    fake_call(call);
  }
  for (const unsigned call : kCalls) {
    FakeLaunch kernel{};
    kernel.name = "k";
    kernel.duration_ns = 10;
    kernel.correlation = call;
    fake_launch(&kernel);
  }
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), kCalls.size());
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    EXPECT_EQ(trace.records[i].correlation, kCalls[i]);
    EXPECT_EQ(trace.records[i].launch, with_event(7, kCalls[i]));
  }
}

TEST_P(Owners, IdsOfOthersAreNotOurs) {
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

TEST_P(Owners, EachThreadHasItsOwnIds) {
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

TEST_P(Owners, PopsOfNothingAndLeftOversDoNoHarm) {
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
TEST_P(Owners, AThreadsLeftOversEndAtItsNextId) {
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

TEST_P(Owners, WhatNestsTooDeepBelongsToTheDeepestKept) {
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

// Three kernels, which the runtime and in it the driver launch, among a hundred frames and waits.
TEST_P(Owners, OnlyLaunchesCost) {
  fake_kernel("makes_a_context", 0, 7, 10);
  Tracer traced(counting_api(), synchronize);
  traced.start();
  records.clear();
  const auto of_cupti = fake_calls("cupti*");
  const auto told = fake_calls("callback");
  const auto waits = fake_calls("cuCtxSynchronize");
  for (unsigned i = 0; i < 100; ++i) {
    const Under module(traced.marker(), 7, LaunchLevel::module);
    const Under op(traced.marker(), 8 + i);
    synchronize();
    if (i < 3) fake_call(i + 1000);
  }
  EXPECT_EQ(fake_calls("cuCtxSynchronize") - waits, 100);
  EXPECT_EQ(fake_calls("callback") - told, GetParam() ? 3 * 2 * 2 : 0) << "as each of both calls begins and ends";
  EXPECT_EQ(fake_calls("cupti*") - of_cupti, GetParam() ? 0 : 100 * 2 * 2) << "two pushes and two pops";
  for (unsigned i = 0; i < 3; ++i) {
    FakeLaunch kernel{};
    kernel.name = "k";
    kernel.correlation = i + 1000;
    fake_launch(&kernel);
  }
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(trace.records[i].launch, 8 + i);
  const int calls = GetParam() ? 0 : 3;
  std::map<CUpti_ActivityKind, int> expected = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 3},
      {CUPTI_ACTIVITY_KIND_DRIVER, calls + 2},  // the waits as the trace begins and ends
      {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 2 * calls + 1}};
  if (calls > 0) expected[CUPTI_ACTIVITY_KIND_RUNTIME] = calls;
  EXPECT_EQ(records, expected);
}

TEST_P(Owners, LaunchesAloneHaveNoRecordOfACallAndNoCallback) {
  fake_kernel("makes_a_context", 0, 7, 10);
  Tracer traced(counting_api(), synchronize);
  const auto told = fake_calls("callback");
  records.clear();
  traced.start(Recorded::launches);
  EXPECT_EQ(traced.marker(), nullptr);
  EXPECT_EQ(fake_live("subscriber"), GetParam() ? 0 : 1) << "torch's profiler may have it";
  EXPECT_EQ(fake_live("activity_kind"), 4) << "kernels, two kinds of copies, fills";
  for (int i = 0; i < 3; ++i) {
    fake_graph_node(i + 1, 0);
    fake_kernel("k", 0, 7, 10);
  }
  EXPECT_EQ(traced.stop().records.size(), 3U);
  EXPECT_EQ(fake_calls("callback"), told);
  EXPECT_EQ(records, (std::map<CUpti_ActivityKind, int>{{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 3},
                                                        {CUPTI_ACTIVITY_KIND_DRIVER, 1}}))
      << "the one call is the wait before it, for which CUPTI asks for a buffer";
  EXPECT_EQ(fake_live("activity_kind"), 0);
  traced.start();
  EXPECT_NE(traced.marker(), nullptr) << "the next trace has ids again";
  traced.stop();
}

TEST_P(Owners, WhereCallsAreNotKnownAllAreRecordedFromThenOn) {
  fake_set("kernel_call", CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);  // by whose name it launches nothing
  Tracer traced = tracer();
  const auto one = [&] {
    traced.start();
    {
      const Under op(traced.marker(), 3);
      fake_kernel("k", 0, 7, 10);
    }
    return traced.stop();
  };
  const DeviceTrace first = one();
  EXPECT_EQ(only(first).launch, kNoLaunch);
  EXPECT_SAYS("CUPTI did not tell of the calls that launched 1 kernels and copies", all_notes(first));
  const DeviceTrace second = one();
  EXPECT_EQ(only(second).launch, 3U);
  EXPECT_EQ(all_notes(second).find("did not tell"), std::string::npos) << all_notes(second);
}

TEST_P(Owners, ALibraryThatNamesNoCallsRecordsThemAll) {
  Api older = api();
  older.cuptiGetCallbackName = nullptr;
  older.cuptiActivityEnableRuntimeApi = nullptr;
  older.cuptiActivityEnableDriverApi = nullptr;
  Tracer traced(older, [] {});
  traced.start();
  EXPECT_EQ(fake_live("activity_kind"), 7);
  {
    const Under op(traced.marker(), 3);
    fake_kernel("k", 0, 7, 1);
  }
  EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"k", 3}}));
}

// Those that launched in recorded traces of CUDA, their newer forms, and some that did not.
TEST(LaunchCalls, AreKnownByTheirNames) {
  for (const char* launches : {"cudaLaunchKernel_v7000", "__cudaLaunchKernel_ptsz_v13000", "cudaLaunchKernelExC_v11060",
                               "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020", "cudaGraphLaunch_v10000",
                               "cuLaunchKernel", "cuLaunchKernelEx", "cuMemcpyBatchAsync_v2_ptsz"}) {
    EXPECT_TRUE(may_launch(launches)) << launches;
  }
  for (const char* other : {"cudaGetDevice_v3020", "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020",
                            "cudaMalloc_v3020", "cudaStreamIsCapturing_v10000", "cuCtxSynchronize", "cuMemSetAccess"}) {
    EXPECT_FALSE(may_launch(other)) << other;
  }
}

}  // namespace
}  // namespace roofprof::cupti
