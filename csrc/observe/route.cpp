#include "observe/route.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace roofprof::observe {

Route RouteReader::route(const OpInfo& info) {
  const auto local = c10::impl::tls_local_dispatch_key_set();
  auto active = ((keys_ | local.included_) - local.excluded_) & info.wrapped_by;
  if (active.has(c10::DispatchKey::Python)) {
    active = active.remove(c10::DispatchKey::Python);
    if (local.included_.has(c10::DispatchKey::Python)) read_modes();
    route_.wrapped = subclass_ || modes_;
  }
  route_.by_mode = route_.wrapped && !subclass_ && active.empty();
  route_.wrapped = route_.wrapped || !active.empty();
  return route_;
}

void RouteReader::read_modes() {
  using Modes = c10::impl::TorchDispatchModeTLS;
  const bool fake = Modes::get_mode(c10::impl::TorchDispatchModeKey::FAKE).has_value();
  modes_ = Modes::stack_len() > (fake ? 1 : 0);
  route_.fake = route_.fake || fake;
}

}  // namespace roofprof::observe
