// What single ops and scopes took: kept where it was requested, and told in the sums' own nanoseconds.

#include "observe/events.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <thread>

#include "observe/observed.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

using namespace testing;

template <class Body>
Pass kept(Body&& body, bool keep = true) {
  auto session = std::make_shared<Session>();
  if (keep) session->setup.keeps_events = true;
  session->start(kOutside);
  session->frames.enter(kModel, session.get());
  body();
  session->frames.leave(session.get());
  return session->stop();
}

void work() {
  const auto x = at::rand({64, 64});
  for (int i = 0; i < 20; ++i) at::linear(x, x).relu_();
  at::einsum("ij,jk->ik", {x, x});
}

// By bucket: what each event took without those inside of it.
std::map<std::int64_t, std::int64_t> own_times(const std::vector<Event>& events) {
  std::map<std::int64_t, std::int64_t> own;
  for (const auto& event : events) {
    if (event.kind != EventKind::op) continue;
    std::int64_t inside = 0;
    std::int64_t covered_until = event.begin_ns;
    for (const auto& other : events) {  // in order: outer ones first
      if (other.kind != EventKind::op || other.thread != event.thread || other.id == event.id) continue;
      const bool within = other.begin_ns >= event.begin_ns && other.end_ns <= event.end_ns && other.id > event.id;
      if (!within || other.begin_ns < covered_until) continue;
      inside += other.end_ns - other.begin_ns;
      covered_until = other.end_ns;
    }
    own[event.bucket] += event.end_ns - event.begin_ns - inside;
  }
  return own;
}

TEST(KeptEvents, AddUpToTheTimesOfTheOps) {
  auto pass = kept(work);
  ASSERT_TRUE(pass.events);
  auto events = pass.events->host;
  std::ranges::sort(events, {}, [](const Event& event) { return std::pair(event.begin_ns, -event.end_ns); });
  const auto own = own_times(events);
  std::int64_t calls = 0;
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    const auto& op = pass.ops[i];
    if (op.calls == 0) continue;
    calls += op.calls;
    ASSERT_TRUE(own.contains(static_cast<std::int64_t>(i))) << op.op;
    EXPECT_LE(std::abs(own.at(static_cast<std::int64_t>(i)) - *op.time_ns), 2 * op.calls + 2) << op.op;
  }
  EXPECT_EQ(std::ranges::count(events, EventKind::op, &Event::kind), calls);
  EXPECT_EQ(std::ranges::count(events, EventKind::module, &Event::kind), 1);
  EXPECT_EQ(pass.events->left_out, 0);
}

TEST(KeptEvents, AreNotKeptUnrequested) {
  EXPECT_FALSE(kept(work, false).events);
  // No thread has got anything to put them in.
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  work();
  EXPECT_EQ(thread_state().lent.event_ids, nullptr);
  EXPECT_EQ(thread_state().lent.table->events.events.capacity(), 0U);
  session->stop();
}

TEST(KeptEvents, OfEachThreadAreReported) {
  int other = 0;
  auto session = std::make_shared<Session>();
  session->setup.keeps_events = true;
  session->start(kOutside);
  work();
  std::thread([&] {
    session->frames.enter(kLayer, &other);
    work();
    session->frames.leave(&other);
  }).join();
  const auto pass = session->stop();
  std::map<std::int64_t, std::int64_t> by_thread;
  for (const auto& event : pass.events->host) ++by_thread[event.thread];
  ASSERT_EQ(by_thread.size(), 2U);
  EXPECT_NE(by_thread.begin()->second, by_thread.rbegin()->second);  // that with a module has one more
}

TEST(KeptEvents, WhatBeginsWithoutAnIdIsCountedAndFiguresHaveIt) {
  auto session = std::make_shared<Session>();
  session->setup.keeps_events = true;
  session->start(kOutside);
  while (thread_state().lent.event_ids->next() != 0) {
  }
  work();
  const auto pass = session->stop();
  std::int64_t calls = 0;
  for (const auto& op : pass.ops) calls += op.calls;
  EXPECT_TRUE(pass.events->host.empty());
  EXPECT_EQ(pass.events->left_out, calls);
  EXPECT_EQ(find(pass, "aten::linear", kOutside)->calls, 20);
}

}  // namespace
}  // namespace roofprof::observe
