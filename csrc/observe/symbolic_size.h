#pragma once
// Sizes that are no plain integers: symbolic ones (FakeTensor with a ShapeEnv), and those of jagged nested tensors.

#include <c10/core/SymInt.h>

#include <cstdint>
#include <optional>

namespace roofprof::observe {

// The value that the size stands for in this run, told without a guard on it. Empty where there is none: an unbacked
// size, or a ragged one.
std::optional<std::int64_t> known_value(const c10::SymInt& size);

// How to ask a symbolic size of Python's for its hint, from the room that knows Python. Without one, it has none.
using HintReader = std::optional<std::int64_t> (*)(const c10::SymInt& size);
void set_hint_reader(HintReader reader);

}  // namespace roofprof::observe
