#pragma once
// Reads sizes that are not plain integers: symbolic ones (FakeTensor with a ShapeEnv), and those of jagged nested
// tensors.

#include <c10/core/SymInt.h>

#include <cstdint>
#include <optional>

namespace roofprof::observe {

// The value of the size in this run, read without adding a guard. Empty if there is none: an unbacked size, or a ragged
// one.
std::optional<std::int64_t> known_value(const c10::SymInt& size);

// Sets how to ask a symbolic size of Python's for its hint; the room that knows Python calls it. Until then there are
// no hints.
using HintReader = std::optional<std::int64_t> (*)(const c10::SymInt& size);
void set_hint_reader(HintReader reader);

}  // namespace roofprof::observe
