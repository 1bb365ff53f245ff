#pragma once
// Steps of serving engines: what their annotations say of the requests, and what attention's cost needs of that.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"
#include "kineto/counted_ops.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

// One step of vLLM's, SGLang's or ATOM's. A request has queries (its new tokens) and keys (all its tokens so far, the
// new ones too). Sums are over requests; they are lower limits unless `exact`.
struct ServingStep {
  std::string_view kind;  // "prefill", "decode", "mixed"
  std::int64_t requests = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t pairs = 0;         // queries x keys of each request
  std::int64_t causal_pairs = 0;  // those of them that a causal mask leaves: a new token sees itself and what is before
  bool exact = false;
};

// Reads a range's name, as in
//   execute_34_context_2(sq32sk40sqsq512sqsk640)_generation_2(sq2sk90sqsq2sqsk90)   vLLM, SGLang: exact
//   execute_context_2(32)_generation_2(2)                                          vLLM: requests and tokens alone
//   step[EXTEND bs=2 toks=32], step[DECODE bs=2 g_sq=2 g_sk=90 g_sqsq=2 g_sqsk=90]   SGLang
//   prefill[bs=2 tok=32 sqsq=512 sqsk=640 sk=40], decode[bs=2 tok=2]                 ATOM
// Returns an empty value for other names, and for a step without requests.
std::optional<ServingStep> serving_step(std::string_view range);

// Says what the trace's steps were.
struct ServingSteps {
  std::vector<TokenCalls> tokens;     // by kind of step
  std::string inexact;                // an annotation that does not say how long contexts are; empty: all do
  std::int64_t calls_of_inexact = 0;  // of attention, in such steps
  std::int64_t windowed = 0;          // calls of attention whose kernels' names say that they look at a part alone
  std::int64_t of_whole_context = 0;  // those that count the whole context
};

// Gives the calls of attention the facts of the step that they ran in, and the element size of the cache that keys and
// values were last written to. These calls become distinct ones where steps differ.
ServingSteps find_serving_steps(Trace& trace, const HostTree& tree);

// Adds notes on what the costs of attention lack.
void note_serving(const ServingSteps& steps, std::vector<Note>& notes);

}  // namespace roofprof::kineto
