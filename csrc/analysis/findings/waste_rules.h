#pragma once
// The rules of findings on work that need not be done: each has a reason to hold, and a sentence.

#include "analysis/findings/finding_rules.h"

namespace roofprof {

// Values that are read on the host one by one.
std::optional<FindingReason> reads_on_host(const FindingCase& where);
Said say_reads_on_host(const FindingCase& where, const NamedFigures& figures);

// Time between ops.
std::optional<FindingReason> outside_ops_of_host(const FindingCase& where);
// Ops too short to pay for their start. They say what `outside_ops_of_host` does.
std::optional<FindingReason> short_calls(const FindingCase& where);
Said say_outside_ops(const FindingCase& where, const NamedFigures& figures);

std::optional<FindingReason> double_precision(const FindingCase& where);
Said say_double_precision(const FindingCase& where, const NamedFigures& figures);

// Data that depend on no input.
std::optional<FindingReason> made_in_forward(const FindingCase& where);
Said say_made_in_forward(const FindingCase& where, const NamedFigures& figures);

// Tensors that grow by joining them with one more part, again and again.
std::optional<FindingReason> joins_in_a_loop(const FindingCase& where);
Said say_joins_in_a_loop(const FindingCase& where, const NamedFigures& figures);

// Other copies in the same type.
std::optional<FindingReason> copies(const FindingCase& where);
Said say_copies(const FindingCase& where, const NamedFigures& figures);

// Channels of a convolution on a CPU that just exceed whole vectors.
std::optional<FindingReason> misaligned_channels(const FindingCase& where);
Said say_misaligned_channels(const FindingCase& where, const NamedFigures& figures);

}  // namespace roofprof
