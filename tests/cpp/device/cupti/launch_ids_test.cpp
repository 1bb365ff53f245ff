// What the observer does around every op: it must cost no allocation and no lock, which this watches by itself. CUPTI's
// two functions stand here as plain counters.
#include "device/cupti/launch_ids.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

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

thread_local long long depth = 0;
thread_local long long deepest = 0;

Api counting_api() {
  Api api;
  api.cuptiActivityPushExternalCorrelationId = [](CUpti_ExternalCorrelationKind kind, std::uint64_t) {
    EXPECT_EQ(kind, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2) << "CUSTOM0 and CUSTOM1 are torch's profiler's";
    deepest = std::max(deepest, ++depth);
    return CUPTI_SUCCESS;
  };
  api.cuptiActivityPopExternalCorrelationId = [](CUpti_ExternalCorrelationKind, std::uint64_t*) {
    return depth-- > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_QUEUE_EMPTY;
  };
  return api;
}

TEST(LaunchIdsTest, PushAndPopAllocateNothing) {
  const Api api = counting_api();
  LaunchIds ids;
  ids.begin(api, /*passed_on=*/true);
  ids.push(1, LaunchLevel::op);  // the thread's own stack comes to be
  ids.pop(LaunchLevel::op);
  const long long before = allocations;
  for (LaunchId id = 1; id <= 100'000; ++id) {
    ids.push(id, LaunchLevel::module);
    ids.push(id + 1, LaunchLevel::op);
    ids.pop(LaunchLevel::op);
    ids.pop(LaunchLevel::module);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(depth, 0);
  EXPECT_EQ(deepest, 2);
}

TEST(LaunchIdsTest, TheTopmostIsKnownAndCuptiAskedWhereNobodyWatches) {
  const Api without;  // has no function
  const Api with = counting_api();
  for (const bool passed_on : {true, false}) {
    const Api& api = passed_on ? with : without;
    LaunchIds ids;
    ids.begin(api, passed_on);
    EXPECT_EQ(ids.current(), kNoLaunch);
    ids.push(5, LaunchLevel::module);
    ids.push(6, LaunchLevel::op);
    EXPECT_EQ(ids.current(), 6U);
    ids.pop(LaunchLevel::op);
    EXPECT_EQ(ids.current(), 5U);
    ids.begin(api, passed_on);  // another trace
    EXPECT_EQ(ids.current(), kNoLaunch);
    ids.push(7, LaunchLevel::op);
    EXPECT_EQ(depth, passed_on ? 1 : 0) << "what the last trace left was popped";
    ids.clear_this_thread();
    EXPECT_EQ(depth, 0);
    EXPECT_EQ(ids.current(), kNoLaunch);
    EXPECT_EQ(ids.refused(), 0);
  }
}

}  // namespace
}  // namespace roofprof::cupti
