#pragma once
// The rules of findings on the host's code and on work that need not be done.

#include "analysis/findings/finding_rules.h"

namespace roofprof {

Rule reads_on_host;        // values that are read on the host one by one
Rule outside_ops_of_host;  // time between ops
Rule short_calls;          // ops too short to pay for their start
Rule double_precision;     // fp64
Rule made_in_forward;      // data that depend on no input
Rule joins_in_a_loop;      // tensors that grow by joining them with one more part, again and again
Rule copies;               // other copies in the same type
Rule misaligned_channels;  // channels of a convolution on a CPU that just exceed whole vectors

// Returns whether the calls only move bytes, as the program asks for by name: copies, or joins in a loop.
bool moves_as_requested(const FindingCase& where);

}  // namespace roofprof
