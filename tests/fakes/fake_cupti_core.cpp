// A simulated libcupti.so.13, first part: version, clock, subscribers, callbacks.
#include <cuda.h>
#include <cupti.h>

#include <mutex>

#include "fake_cupti.h"
#include "fake_state.h"

namespace {

std::mutex mutex;
fake::Subscriber subscriber;
// The handle that callers hold; its address is all there is to it.
char handle;

}  // namespace

namespace fake {

Subscriber subscribed() {
  const std::lock_guard lock(mutex);
  return subscriber;
}

}  // namespace fake

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  FAKE(CUptiResult, cuptiGetVersion);
  *version = static_cast<std::uint32_t>(fake_get("cupti_version"));
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  FAKE(CUptiResult, cuptiGetTimestamp);
  *timestamp = static_cast<std::uint64_t>(fake_now());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* given, CUpti_CallbackFunc callback, void* data) {
  FAKE(CUptiResult, cuptiSubscribe);
  const std::lock_guard lock(mutex);
  if (subscriber.subscribed) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscriber = {true, callback, data, {}};
  *given = reinterpret_cast<CUpti_SubscriberHandle>(&handle);
  fake::live("subscriber", +1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle given) {
  FAKE(CUptiResult, cuptiUnsubscribe);
  const std::lock_guard lock(mutex);
  if (!subscriber.subscribed || given != reinterpret_cast<CUpti_SubscriberHandle>(&handle)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  subscriber = {};
  fake::live("subscriber", -1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle given, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  FAKE(CUptiResult, cuptiEnableCallback);
  const std::lock_guard lock(mutex);
  if (!subscriber.subscribed || given != reinterpret_cast<CUpti_SubscriberHandle>(&handle)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (enable != 0) {
    subscriber.enabled.insert({domain, id});
  } else {
    subscriber.enabled.erase({domain, id});
  }
  return CUPTI_SUCCESS;
}
}
