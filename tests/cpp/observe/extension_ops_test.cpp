// Operators of an extension: what their kernels do in memory of their own is no op, whichever way they are registered.

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <numeric>
#include <set>
#include <string>

#include "observe/observed.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {
namespace {

using namespace testing;

// Kernels that add up rows, or double, in their own loops.
at::Tensor by_pointer(const at::Tensor& x) {
  auto out = at::empty({x.size(0)});
  const auto* in = x.const_data_ptr<float>();
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    out.data_ptr<float>()[row] = std::accumulate(in + row * x.size(1), in + (row + 1) * x.size(1), 0.0F);
  }
  return out;
}
at::Tensor in_place(at::Tensor x) {
  float* values = x.data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) values[i] *= 2;
  return x;
}
at::Tensor in_a_copy(const at::Tensor& x) { return in_place(x.clone()); }

// And those that dispatch all that they do.
at::Tensor composed(const at::Tensor& x) { return at::mul(at::sum(x, {1}), 2); }
at::Tensor calls_another(const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("extension_test::by_pointer", "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

TORCH_LIBRARY(extension_test, library) {
  library.def("by_pointer", &by_pointer);
  library.def("in_place", &in_place);
  library.def("composed", &composed);
  library.def("calls_another", &calls_another);
  library.def("of_the_cpu(Tensor x) -> Tensor");
  library.impl("of_the_cpu", c10::DispatchKey::CPU, &by_pointer);
  library.def("of_any_device(Tensor x) -> Tensor");
  library.impl("of_any_device", c10::DispatchKey::CompositeExplicitAutograd, &in_a_copy);
}

Pass pass_of(const std::string& name) {
  const auto x = at::rand({4, 8});
  return observe_in_model([&] {
    std::vector<c10::IValue> stack = {x};
    c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").callBoxed(stack);
  });
}

TEST(ExtensionOps, AreListedWhereNothingInsideComputed) {
  for (const char* name : {"by_pointer", "in_place", "of_the_cpu", "of_any_device"}) {
    const auto full = std::string("extension_test::") + name;
    const auto pass = pass_of(full);
    const auto* op = find(pass, full);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_FALSE(op->costed) << name;
    EXPECT_EQ(op->calls, 1) << name;
  }
}

TEST(ExtensionOps, AreLookedThroughWhereTheyDispatchWhatTheyDo) {
  const auto pass = pass_of("extension_test::composed");
  EXPECT_EQ(find(pass, "extension_test::composed"), nullptr);
  EXPECT_EQ(find(pass, "aten::mul")->work.flops(), 4);
  for (const auto& op : pass.ops) EXPECT_TRUE(op.costed) << op.op;
  const auto other = pass_of("extension_test::calls_another");
  EXPECT_EQ(find(other, "extension_test::calls_another"), nullptr);
  EXPECT_FALSE(find(other, "extension_test::by_pointer")->costed);
}

// What a later torch adds under another name must not be taken for an extension's.
TEST(ExtensionOps, AreNoneOfTorchsOwn) {
  const std::set<std::string> with_kernels = {
      "quantized",     "_quantized",     "mkldnn", "mkldnn_prepacked", "onednn",        "mkl",
      "sparse",        "static_runtime", "_test",  "xnnpack",          "prepacked",     "metal",
      "metal_prepack", "vulkan_prepack", "test",   "raising_test",     "extension_test"};
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto space = name.name.substr(0, name.name.find("::"));
    if (with_kernels.contains(space) || space.ends_with("_test")) continue;
    EXPECT_FALSE(is_of_extension(name.name)) << name.name;
  }
}

// ---- code that torch compiled beforehand

// torch opens these ranges around each call of an AOTInductor package.
TEST(Packages, AreListedWhateverTheyDispatch) {
  const auto x = at::rand({4, 8});
  for (const char* range : {"AOTIModelContainerRunner::run", "AOTIModelContainerRunner::boxed_run"}) {
    const auto pass = observe_in_model([&] {
      RECORD_USER_SCOPE(range);
      at::relu(x);  // what the package leaves to torch
      by_pointer(x);
    });
    const auto* package = find(pass, std::string(kCompiledPackage));
    ASSERT_NE(package, nullptr);
    EXPECT_FALSE(package->costed);
    EXPECT_EQ(package->calls, 1);
    EXPECT_EQ(find(pass, "aten::relu")->work.flops(), 4 * 8);
    EXPECT_FALSE(ran_compiled_code(pass)) << "no module of the model runs inside";
    EXPECT_TRUE(pass.regions.empty()) << "it is no region of the user's";
  }
  const auto raised = observe_in_model([&] {
    EXPECT_ANY_THROW({
      RECORD_USER_SCOPE("AOTIModelContainerRunner::run");
      at::mm(x, x);
    });
  });
  EXPECT_EQ(find(raised, std::string(kCompiledPackage)), nullptr);
}

}  // namespace
}  // namespace roofprof::observe
