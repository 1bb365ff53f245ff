#pragma once
// What torch's profiler does with CUPTI, call by call, as a client of the fake library.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "device/cupti/api.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace roofprof::cupti {

// Up to torch 2.14 its first start subscribes, and nothing ever unsubscribes. Each start puts the processor's counter
// in the place of CUPTI's clock, which cannot be undone, and its own callbacks for buffers in the place of others';
// each stop switches the kinds of records off that others may have switched on.
class TorchsProfiler {
 public:
  explicit TorchsProfiler(const Api& api, bool subscribes = true) : api_(api), subscribes_(subscribes) {}
  ~TorchsProfiler() {  // for the tests' accounts: the real one keeps it
    if (subscriber_ != nullptr) api_.cuptiUnsubscribe(subscriber_);
  }
  TorchsProfiler(const TorchsProfiler&) = delete;
  TorchsProfiler& operator=(const TorchsProfiler&) = delete;

  static std::uint64_t CUPTIAPI ticks() {
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
  }

  void start() {
    if (subscribes_ && subscriber_ == nullptr) api_.cuptiSubscribe(&subscriber_, &nothing, nullptr);
    ASSERT_EQ(api_.cuptiActivityRegisterTimestampCallback(&ticks), CUPTI_SUCCESS);
    ASSERT_EQ(api_.cuptiActivityRegisterCallbacks(&request, &complete), CUPTI_SUCCESS);
    for (const auto kind : kKinds) ASSERT_EQ(api_.cuptiActivityEnable(kind), CUPTI_SUCCESS);
  }
  void stop() {
    api_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (const auto kind : kKinds) api_.cuptiActivityDisable(kind);
  }

 private:
  static constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
                                        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
  static constexpr std::size_t kBytes = 4096;

  static void CUPTIAPI nothing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}
  static void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBytes));
    *size = kBytes;
    *most = 0;
  }
  // A buffer of another client's is none of its own.
  static void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size, std::size_t) {
    if (size == kBytes) std::free(buffer);
  }

  const Api& api_;
  bool subscribes_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

}  // namespace roofprof::cupti
