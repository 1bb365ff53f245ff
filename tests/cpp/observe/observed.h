#pragma once
// What a pass saw, for tests.

#include <memory>
#include <string>

#include "observe/session.h"

namespace roofprof::observe::testing {

// A module of a tree.
inline constexpr ModuleId kLayer = 3;

inline const Pass::Op* find(const Pass& pass, const std::string& name, ModuleId module = kModel,
                            Phase phase = Phase::forward) {
  for (const auto& op : pass.ops) {
    if (op.op == name && op.owner.module == module && op.owner.phase == phase) return &op;
  }
  return nullptr;
}

inline Work total_work(const Pass& pass) {
  Work work;
  for (const auto& op : pass.ops) work += op.work;
  return work;
}

template <class Body>
Pass observe_in_model(Body&& body) {
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  session->frames.enter(kModel, &body);
  body();
  session->frames.leave(&body);
  return session->stop();
}

}  // namespace roofprof::observe::testing
