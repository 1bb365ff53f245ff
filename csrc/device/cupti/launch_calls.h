#pragma once
// Recognizes by name the functions of CUDA that launch work.

#include <string_view>
#include <vector>

#include "device/cupti/api.h"

namespace roofprof::cupti {

// Returns whether a function of the runtime's or the driver's may launch a kernel, a copy or a fill: cuLaunchKernelEx,
// cudaMemcpyAsync_v3020, cudaGraphLaunch_v10000. Functions that new versions of CUDA add follow this pattern.
bool may_launch(std::string_view function);

// A function as CUPTI numbers it.
struct Call {
  CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_INVALID;  // the runtime's API or the driver's
  CUpti_CallbackId id = 0;
  bool launches = false;
};

// Returns all functions that the library can name; none where it cannot.
std::vector<Call> named_calls(const Api& api);

}  // namespace roofprof::cupti
