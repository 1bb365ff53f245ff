#pragma once
// The graphs that traces of captures hold, and which of them a replay ran.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kineto/counted_ops.h"
#include "kineto/graph_sequences.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

// A trace that was recorded while graphs were captured.
struct Capture {
  std::string name;  // of its file, for notes
  Trace trace;
  std::int64_t batch = 0;  // the number of tokens that its graphs are for; 0: not known
  bool given = false;      // the user named it; else it was found next to the trace
};

// The name of a trace's own captures.
inline constexpr std::string_view kOwnCapture = "the trace itself";

// Takes the graphs that the trace itself captured and replayed out of it: their ops ran nothing when they were
// captured.
std::vector<Capture> own_captures(Trace& trace);

// Returns whether a call of CUDA's or HIP's replays a graph.
bool launches_graph(std::string_view call);

// Returns the batch size that a range of vLLM's or SGLang's names; 0: none. "execute_32_context_0(...)_generation_32",
// "execute_context_0(0)_generation_32(32)" (tokens), "step[DECODE bs=32]", "capture_32_FULL".
std::int64_t batch_of_range(std::string_view range);

// Returns the batch sizes of a trace's replays, each once, as the ranges around their launches say it; 0: they do not.
std::vector<std::int64_t> batches_of_replays(const Trace& trace);

// One graph of a capture.
struct CapturedGraph {
  std::size_t capture = 0;
  std::vector<std::int32_t> launches;  // events of the capture's host, in order
  Sequence symbols;                    // of the launches
  std::vector<std::int32_t> around;    // modules that were open when the capture began, outermost first
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t batch = 0;
  bool named = true;
};

// The match of a replay's records and a graph's launches.
struct Fit {
  std::vector<std::int32_t> launch_of;  // by record: index into launches, or kNone
  std::int64_t edits = 0;               // records and launches that match nothing
  std::int64_t moved = 0;               // records that ran in another order
  std::string difference;               // why it is another graph; empty: it is this one
};

class CapturedGraphs {
 public:
  // Throws TraceError if a capture that the user gave has no graph.
  explicit CapturedGraphs(std::vector<Capture> captures);

  const std::vector<Capture>& captures() const { return captures_; }
  const Trace& trace(std::size_t capture) const { return captures_[capture].trace; }
  const HostTree& tree(std::size_t capture) const { return trees_[capture]; }
  const std::vector<CapturedGraph>& all() const { return graphs_; }

  // Returns the number of a kernel's name in sequences.
  std::int32_t symbol_of(const std::string& name);
  Fit fit_of(const Sequence& records, const CapturedGraph& graph) const;
  // Returns the calls of ops that launched a graph's kernels.
  std::string calls_of(const CapturedGraph& graph) const;

 private:
  void add_graphs(std::size_t capture);
  std::string shown_symbol(std::int32_t symbol) const;
  std::string difference(const Sequence& records, const CapturedGraph& graph) const;
  std::int32_t op_around(const CapturedGraph& graph, std::size_t launch) const;
  std::int64_t doubts(const Sequence& records, const CapturedGraph& graph, const Fit& fit) const;

  std::vector<Capture> captures_;
  std::vector<HostTree> trees_;  // of the captures
  std::vector<CapturedGraph> graphs_;
  std::unordered_map<std::string, std::int32_t> symbols_;
};

}  // namespace roofprof::kineto
