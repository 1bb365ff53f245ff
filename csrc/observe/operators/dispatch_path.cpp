#include "observe/operators/dispatch_path.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace roofprof::observe {

DispatchPath DispatchPathReader::dispatch_path(const OpInfo& info) {
  const auto local = c10::impl::tls_local_dispatch_key_set();
  auto active = ((keys_ | local.included_) - local.excluded_) & info.wrapped_by;
  if (active.has(c10::DispatchKey::Python)) {
    active = active.remove(c10::DispatchKey::Python);
    if (local.included_.has(c10::DispatchKey::Python)) read_modes();
    path_.wrapped = subclass_ || modes_;
  }
  path_.by_mode = path_.wrapped && !subclass_ && active.empty();
  path_.wrapped = path_.wrapped || !active.empty();
  return path_;
}

void DispatchPathReader::read_modes() {
  using Modes = c10::impl::TorchDispatchModeTLS;
  const bool fake = Modes::get_mode(c10::impl::TorchDispatchModeKey::FAKE).has_value();
  modes_ = Modes::stack_len() > (fake ? 1 : 0);
  path_.fake = path_.fake || fake;
}

}  // namespace roofprof::observe
