// The public marks of user code.

#include "roofprof/scope.h"

#include <stdexcept>
#include <string>

#include "observe/declared_work.h"
#include "observe/regions.h"

namespace roofprof {

Scope::Scope(std::string_view name) { observe::open_region(name, this); }
Scope::~Scope() { observe::close_region(this); }

DeclaredWork::DeclaredWork(std::string_view name, const Work& work) {
  const bool negative = work.has_negative_count();
  if (negative || work.causal_macs > work.macs) {
    throw std::invalid_argument("roofprof: the work declared as '" + std::string(name) + "' " +
                                (negative ? "has a negative count" : "has more causal MACs than dense ones"));
  }
  if (observe::declare_work(name, work)) observe::open_work(name, work, this);
}
DeclaredWork::~DeclaredWork() { observe::close_work(this); }

}  // namespace roofprof
