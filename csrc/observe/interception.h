#pragma once
// Finds out if this program intercepts calls of torch::nn modules, and of which classes.
//
// They are seen if libroofprof_nn, which defines libtorch's forward functions again, comes before libtorch in the
// program's link order. If it comes later, nothing fails and nothing is seen: so one of the calls is tried.

#include <span>
#include <typeinfo>

namespace roofprof::observe {

// Registers the classes whose calls are intercepted; libroofprof_nn calls this when it is loaded.
void register_intercepted(std::span<const std::type_info* const> classes);

// Returns whether an intercepted call arrives here; it tries one call, once.
bool interception_works();

// Returns whether calls of modules of exactly that class are intercepted.
bool is_intercepted(const std::type_info& type);

// Notes a call of a module that no profile knows: it may be the trial call.
void note_unknown_call(const void* module);

}  // namespace roofprof::observe
