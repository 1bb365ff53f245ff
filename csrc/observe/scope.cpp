// The public marks of user code.

#include "roofprof/scope.h"

#include <string>

#include "observe/declared_work.h"
#include "observe/module_calls.h"
#include "observe/own_calls.h"
#include "observe/regions.h"

namespace roofprof {

Scope::Scope(std::string_view name) : token_(this), is_call_(false) {
  observe::check_name(name);
  observe::open_region(name, this);
}
Scope::Scope(const torch::nn::Module* module, SourcePlace place) : token_(nullptr), is_call_(true) {
  if (module == nullptr) throw InvalidArgument("roofprof: ROOFPROF_SCOPE was given a module that is null or empty");
  const observe::CallMark mark{place.file, place.line};
  if (observe::call_begins(module, mark)) token_ = module;
  observe::announce_call(module, mark);
}
Scope::~Scope() {
  if (is_call_) observe::announced_call_ends();
  if (token_ != nullptr) observe::close_region(token_);
}

DeclaredWork::DeclaredWork(std::string_view name, const Work& work) {
  observe::check_name(name);
  const bool negative = work.has_negative_count();
  if (negative || work.causal_macs > work.macs) {
    throw InvalidArgument("roofprof: the work declared as '" + std::string(name) + "' " +
                          (negative ? "has a negative count" : "has more causal MACs than dense ones"));
  }
  if (observe::declare_work(name, work)) observe::open_work(name, work, this);
}
DeclaredWork::~DeclaredWork() { observe::close_work(this); }

}  // namespace roofprof
