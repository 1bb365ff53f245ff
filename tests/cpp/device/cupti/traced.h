#pragma once
// A tracer on the fake libraries, and what every trace must leave behind: nothing.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "device/cupti/tracer.h"
#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {

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

inline void kernel(const std::string& name = "k", long long duration_ns = 10, unsigned correlation = 0) {
  fake_launch(FakeLaunch{.name = name.c_str(), .stream = 7, .duration_ns = duration_ns, .correlation = correlation});
}

// A hundred kernels, each under an id that its name tells.
inline void launch_hundred(LaunchMarker* marker) {
  for (LaunchId id = 1; id <= 100; ++id) {
    const Under op(marker, id);
    kernel("k" + std::to_string(id));
  }
}

// The launch id of each kernel, by its name; for traces in which every name is there once.
inline Places places(const DeviceTrace& trace) {
  Places found;
  for (const KernelRecord& record : trace.records) {
    EXPECT_TRUE(found.emplace(trace.names.at(record.name), record.launch).second) << "a name is there twice";
  }
  return found;
}

inline std::string all_notes(const DeviceTrace& trace) {
  std::string text;
  for (const Note& note : trace.notes) text += note.code + ": " + note.text + '\n';
  return text;
}

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

}  // namespace roofprof::cupti
