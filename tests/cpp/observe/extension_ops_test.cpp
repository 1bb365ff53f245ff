// Operators of an extension: what their kernels do in memory of their own is no op, whichever way they are registered.

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <functional>
#include <set>
#include <string>

#include "observe/observed.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {
namespace {

using namespace testing;

// ---- kernels that add up rows in their own loops

void add_up(const float* in, std::int64_t rows, std::int64_t columns, float* out) {
  for (std::int64_t row = 0; row < rows; ++row) {
    out[row] = 0;
    for (std::int64_t column = 0; column < columns; ++column) out[row] += in[row * columns + column];
  }
}

at::Tensor by_accessor(const at::Tensor& x) {
  auto out = at::zeros({x.size(0)});
  const auto in = x.accessor<float, 2>();
  auto sums = out.accessor<float, 1>();
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    for (std::int64_t column = 0; column < x.size(1); ++column) sums[row] += in[row][column];
  }
  return out;
}

at::Tensor by_pointer(const at::Tensor& x) {
  auto out = at::empty({x.size(0)});
  add_up(x.const_data_ptr<float>(), x.size(0), x.size(1), out.data_ptr<float>());
  return out;
}

at::Tensor from_blob(const at::Tensor& x) {
  std::vector<float> sums(static_cast<std::size_t>(x.size(0)));
  add_up(x.const_data_ptr<float>(), x.size(0), x.size(1), sums.data());
  return at::from_blob(sums.data(), {x.size(0)}).clone();
}

at::Tensor in_place(at::Tensor x) {
  float* values = x.data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) values[i] *= 2;
  return x;
}

at::Tensor in_a_copy(const at::Tensor& x) { return in_place(x.clone()); }

// ---- and those that dispatch all that they do

at::Tensor composed(const at::Tensor& x) { return at::mul(at::sum(x, {1}), 2); }
std::int64_t version() { return 3; }
at::Tensor calls_another(const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("extension_test::by_pointer", "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

TORCH_LIBRARY(extension_test, library) {
  library.def("by_accessor", &by_accessor);
  library.def("by_pointer", &by_pointer);
  library.def("from_blob", &from_blob);
  library.def("in_place", &in_place);
  library.def("in_a_copy", &in_a_copy);
  library.def("composed", &composed);
  library.def("calls_another", &calls_another);
  library.def("version", &version);
  library.def("of_the_cpu(Tensor x) -> Tensor");
  library.def("of_the_cpu_in_place(Tensor(a!) x) -> Tensor(a!)");
  library.def("of_any_device(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(extension_test, CPU, library) {
  library.impl("of_the_cpu", &by_accessor);
  library.impl("of_the_cpu_in_place", &in_place);
}
TORCH_LIBRARY_IMPL(extension_test, CompositeExplicitAutograd, library) { library.impl("of_any_device", &from_blob); }

Pass pass_of(const std::string& name) {
  const auto x = at::rand({4, 8});
  return observe_in_model([&] {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
    std::vector<c10::IValue> stack;
    if (!op.schema().arguments().empty()) stack.emplace_back(x);
    op.callBoxed(stack);
  });
}

TEST(ExtensionOps, AreListedWhereNothingInsideComputed) {
  for (const char* name : {"by_accessor", "by_pointer", "from_blob", "in_place", "in_a_copy", "of_the_cpu",
                           "of_the_cpu_in_place", "of_any_device"}) {
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
}

TEST(ExtensionOps, AreNamedOnce) {
  const auto pass = pass_of("extension_test::calls_another");
  EXPECT_EQ(find(pass, "extension_test::calls_another"), nullptr);
  EXPECT_FALSE(find(pass, "extension_test::by_pointer")->costed);
}

TEST(ExtensionOps, DoNoWorkWithoutTensors) { EXPECT_TRUE(pass_of("extension_test::version").ops.empty()); }

// In more shapes than are told apart: buffers do not become work for that.
TEST(ExtensionOps, AreListedInManyShapesToo) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("extension_test::by_pointer", "")
                      .typed<at::Tensor(const at::Tensor&)>();
  const auto pass = observe_in_model([&] {
    for (std::int64_t rows = 1; rows <= 100; ++rows) op.call(at::rand({rows, 2}));
  });
  EXPECT_EQ(find(pass, "extension_test::by_pointer")->calls, 100);
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

// torch opens this range around each call of an AOTInductor package.
at::Tensor call_package(const at::Tensor& x, const char* range) {
  RECORD_USER_SCOPE(range);
  at::relu(x);  // what the package leaves to torch
  return by_pointer(x);
}

TEST(Packages, AreListedWhateverTheyDispatch) {
  const auto x = at::rand({4, 8});
  for (const char* range : {"AOTIModelContainerRunner::run", "AOTIModelContainerRunner::boxed_run"}) {
    const auto pass = observe_in_model([&] { call_package(x, range); });
    const auto* package = find(pass, std::string(kCompiledPackage));
    ASSERT_NE(package, nullptr);
    EXPECT_FALSE(package->costed);
    EXPECT_EQ(package->calls, 1);
    EXPECT_EQ(find(pass, "aten::relu")->work.flops(), 4 * 8);
    EXPECT_FALSE(ran_compiled_code(pass)) << "no module of the model runs inside";
    EXPECT_TRUE(pass.regions.empty()) << "it is no region of the user's";
  }
}

TEST(Packages, ThatRaiseAreNotListed) {
  const auto pass = observe_in_model([&] {
    EXPECT_ANY_THROW({
      RECORD_USER_SCOPE("AOTIModelContainerRunner::run");
      at::mm(at::ones({2, 3}), at::ones({2, 3}));
    });
  });
  EXPECT_EQ(find(pass, std::string(kCompiledPackage)), nullptr);
}

TEST(Packages, GiveNoRegionWhenTheyAreLoaded) {
  const auto pass =
      observe_in_model([&] { call_package(at::rand({4, 8}), "AOTIModelContainerRunner::swap_constant_buffer"); });
  EXPECT_TRUE(pass.regions.empty());
  EXPECT_EQ(find(pass, std::string(kCompiledPackage)), nullptr);
}

}  // namespace
}  // namespace roofprof::observe
