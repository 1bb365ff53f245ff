// Intercepts libtorch's torch::nn calls: this library comes first in a program's link order, defines the same member
// functions, opens the module's scope, and calls libtorch's. So a C++ model is observed without being changed, as
// torch::nn has no hooks. Also calls inside libtorch (a Transformer's layers) come through here. So do the steps of
// torch::optim.

#include <dlfcn.h>
#include <pthread.h>
#include <torch/nn/modules.h>
#include <torch/optim.h>

#include <array>
#include <cstring>
#include <string>
#include <typeinfo>

#include "observe/interception.h"
#include "observe/module_calls.h"
#include "observe/own_calls.h"
#include "roofprof/detail/call.h"

namespace roofprof::interpose {
namespace {

// The function of that (mangled) name that would run without this library, as a pointer to a member.
template <class Method>
Method next_of(const std::string& name) {
  void* next = dlsym(RTLD_NEXT, name.c_str());
  if (next == nullptr) {
    throw RuntimeError("roofprof: libroofprof_nn found no " + name + " behind it; link it before libtorch");
  }
  // A pointer to a function that is not virtual holds the address, and what to add to `this` (Itanium ABI).
  const std::array<void*, 2> words = {next, nullptr};
  Method method;
  static_assert(sizeof(words) == sizeof(method));
  std::memcpy(&method, words.data(), sizeof(words));  // NOLINT(bugprone-multi-level-implicit-pointer-conversion)
  return method;
}

// The name of a member function that is not virtual.
template <class Method>
std::string name_of(Method method) {
  void* address = nullptr;
  std::memcpy(&address, &method, sizeof(address));  // NOLINT(bugprone-multi-level-implicit-pointer-conversion)
  Dl_info symbol{};
  if (dladdr(address, &symbol) == 0 || symbol.dli_sname == nullptr) {
    throw RuntimeError("roofprof: an intercepted function of torch::nn has no name; was the library stripped?");
  }
  return symbol.dli_sname;
}

template <class... Values>
observe::Tensors tensors_in(const Values&... values) {
  observe::Tensors found;
  const auto add = [&](const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const torch::nn::ASMoutput&>) {
      found.push_back(&value.output);
    } else {
      detail::collect_tensors(value, found);
    }
  };
  (add(values), ...);
  return found;
}

// One call of `method` on a module, which ends with this object.
template <auto method>
class Call;

template <class Module, class Result, class... Arguments, Result (Module::*method)(Arguments...)>
class Call<method> {
 public:
  explicit Call(Module& module) : module_(module), scope_(&static_cast<const torch::nn::Module&>(module)) {}
  Result operator()(Arguments... arguments) {
    static const auto real = next_of<Result (Module::*)(Arguments...)>(name_of(method));
    if (!scope_.tells()) return (module_.*real)(std::forward<Arguments>(arguments)...);
    scope_.takes(tensors_in(arguments...));
    Result result = (module_.*real)(std::forward<Arguments>(arguments)...);
    scope_.returns(tensors_in(result));
    return result;
  }

 private:
  Module& module_;
  observe::ModuleCall scope_;
};

// A virtual function's name is put together from that of its class: N5torch2nn15BatchNorm1dImplE.
template <class Class>
std::string name_in(const std::string& function) {
  std::string name = typeid(Class).name();
  name.pop_back();
  return "_Z" + name + function;
}

}  // namespace
}  // namespace roofprof::interpose

namespace torch::nn {

// Names for the results and parameters in calls.def.
using utils::rnn::PackedSequence;
using TwoTensors = std::tuple<Tensor, Tensor>;
using TensorAndState = std::tuple<Tensor, TwoTensors>;
using PackedAndTensor = std::tuple<PackedSequence, Tensor>;
using PackedAndState = std::tuple<PackedSequence, TwoTensors>;
using MaybeState = std::optional<TwoTensors>;
using MaybeSizes = std::optional<at::IntArrayRef>;
using MaybeVector = std::optional<std::vector<std::int64_t>>;

// Parameters and arguments from a list of types.
#define PARAMETERS_1(A) A a
#define PARAMETERS_2(A, B) A a, B b
#define PARAMETERS_3(A, B, C) A a, B b, C c
#define PARAMETERS_4(A, B, C, D) A a, B b, C c, D d
#define PARAMETERS_5(A, B, C, D, E) A a, B b, C c, D d, E e
#define PARAMETERS_6(A, B, C, D, E, F) A a, B b, C c, D d, E e, F f
#define PARAMETERS_7(A, B, C, D, E, F, G) A a, B b, C c, D d, E e, F f, G g
#define PARAMETERS_8(A, B, C, D, E, F, G, H) A a, B b, C c, D d, E e, F f, G g, H h
#define PASS(name) static_cast<decltype(name)&&>(name)
#define ARGUMENTS_1 PASS(a)
#define ARGUMENTS_2 ARGUMENTS_1, PASS(b)
#define ARGUMENTS_3 ARGUMENTS_2, PASS(c)
#define ARGUMENTS_4 ARGUMENTS_3, PASS(d)
#define ARGUMENTS_5 ARGUMENTS_4, PASS(e)
#define ARGUMENTS_6 ARGUMENTS_5, PASS(f)
#define ARGUMENTS_7 ARGUMENTS_6, PASS(g)
#define ARGUMENTS_8 ARGUMENTS_7, PASS(h)
#define EIGHTH(A, B, C, D, E, F, G, H, count, ...) count
#define COUNT(...) EIGHTH(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define PARAMETERS(...) JOIN(PARAMETERS_, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define ARGUMENTS(...) JOIN(ARGUMENTS_, COUNT(__VA_ARGS__))

#define ROOFPROF_CALL(Class, function, Result, ...)                                                         \
  Result Class::function(PARAMETERS(__VA_ARGS__)) {                                                         \
    return roofprof::interpose::Call<static_cast<Result (Class::*)(__VA_ARGS__)>(&Class::function)>{*this}( \
        ARGUMENTS(__VA_ARGS__));                                                                            \
  }
#define ROOFPROF_PAD(Template, dimensions, Class)                                                               \
  template <>                                                                                                   \
  Tensor Template<dimensions, Class>::forward(const Tensor& input) {                                            \
    return roofprof::interpose::Call<&Template<dimensions, Class>::forward>{static_cast<Class&>(*this)}(input); \
  }
// Batch and instance normalisation have their forward in a header. It begins with this virtual function and ends with
// the operator, or soon after.
#define ROOFPROF_NORM(Class)                                                               \
  void Class::_check_input_dim(const Tensor& input) {                                      \
    static const auto real = roofprof::interpose::next_of<void (Class::*)(const Tensor&)>( \
        roofprof::interpose::name_in<Class>("16_check_input_dimERKN2at6TensorE"));         \
    (this->*real)(input);                                                                  \
    roofprof::observe::norm_begins(&static_cast<const torch::nn::Module&>(*this), input);  \
  }

#define ROOFPROF_STEP(Class)

#include "run/interpose/calls.def"

#undef ROOFPROF_CALL
#undef ROOFPROF_PAD
#undef ROOFPROF_NORM
#undef ROOFPROF_STEP

}  // namespace torch::nn

namespace torch::optim {

// A step's closure runs the model: that is not the optimizer's work.
#define ROOFPROF_CALL(...)
#define ROOFPROF_PAD(...)
#define ROOFPROF_NORM(...)
#define ROOFPROF_STEP(Class)                                                               \
  Tensor Class::step(LossClosure closure) {                                                \
    static const auto real = roofprof::interpose::next_of<Tensor (Class::*)(LossClosure)>( \
        roofprof::interpose::name_in<Class>("4stepESt8functionIFN2at6TensorEvEE"));        \
    using roofprof::observe::StepCall;                                                     \
    const StepCall step(StepCall::Of::optimizer, this);                                    \
    if (!closure) return (this->*real)({});                                                \
    return (this->*real)([&] {                                                             \
      const StepCall inside(StepCall::Of::closure, &closure);                              \
      return closure();                                                                    \
    });                                                                                    \
  }

#include "run/interpose/calls.def"

#undef ROOFPROF_CALL
#undef ROOFPROF_PAD
#undef ROOFPROF_NORM
#undef ROOFPROF_STEP

}  // namespace torch::optim

namespace roofprof::interpose {
namespace {

using namespace torch::nn;

// The same list again: the classes whose calls are seen.
#define ROOFPROF_CALL(Class, ...) &typeid(Class),
#define ROOFPROF_PAD(Template, dimensions, Class) &typeid(Class),
#define ROOFPROF_NORM(Class) &typeid(Class),
#define ROOFPROF_STEP(Class)
const std::type_info* const kClasses[] = {
#include "run/interpose/calls.def"
};

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): memory is all that can be missing, and then nothing runs.
[[maybe_unused]] const bool registered = (observe::register_intercepted(kClasses), true);

}  // namespace
}  // namespace roofprof::interpose

// Threads that a run's call starts work for that run. The program's calls of pthread_create come through here, as those
// of torch::nn do, and go on to the system's; so do std::thread's and std::async's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  roofprof::observe::ThreadStart start;
  const int failed = create(thread, attributes, function, argument);
  if (failed == 0) start.started(*thread);
  return failed;
}
