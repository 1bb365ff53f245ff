#include "device/cupti/launch_calls.h"

#include <algorithm>
#include <array>

namespace roofprof::cupti {

bool may_launch(std::string_view function) {
  constexpr std::array<std::string_view, 3> kWords = {"Launch", "Memcpy", "Memset"};
  return std::ranges::any_of(kWords, [&](auto word) { return function.find(word) != std::string_view::npos; });
}

std::vector<Call> named_calls(const Api& api) {
  std::vector<Call> calls;
  if (api.cuptiGetCallbackName == nullptr) return calls;
  for (const auto domain : {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API}) {
    const char* name = nullptr;
    for (CUpti_CallbackId id = 1; api.cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS; ++id) {
      calls.push_back({domain, id, name != nullptr && may_launch(name)});
    }
  }
  return calls;
}

}  // namespace roofprof::cupti
