#pragma once
// Marks in your own code that a profile shows: calls of your own torch::nn modules, regions of code, and work that no
// operator does.
//
//   ROOFPROF_SCOPE(*this);                          // first line of a module's forward: what follows is its call;
//                                                   // pointers and holders of modules will do as well
//   ROOFPROF_SCOPE("postprocess");                  // a row until the end of the block, and a part of the run:
//                                                   // Report::within("postprocess") has all that ran in it
//
//   roofprof::Work work;
//   work.add_macs(pairs * in_channels * out_channels, roofprof::DType::fp32);
//   ROOFPROF_WORK("spconv", work);                  // counted here; ops until the end of the block are part of it
//
// Outside a profile they do next to nothing. A program or library that is compiled with -DROOFPROF_DISABLE has neither
// ROOFPROF_SCOPE nor ROOFPROF_WORK in it, and need not link roofprof.

#include <memory>
#include <string_view>

#include "roofprof/error.h"
#include "roofprof/work.h"

namespace torch::nn {
class Module;
}

namespace roofprof {

// The place of a mark in the source. If the same mark runs again inside the code that it marks, that is a further call.
struct SourcePlace {
  const char* file = nullptr;
  int line = 0;

  [[nodiscard]] static constexpr SourcePlace here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// Makes the compiler warn of Scope("name") without a variable: such a mark ends where it begins.
#define ROOFPROF_NEEDS_A_NAME_ nodiscard("without a variable it marks nothing: use ROOFPROF_SCOPE or ROOFPROF_WORK")

// While it lives, counts what this thread does in a separate row. Begin and end it on one thread; where a thread ends
// scopes in another order, the end of an outer one ends those inside it.
class [[ROOFPROF_NEEDS_A_NAME_]] Scope {
 public:
  // A region: a row of that name below the module or region that runs here. Throws InvalidArgument for a name of
  // more than 1,000 bytes.
  [[ROOFPROF_NEEDS_A_NAME_]] explicit Scope(std::string_view name);
  // A call of that module: its row, if the profiled model has it. A module that calls itself has a call each
  // time; further marks of a module inside its call (in what its forward calls) are part of that call.
  [[ROOFPROF_NEEDS_A_NAME_]] explicit Scope(const torch::nn::Module& module, SourcePlace place = SourcePlace::here())
      : Scope(&module, place) {}
  // These throw InvalidArgument if the module is null.
  [[ROOFPROF_NEEDS_A_NAME_]] explicit Scope(const torch::nn::Module* module, SourcePlace place = SourcePlace::here());
  template <class Module>
  [[ROOFPROF_NEEDS_A_NAME_]] explicit Scope(const std::shared_ptr<Module>& module,
                                            SourcePlace place = SourcePlace::here())
      : Scope(static_cast<const torch::nn::Module*>(module.get()), place) {}
  template <class Holder>  // of torch::nn: Linear, Sequential, AnyModule
    requires requires(const Holder& holder) {
      holder.is_empty();
      holder.ptr();
    }
  [[ROOFPROF_NEEDS_A_NAME_]] explicit Scope(const Holder& holder, SourcePlace place = SourcePlace::here())
      : Scope(holder.is_empty() ? nullptr : static_cast<const torch::nn::Module*>(&*holder.ptr()), place) {}
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const void* token_;  // identifies the scope when it ends; null if none was opened
  bool is_call_;
};

// Declares work that bypasses torch's dispatcher, such as an extension's own kernel: it counts as one call of an
// operator of that name in the module that runs here. While this lives, ops on this thread belong to it and are not
// counted. Begin and end it on one thread.
class [[ROOFPROF_NEEDS_A_NAME_]] DeclaredWork {
 public:
  // Throws InvalidArgument for negative counts, for more causal MACs than dense ones, and for a name of more than
  // 1,000 bytes.
  [[ROOFPROF_NEEDS_A_NAME_]] DeclaredWork(std::string_view name, const Work& work);
  ~DeclaredWork();
  DeclaredWork(const DeclaredWork&) = delete;
  DeclaredWork& operator=(const DeclaredWork&) = delete;
};

}  // namespace roofprof

// Several may be on one line, and in any namespace. (With parentheses, Scope x(std::string(name)) declares a
// function.)
#define ROOFPROF_JOIN_(a, b) a##b
#define ROOFPROF_JOIN(a, b) ROOFPROF_JOIN_(a, b)
#ifdef ROOFPROF_DISABLE  // their arguments are compiled, and never evaluated
#define ROOFPROF_SCOPE(name_or_module) static_cast<void>(noexcept(::roofprof::Scope{name_or_module}))
#define ROOFPROF_WORK(name, work) static_cast<void>(noexcept(::roofprof::DeclaredWork{name, work}))
#else
#define ROOFPROF_SCOPE(name_or_module) \
  const ::roofprof::Scope ROOFPROF_JOIN(roofprof_scope_, __COUNTER__) { name_or_module }
#define ROOFPROF_WORK(name, work) \
  const ::roofprof::DeclaredWork ROOFPROF_JOIN(roofprof_work_, __COUNTER__) { name, work }
#endif
