#pragma once
// A tracer on the fake libraries, and what every trace must leave behind: nothing.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "device/cupti/tracer.h"
#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {

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
  explicit OtherSubscriber(const Api& api) : api_(api) {
    const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
    EXPECT_EQ(api_.cuptiSubscribe(&subscriber_, nothing, nullptr), CUPTI_SUCCESS);
  }
  ~OtherSubscriber() { api_.cuptiUnsubscribe(subscriber_); }
  OtherSubscriber(const OtherSubscriber&) = delete;
  OtherSubscriber& operator=(const OtherSubscriber&) = delete;

 private:
  const Api& api_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

class Traced : public WithFakes {
 protected:
  void TearDown() override {
    expect_nothing_left();
    WithFakes::TearDown();
  }

  static void expect_nothing_left() {
    EXPECT_EQ(fake_live("subscriber"), 0) << "a subscriber is left";
    EXPECT_EQ(fake_live("activity_kind"), 0) << "kinds of records are left enabled";
    EXPECT_EQ(fake_live("activity_buffer"), fake_get("activity_keeps") != 0 ? 1 : 0) << "buffers are not back";
  }

  static Tracer tracer(TraceLimits limits = {}) {
    return {api(), [] { cuda::synchronize_all(cuda::driver()); }, limits};
  }

  // The launch id of each kernel, by its name; for traces in which every name is there once.
  static std::map<std::string, LaunchId> places(const DeviceTrace& trace) {
    std::map<std::string, LaunchId> found;
    for (const KernelRecord& record : trace.records) {
      EXPECT_TRUE(found.emplace(trace.names.at(record.name), record.launch).second) << "a name is there twice";
    }
    return found;
  }

  static const KernelRecord& only(const DeviceTrace& trace) {
    EXPECT_EQ(trace.records.size(), 1U);
    return trace.records.at(0);
  }

  static std::string all_notes(const DeviceTrace& trace) {
    std::string text;
    for (const Note& note : trace.notes) text += note.text + '\n';
    return text;
  }
};

}  // namespace roofprof::cupti
