#pragma once
// Counts the exceptions in flight on a thread, without a call.

#include <cxxabi.h>

namespace roofprof::observe {

// Made on the thread that asks. std::uncaught_exceptions() finds the thread's variable again in each call.
class InFlight {
 public:
  InFlight() : globals_(reinterpret_cast<const Globals*>(abi::__cxa_get_globals())) {}

  unsigned count() const { return globals_->uncaught; }

 private:
  // __cxa_eh_globals of the Itanium C++ ABI (2.2.2), which compilers and libraries share, in any version.
  struct Globals {
    void* caught;
    unsigned int uncaught;
  };

  const Globals* globals_;
};

}  // namespace roofprof::observe
