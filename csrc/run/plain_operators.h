#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace roofprof::run {

// Makes operators that are called while this lives torch's own, whatever modes and transforms the caller is in: none of
// the user's code runs. In inference mode every tensor may be written, and only writes to tensors that have a version
// raise one.
class PlainOperators {
  c10::InferenceMode inference_;
  c10::impl::ExcludeDispatchKeyGuard modes_{c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::PythonDispatcher,
       c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
       c10::DispatchKey::FuncTorchDynamicLayerBackMode})};
};

}  // namespace roofprof::run
