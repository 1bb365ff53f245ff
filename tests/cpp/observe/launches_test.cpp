// What a device's collector is told around ops and scopes: the right module, op and phase, and as many ends as
// beginnings on every thread.

#include "observe/launches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "join/attribution.h"
#include "join/device_launches.h"
#include "join/host_profile.h"
#include "observe/declared_work.h"
#include "observe/observed.h"
#include "observe/regions.h"
#include "observe/script/script_places.h"
#include "observe/script/script_tree.h"

namespace roofprof::observe {
namespace {

using namespace testing;

constexpr ModuleId kOther = 4;

// What is told, and what a launch would be told to belong to.
class Recorder : public LaunchMarker {
 public:
  void push(LaunchId id, LaunchLevel level) noexcept override {
    const std::lock_guard lock(mutex_);
    stacks_[std::this_thread::get_id()].emplace_back(id, level);
    ids.push_back(id);
  }
  void pop(LaunchLevel level) noexcept override {
    const std::lock_guard lock(mutex_);
    auto& stack = stacks_[std::this_thread::get_id()];
    if (stack.empty() || stack.back().second != level) {
      ++wrong_pops;
    } else {
      stack.pop_back();
    }
  }
  // A kernel is launched here and now.
  void launch() {
    const std::lock_guard lock(mutex_);
    const auto& stack = stacks_[std::this_thread::get_id()];
    launched.push_back(stack.empty() ? kNoLaunch : stack.back().first);
  }
  bool balanced() {
    const std::lock_guard lock(mutex_);
    return wrong_pops == 0 && std::ranges::all_of(stacks_, [](const auto& each) { return each.second.empty(); });
  }

  std::vector<LaunchId> ids;       // in the order of their pushes, of all threads
  std::vector<LaunchId> launched;  // by kernels, where launch() was called
  int wrong_pops = 0;

 private:
  std::mutex mutex_;
  std::map<std::thread::id, std::vector<std::pair<LaunchId, LaunchLevel>>> stacks_;
};

// Who is told while one of these tests runs: threads may outlive it.
Recorder*& recorder() {
  static Recorder* current = nullptr;
  return current;
}

Recorder& new_recorder() {
  static auto* all = new std::vector<Recorder*>;  // still reachable at the process's end, for the leak checker
  all->push_back(recorder() = new Recorder);
  return *recorder();
}

at::Tensor kernel(const at::Tensor& x) {
  recorder()->launch();
  return x;
}
// Of no known cost, with a kernel of its own before and behind what it dispatches.
at::Tensor around(const at::Tensor& x) {
  recorder()->launch();
  auto result = at::neg(x);
  recorder()->launch();
  return result;
}
at::Tensor raises(const at::Tensor& x) {
  at::neg(x);
  throw std::domain_error("the user's own");
}

TORCH_LIBRARY(launches_test, library) {
  library.def("kernel(Tensor x) -> Tensor");
  library.impl("kernel", c10::DispatchKey::CPU, kernel);
  library.def("around(Tensor x) -> Tensor");
  library.impl("around", c10::DispatchKey::CPU, around);
  library.def("raises(Tensor x) -> Tensor");
  library.impl("raises", c10::DispatchKey::CPU, raises);
}

at::Tensor call(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("launches_test::") + name).c_str(), "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

std::string described(const LaunchOwner& owner) {
  return std::to_string(owner.owner.module) + " " +
         std::string(kPhaseNames[static_cast<std::size_t>(owner.owner.phase)]) + " " + owner.op;
}

struct Observed {
  std::vector<Pass::Op> ops;
  std::vector<LaunchOwner> owners;
  Recorder& recorder;

  std::vector<std::string> described_by(const std::vector<LaunchId>& ids) const {
    std::vector<std::string> result;
    for (const auto id : ids) result.push_back(described(owners.at(id)));
    return result;
  }
  std::vector<std::string> pushed() const { return described_by(recorder.ids); }
  std::vector<std::string> launched() const { return described_by(recorder.launched); }
};

Observed observed(const std::shared_ptr<Session>& session, Recorder& recorder, const std::function<void()>& body,
                  std::vector<Module> modules = std::vector<Module>(5)) {
  session->start(kOutside, &recorder);
  try {
    body();
  } catch (...) {
    session->stop();
    throw;
  }
  const auto pass = session->stop();
  modules = modules_with_regions(std::move(modules), session->regions.all());
  auto host = host_profile(std::move(modules), pass, {pass}, /*in_block=*/false);
  auto owners = launch_owners(session->launches.keys(), host.ops);
  return {std::move(host.ops), std::move(owners), recorder};
}

Observed observed(const std::function<void()>& body) {
  auto session = std::make_shared<Session>(5);
  return observed(session, new_recorder(), [&] {
    session->frames.enter(kLayer, &session);
    body();
    session->frames.leave(&session);
  });
}

using Strings = std::vector<std::string>;

TEST(Launches, BelongToTheOpThatCounts) {
  const auto input = at::rand({4, 16});
  const auto weight = at::rand({8, 16});
  const auto bias = at::rand({8});
  const auto seen = observed([&] { at::linear(input, weight, bias); });
  EXPECT_EQ(seen.pushed(), (Strings{"1 forward ", "3 forward ", "3 forward aten::linear"}));
  EXPECT_TRUE(seen.recorder.balanced());
  const auto& bucket = seen.ops.at(static_cast<std::size_t>(seen.owners.at(seen.recorder.ids[2]).bucket));
  EXPECT_EQ(bucket.op, "aten::linear");
  EXPECT_EQ(bucket.owner.module, kLayer);
}

TEST(Launches, OfAnUnknownOpAreItsOwnButForWhatItDispatches) {
  const auto seen = observed([] { call("around", call("kernel", at::empty({3}))); });
  EXPECT_EQ(seen.launched(), (Strings{"3 forward launches_test::kernel", "3 forward launches_test::around",
                                      "3 forward launches_test::around"}));
  const auto pushed = seen.pushed();
  EXPECT_TRUE(std::ranges::find(pushed, "3 forward aten::neg") != pushed.end());
}

TEST(Launches, OfTheSameOpAreDistinguishedByShapesAndNotByResults) {
  const auto mostly_zero = at::zeros({100}).index_put_({at::arange(0, 7)}, at::ones({7}));
  const auto seen = observed([&] {
    for (int n : {1, 2, 1, 2}) at::neg(at::empty({n}));
    at::nonzero(mostly_zero);
    at::nonzero(at::ones({100}));
  });
  std::map<std::string, int> pushes;  // by shapes
  for (const auto id : seen.recorder.ids) {
    const auto& owner = seen.owners[id];
    if (owner.op == "aten::neg") ++pushes[shapes_text(seen.ops.at(static_cast<std::size_t>(owner.bucket)).shapes)];
  }
  EXPECT_EQ(pushes, (std::map<std::string, int>{{"1", 2}, {"2", 2}}));
  const auto last = seen.owners.at(seen.recorder.ids.back());
  EXPECT_EQ(last.op, "aten::nonzero");
  EXPECT_EQ(last.bucket, -1) << "the same inputs had other results";
}

TEST(Launches, OfTheBackwardBelongToTheForwardsModule) {
  auto session = std::make_shared<Session>(5);
  const auto weight = at::ones({2, 3}).set_requires_grad(true);
  const auto other = at::ones({4, 2}).set_requires_grad(true);
  const auto seen = observed(session, new_recorder(), [&] {
    session->frames.enter(kLayer, &weight);
    const auto hidden = at::linear(at::ones({5, 3}), weight);
    session->frames.leave(&weight);
    session->frames.enter(kOther, &other);
    const auto loss = at::linear(hidden, other).sum();
    session->frames.leave(&other);
    std::thread([&] { loss.backward(); }).join();
  });
  EXPECT_TRUE(seen.recorder.balanced());
  const auto pushed = seen.pushed();
  EXPECT_EQ(std::ranges::count(pushed, "3 backward aten::mm"), 1);  // of the weight alone
  EXPECT_EQ(std::ranges::count(pushed, "4 backward aten::mm"), 2);
  EXPECT_GE(std::ranges::count(pushed, "3 backward "), 1) << "what a node launches outside of ops is its module's";
}

TEST(Launches, AreBalancedWhateverIsRaised) {
  auto session = std::make_shared<Session>(5);
  auto& recorder = new_recorder();
  const auto x = at::ones({3});
  const int never_left = 0;
  const auto seen = observed(session, recorder, [&] {
    session->frames.enter(kLayer, &x);
    session->frames.enter(kOther, &never_left);
    EXPECT_THROW(call("raises", x), std::domain_error);
    call("kernel", x);
    session->frames.leave(&x);
    call("kernel", x);
  });
  EXPECT_TRUE(recorder.balanced());
  EXPECT_EQ(seen.launched(), (Strings{"4 forward launches_test::kernel", "1 forward launches_test::kernel"}));

  EXPECT_THROW(observed(session, recorder,
                        [&] {
                          session->frames.enter(kLayer, &x);
                          call("raises", x);
                        }),
               std::domain_error);
  EXPECT_TRUE(recorder.balanced());
}

TEST(Launches, OfRegionsOptimizersAndDeclaredWork) {
  auto session = std::make_shared<Session>(5);
  const auto x = at::ones({3});
  const int step = 0;
  const int region = 0;
  const int work = 0;
  const auto seen = observed(session, new_recorder(), [&] {
    session->frames.enter_optimizer(&step);
    call("kernel", x);
    session->frames.leave(&step);
    open_region("part", &region);
    recorder()->launch();
    Work declared;
    declared.add_macs(7, DType::fp32);
    open_work("mine", declared, &work);
    call("kernel", x);  // a part of what was declared
    close_work(&work);
    recorder()->launch();
    close_region(&region);
    recorder()->launch();
  });
  EXPECT_TRUE(seen.recorder.balanced());
  EXPECT_EQ(seen.launched(),
            (Strings{"2 optimizer launches_test::kernel", "5 forward ", "5 forward mine", "5 forward ", "1 forward "}));
}

// A compiled step calls the backward, whose code is compiled as well: it has its own region, with its own owner.
TEST(Launches, OfACompiledBackwardInACompiledStep) {
  const auto seen = observed([] {
    at::RecordFunction step(at::RecordScope::FUNCTION);
    step.before("Torch-Compiled Region: 0/0");
    recorder()->launch();
    {
      at::RecordFunction node(at::RecordScope::BACKWARD_FUNCTION);
      node.before("CompiledFunctionBackward", /*sequence_nr=*/-1);
      recorder()->launch();
    }
    recorder()->launch();
  });
  EXPECT_TRUE(seen.recorder.balanced());
  const auto launched = seen.launched();
  ASSERT_EQ(launched.size(), 3);
  EXPECT_EQ(launched[0], "3 forward compiled region");
  EXPECT_TRUE(launched[1].ends_with("backward compiled region")) << launched[1];
  EXPECT_EQ(launched[2], launched[0]);
  const auto calls = std::ranges::count_if(seen.ops, [](const Pass::Op& op) { return op.op == kCompiledRegion; });
  EXPECT_EQ(calls, 2);
}

TEST(Launches, OfAScriptFollowItsModules) {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  torch::jit::Module inner("__torch__.Inner", unit, true);
  inner.define("def forward(self, x):\n    return torch.neg(x)\n");
  torch::jit::Module model("__torch__.Outer", unit, true);
  model.register_module("inner", inner);
  model.define("def forward(self, x):\n    return torch.exp(self.inner.forward(torch.sin(x)))\n");
  const auto tree = tree_of(model);
  auto session = std::make_shared<Session>(tree.modules.size());
  auto places = std::make_shared<ScriptPlaces>();
  places->add(model, kModel, tree.modules);
  session->setup.scripts = std::move(places);
  ASSERT_EQ(tree.modules.at(3).path, "inner");
  const auto seen = observed(
      session, new_recorder(),
      [&] {
        session->frames.enter(kModel, &model);
        model.forward({at::ones({3})});
        session->frames.leave(&model);
      },
      tree.modules);
  EXPECT_TRUE(seen.recorder.balanced());
  const auto pushed = seen.pushed();
  for (const auto* place : {"0 forward aten::sin", "3 forward aten::neg", "0 forward aten::exp"}) {
    EXPECT_EQ(std::ranges::count(pushed, place), 1) << place;
  }
  EXPECT_GE(std::ranges::count(pushed, "3 forward "), 1) << "the scope moved";
}

}  // namespace
}  // namespace roofprof::observe
