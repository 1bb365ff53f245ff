// Names as traces have them beside those that ncu prints of the same kernels.
#include "ncu/kernel_names.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace roofprof::ncu {
namespace {

TEST(KernelNames, TwoDemanglersGiveOneForm) {
  const std::vector<std::pair<std::string, std::string>> same = {
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> "
       ">(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)",
       "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, at::detail::Array<char "
       "*, (int)1>>(int, T2, T3)"},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 5, false, true>(float*, float const*, "
       "int, int, int, bool const*, int, bool)",
       "void <unnamed>::softmax_warp_forward<float, float, float, (int)5, (bool)0, (bool)1>(T2 *, const T1 *, int, "
       "int, "
       "int, const bool *, int, bool)"},
      {"void splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, "
       "false>(cublasSplitKParams<float>)",
       "void splitKreduce_kernel<(int)32, (int)16, int, float, float, float, float, (bool)1, (bool)0, "
       "(bool)0>(cublasSplitKParams<T6>, const T4 *)"},
      {"void f<-1, 4ul, std::array<char*, 2ul>, (at::Kind)3>()",
       "void f<(int)-1, (unsigned long)4, std::array<char *, (unsigned long)2>, (at::Kind)3>()"},
      {"void k<g(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#2}>(int)",
       "void k<g(at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::[lambda(float) (instance "
       "2)]>(int)"},
      {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
      {"triton_poi_fused_add_0", "triton_poi_fused_add_0"}};
  for (const auto& [traced, printed] : same) {
    EXPECT_EQ(plain_name(traced), plain_name(printed));
    EXPECT_EQ(function_name(traced), function_name(printed));
  }
}

TEST(KernelNames, OtherKernelsStayApart) {
  EXPECT_NE(plain_name("void f<4, float>(int)"), plain_name("void f<(int)2, float>(int)"));
  EXPECT_NE(plain_name("void f<(bool)1>(int)"), plain_name("void f<(bool)0>(int)"));
  EXPECT_NE(plain_name("void f<float>(int)"), plain_name("void f<double>(int)"));
  EXPECT_NE(plain_name("void f<{lambda()#1}>()"), plain_name("void f<[lambda() (instance 2)]>()"));
  EXPECT_NE(plain_name("sgemm_128x64"), plain_name("sgemm_64x128"));
}

TEST(KernelNames, AreThoseOfFunctions) {
  EXPECT_EQ(function_name("void at::native::vectorized_elementwise_kernel<(int)4, at::F<float>>(int, T2)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(function_name("void (anonymous namespace)::softmax_warp_forward<float>(float*)"), "softmax_warp_forward");
  EXPECT_EQ(function_name("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(function_name("vector_add(float const*, float*)"), "vector_add");
}

TEST(KernelNames, MangledOnesAreDemangled) {
  EXPECT_EQ(plain_name("_Z10vector_addPKfPf"), plain_name("vector_add(float const*, float*)"));
  EXPECT_EQ(plain_name("_ZN2at6native1kILi4EfEEvi"), plain_name("void at::native::k<(int)4, float>(int)"));
  EXPECT_EQ(plain_name("_Z"), "_Z");
}

TEST(KernelNames, AnyTextIsTaken) {
  for (const std::string text : {"", "(", ")", "<", ">", "a<(", "a<(int", "a<(int)", "[lambda(", "{lambda()#", "a<4u",
                                 "a<,,", "void ", "::", "a<(bool)>", "a->b", "operator<<(int)"}) {
    plain_name(text);
    function_name(text);
  }
}

}  // namespace
}  // namespace roofprof::ncu
