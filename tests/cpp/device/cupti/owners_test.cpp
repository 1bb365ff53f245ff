// Whose launches are: as CUPTI tells of each, or, where another client has the callbacks, by the ids that it records;
// and what finding that out costs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "device/cupti/launch_calls.h"
#include "device/cupti/traced.h"

namespace {

thread_local long long allocations = 0;

}  // namespace

// Not inlined: compilers take a free() that they see for one of memory from elsewhere.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace roofprof::cupti {
namespace {

// The parameter: CUPTI tells of launches.
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

 private:
  std::optional<OtherSubscriber> other_;
};

INSTANTIATE_TEST_SUITE_P(Told, Owners, testing::Values(true));
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

// CUPTI's numbers of calls have 32 bits and begin again after the last; an id has 64 where single calls are kept.
TEST_P(Owners, CallsAreKnownWhoseNumbersBeginAgain) {
  constexpr std::array kCalls = {0xfffffffeU, 0xffffffffU, 1U, 2U};
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [&](LaunchMarker* marker) {
    for (const unsigned call : kCalls) {
      const Under op(marker, with_event(7, call));
      fake_call(call);
    }
    for (const unsigned call : kCalls) kernel("k", 10, call);
  });
  ASSERT_EQ(found.records.size(), kCalls.size());
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    EXPECT_EQ(found.records[i].correlation, kCalls[i]);
    EXPECT_EQ(found.records[i].launch, with_event(7, kCalls[i]));
  }
}

// CUSTOM0 and CUSTOM1 are torch's profiler's.
TEST_P(Owners, IdsOfOthersAreNotOurs) {
  EXPECT_EQ(places_of([](LaunchMarker* marker) {
              api().cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 55);
              api().cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 56);
              kernel("theirs");
              {
                const Under op(marker, 3);
                kernel("ours");
              }
              for (const auto& [kind, expected] : {std::pair(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 55U),
                                                   std::pair(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 56U)}) {
                std::uint64_t last = 0;
                api().cuptiActivityPopExternalCorrelationId(kind, &last);
                EXPECT_EQ(last, expected) << "their stack is as they left it";
              }
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
  EXPECT_EQ(api().cuptiActivityPopExternalCorrelationId(kOurIds, nullptr), CUPTI_ERROR_QUEUE_EMPTY);
}

// A thread that was inside of a scope when a trace ended, and is there no more in the next.
TEST_P(Owners, AThreadsLeftOversEndAtItsNextId) {
  std::thread worker;
  std::atomic<int> step = 0;
  places_of([&](LaunchMarker* marker) {
    worker = std::thread([&step, marker] {
      marker->push(5, LaunchLevel::module);
      marker->push(6, LaunchLevel::op);
      step = 1;
      while (step < 2) std::this_thread::yield();
      {
        const Under op(marker, 3);
        kernel("inside");
      }
      kernel("outside");
    });
    while (step < 1) std::this_thread::yield();
  });
  EXPECT_EQ(places_of([&](LaunchMarker*) {
              step = 2;
              worker.join();
            }),
            (Places{{"inside", 3}, {"outside", 0}}));
}

TEST_P(Owners, WhatNestsTooDeepBelongsToTheDeepestKept) {
  EXPECT_EQ(places_of([](LaunchMarker* marker) {
              for (LaunchId id = 1; id <= 300; ++id) marker->push(id, LaunchLevel::module);
              kernel("deep");
              for (int i = 0; i < 299; ++i) marker->pop(LaunchLevel::module);
              kernel("shallow");
              marker->pop(LaunchLevel::module);
              kernel("outside");
            }),
            (Places{{"deep", 128}, {"shallow", 1}, {"outside", 0}}));
}

// What the observer does around every op.
TEST_P(Owners, PushAndPopAllocateNothing) {
  const Api nothing = [] {
    Api with;
    with.cuptiActivityPushExternalCorrelationId = [](auto, std::uint64_t) { return CUPTI_SUCCESS; };
    with.cuptiActivityPopExternalCorrelationId = [](auto, std::uint64_t*) { return CUPTI_SUCCESS; };
    return with;
  }();
  LaunchIds ids;
  ids.begin(nothing, /*passed_on=*/!GetParam());
  long long before = 0;
  for (LaunchId id = 1; id <= 1000; ++id) {
    ids.push(id, LaunchLevel::module);
    ids.push(id + 1, LaunchLevel::op);
    EXPECT_EQ(ids.current(), id + 1);
    ids.pop(LaunchLevel::op);
    ids.pop(LaunchLevel::module);
    if (id == 1) before = allocations;  // the thread's own stack came to be
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(ids.current(), kNoLaunch);
}

// Three kernels, which the runtime and in it the driver launch, among a hundred frames and waits.
TEST_P(Owners, OnlyLaunchesCost) {
  Tracer traced = tracer({}, counting_api());
  traced.start();
  records.clear();
  const auto of_cupti = fake_calls("cupti*");
  const auto told = fake_calls("callback");
  for (unsigned i = 0; i < 100; ++i) {
    const Under module(traced.marker(), 7, LaunchLevel::module);
    const Under op(traced.marker(), 8 + i);
    synchronize();
    if (i < 3) fake_call(i + 1000);
  }
  EXPECT_EQ(fake_calls("callback") - told, GetParam() ? 3 * 2 * 2 : 0) << "as each of both calls begins and ends";
  EXPECT_EQ(fake_calls("cupti*") - of_cupti, GetParam() ? 0 : 100 * 2 * 2) << "two pushes and two pops";
  for (unsigned i = 0; i < 3; ++i) kernel("k", 10, i + 1000);
  const DeviceTrace found = traced.stop();
  ASSERT_EQ(found.records.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found.records[i].launch, 8 + i);
  const int calls = GetParam() ? 0 : 3;
  std::map<CUpti_ActivityKind, int> expected = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 3},
      {CUPTI_ACTIVITY_KIND_DRIVER, calls + 2},  // the waits as the trace begins and ends
      {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 2 * calls + 1}};
  if (calls > 0) expected[CUPTI_ACTIVITY_KIND_RUNTIME] = calls;
  EXPECT_EQ(records, expected);
}

TEST_P(Owners, LaunchesAloneHaveNoRecordOfACallAndNoCallback) {
  Tracer traced = tracer({}, counting_api());
  const auto told = fake_calls("callback");
  records.clear();
  traced.start(Recorded::launches);
  EXPECT_EQ(traced.marker(), nullptr);
  EXPECT_EQ(fake_live("subscriber"), GetParam() ? 0 : 1) << "torch's profiler may have it";
  EXPECT_EQ(fake_live("activity_kind"), 4) << "kernels, two kinds of copies, fills";
  fake_graph_node(1, 0);
  kernel();
  EXPECT_EQ(traced.stop().records.size(), 1U);
  EXPECT_EQ(fake_calls("callback"), told);
  EXPECT_EQ(records, (std::map<CUpti_ActivityKind, int>{{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1},
                                                        {CUPTI_ACTIVITY_KIND_DRIVER, 1}}))
      << "the one call is the wait before it, for which CUPTI asks for a buffer";
}

void one_in_an_op(LaunchMarker* marker) {
  const Under op(marker, 3);
  kernel();
}

TEST_P(Owners, WhereCallsAreNotKnownAllAreRecordedFromThenOn) {
  fake_set("kernel_call", CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);  // by whose name it launches nothing
  Tracer traced = tracer();
  const DeviceTrace first = trace(traced, one_in_an_op);
  EXPECT_EQ(places(first), (Places{{"k", kNoLaunch}}));
  EXPECT_SAYS("CUPTI did not tell of the calls that launched 1 kernels and copies", all_notes(first));
  const DeviceTrace second = trace(traced, one_in_an_op);
  EXPECT_EQ(places(second), (Places{{"k", 3}}));
  EXPECT_EQ(all_notes(second).find("did not tell"), std::string::npos) << all_notes(second);
}

TEST_P(Owners, ALibraryThatNamesNoCallsRecordsThemAll) {
  Api older = api();
  older.cuptiGetCallbackName = nullptr;
  older.cuptiActivityEnableRuntimeApi = nullptr;
  older.cuptiActivityEnableDriverApi = nullptr;
  Tracer traced = tracer({}, older);
  EXPECT_EQ(places(trace(traced, one_in_an_op)), (Places{{"k", 3}}));
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

// ---- CUDA graphs: one launch, many kernels, told apart by their nodes; those that run are clones, 1000 higher here

void launch_graph(LaunchMarker* marker, LaunchId launcher, std::initializer_list<unsigned long long> nodes) {
  const Under op(marker, launcher);
  unsigned correlation = 0;
  for (const auto node : nodes) {
    const std::string name = "node" + std::to_string(node);
    correlation = fake_launch(FakeLaunch{.name = name.c_str(), .graph_node = node, .correlation = correlation});
  }
}

class Graphs : public Traced, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(ToldOfInAnyOrder, Graphs, testing::Values(0, 1, 2));

TEST_P(Graphs, NodesBelongToTheModuleThatCapturedThem) {
  fake_set("clones_are_created", GetParam());
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker* marker) {
    {
      const Under first(marker, 11);
      fake_graph_node(1, 0);
      fake_graph_node(2, 0);
    }
    std::thread([&] {
      const Under second(marker, 12);
      fake_graph_node(3, 0);
    }).join();
    fake_graph_node(4, 0);  // outside of every module
    {
      const Under instantiating(marker, 13);
      for (unsigned long long node = 1; node <= 5; ++node) fake_graph_node(node + 1000, node);
    }
    launch_graph(marker, 20, {1001, 1002, 1003, 1004, 1005});  // the last was captured when nobody looked
    launch_graph(marker, 21, {1009});
  });
  EXPECT_EQ(
      places(found),
      (Places{
          {"node1001", 11}, {"node1002", 11}, {"node1003", 12}, {"node1004", 20}, {"node1005", 20}, {"node1009", 21}}));
  EXPECT_EQ(found.records[1].graph_node, 1002U);
  EXPECT_EQ(all_notes(found),
            "graph-launches: launches of CUDA graphs: 2, which ran 6 kernels and copies; 3 belong to the module that "
            "captured them; 3 belong to the module that launched the graph, as they were captured before the trace or "
            "outside of every module\n");
  EXPECT_EQ(places(trace(traced, [](LaunchMarker* marker) { launch_graph(marker, 20, {1001}); })),
            (Places{{"node1001", 20}}))
      << "11 stands for something else in this trace";
}

// As an H200's driver does: tests/data/gpu/h200.
TEST_P(Graphs, AFillThatTheDriverRunsAsAKernelIsAFill) {
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker*) {
    fake_launch(FakeLaunch{.name = "memset32", .graph_node = 3});
    kernel("memset32");  // a program's own
  });
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(found.records[0].kind, KernelKind::fill);
  EXPECT_EQ(found.records[1].kind, KernelKind::kernel);
}

TEST_P(Graphs, WithoutTheCallbacksTheLaunchersModuleHasThem) {
  Api older = api();
  older.cuptiEnableCallback = nullptr;
  Tracer traced = tracer({}, older);
  const DeviceTrace found = trace(traced, [](LaunchMarker* marker) {
    const Under module(marker, 11);
    fake_graph_node(1, 0);
    launch_graph(marker, 20, {1});
  });
  EXPECT_EQ(places(found), (Places{{"node1", 20}}));
  EXPECT_SAYS("CUPTI did not tell of captures", all_notes(found));
}

}  // namespace
}  // namespace roofprof::cupti
