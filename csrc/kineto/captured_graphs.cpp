#include "kineto/captured_graphs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "core/phrases.h"
#include "kineto/json_text.h"
#include "kineto/recorded_arguments.h"
#include "kineto/trace_reader.h"

namespace roofprof::kineto {
namespace {

// A capture is that of the replay if all but one in ten of its kernels are found and half of the replay's, and all but
// one in fifty of them do not stand where the other has another kernel.
constexpr std::int64_t kMissingOneIn = 10;
constexpr std::int64_t kOtherOneIn = 50;
// Ranges that may lie between a launch and the range that names the batch.
constexpr int kRangesAround = 16;

bool begins_capture(std::string_view call) { return call.find("StreamBeginCapture") != call.npos; }
bool ends_capture(std::string_view call) { return call.find("StreamEndCapture") != call.npos; }
bool launches_kernel(std::string_view call) {
  return call.find("Launch") != call.npos && call.find("Kernel") != call.npos;
}
bool copies_memory(std::string_view call) {
  return call.find("Memcpy") != call.npos && call.find("Async") != call.npos;
}
bool fills_memory(std::string_view call) { return call.find("Memset") != call.npos && call.find("Async") != call.npos; }

std::optional<std::int64_t> digits_behind(std::string_view text, std::string_view key) {
  const auto found = text.find(key);
  if (found == text.npos) return std::nullopt;
  auto digits = text.substr(found + key.size());
  digits = digits.substr(0, std::min(digits.find_first_not_of("0123456789"), digits.size()));
  return digits.empty() ? std::nullopt : integer(digits);
}

}  // namespace

std::int64_t batch_of_range(std::string_view range) {
  constexpr std::string_view kTokens = "execute_context_";
  if (const auto found = range.find(kTokens); found != range.npos) {
    const auto tokens = range.substr(found);
    return digits_behind(tokens, "(").value_or(0) +
           digits_behind(tokens.substr(std::min(tokens.find("generation_"), tokens.size())), "(").value_or(0);
  }
  for (const auto* key : {"bs=", "execute_", "capture_"}) {
    if (const auto found = digits_behind(range, key)) return *found;
  }
  return 0;
}

bool launches_graph(std::string_view call) { return call.find("GraphLaunch") != call.npos; }

std::vector<std::int64_t> batches_of_replays(const Trace& trace) {
  std::map<std::uint32_t, std::vector<std::pair<std::int64_t, const HostEvent*>>> ranges;  // by thread
  for (const auto& event : trace.host) {
    if (event.kind != HostKind::range || batch_of_range(trace.names[event.name]) == 0) continue;
    ranges[event.thread].emplace_back(event.begin_ns, &event);
  }
  for (auto& [thread, events] : ranges) std::ranges::sort(events);
  std::set<std::int64_t> batches;
  for (const auto& event : trace.host) {
    if (event.kind != HostKind::launch || !launches_graph(trace.names[event.name])) continue;
    std::int64_t batch = 0;
    const auto& around = ranges[event.thread];
    auto range = std::ranges::upper_bound(around, event.begin_ns, {}, [](const auto& one) { return one.first; });
    for (int i = 0; i < kRangesAround && range != around.begin() && batch == 0; ++i) {
      --range;
      if (range->second->end_ns >= event.end_ns) batch = batch_of_range(trace.names[range->second->name]);
    }
    batches.insert(batch);
  }
  return {batches.begin(), batches.end()};
}

std::vector<Capture> own_captures(Trace& trace) {
  struct While {
    std::uint32_t thread = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  std::vector<While> captured;
  bool replayed = false;
  std::vector<const HostEvent*> calls;
  for (const auto& event : trace.host) {
    if (event.kind != HostKind::launch) continue;
    const auto& call = trace.names[event.name];
    replayed = replayed || launches_graph(call);
    if (begins_capture(call) || ends_capture(call)) calls.push_back(&event);
  }
  if (!replayed) return {};
  std::ranges::sort(calls, {}, [](const HostEvent* event) { return std::pair(event->thread, event->begin_ns); });
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    if (calls[i]->thread != calls[i + 1]->thread || !begins_capture(trace.names[calls[i]->name]) ||
        !ends_capture(trace.names[calls[i + 1]->name])) {
      continue;
    }
    captured.push_back({calls[i]->thread, calls[i]->begin_ns, calls[i + 1]->end_ns});
  }
  if (captured.empty()) return {};
  std::unordered_set<std::uint64_t> ran;
  for (const auto& record : trace.device.records) ran.insert(record.correlation);
  Capture own;
  own.name = kOwnCapture;
  own.trace.names = trace.names;
  own.trace.calls = trace.calls;
  own.trace.launched = trace.launched;
  const auto moves = [&](const HostEvent& event) {
    if (event.kind == HostKind::launch && ran.contains(event.correlation)) return false;
    const auto within = std::ranges::find_if(captured, [&](const While& one) {
      return event.thread == one.thread && event.begin_ns >= one.begin_ns && event.end_ns <= one.end_ns;
    });
    if (within != captured.end()) own.trace.host.push_back(event);
    const auto inside = std::ranges::find_if(captured, [&](const While& one) {
      return event.thread == one.thread && event.begin_ns < one.begin_ns && event.end_ns > one.end_ns;
    });
    if (inside != captured.end()) own.trace.host.push_back(event);  // around it, and still here
    return within != captured.end();
  };
  std::erase_if(trace.host, moves);
  std::vector<Capture> captures;
  captures.push_back(std::move(own));
  return captures;
}

CapturedGraphs::CapturedGraphs(std::vector<Capture> captures) : captures_(std::move(captures)) {
  for (std::size_t i = 0; i < captures_.size(); ++i) add_graphs(i);
}

std::int32_t CapturedGraphs::symbol_of(const std::string& name) {
  return symbols_.try_emplace(name, static_cast<std::int32_t>(symbols_.size())).first->second;
}

// Finds the graphs of a capture: what was launched while a stream captured, and did not run.
void CapturedGraphs::add_graphs(std::size_t index) {
  auto& capture = captures_[index];
  auto& trace = capture.trace;
  find_list_types(trace);
  trees_.push_back(host_tree(trace.host));
  const auto& tree = trees_.back();
  std::unordered_set<std::uint64_t> ran;
  for (const auto& record : trace.device.records) ran.insert(record.correlation);
  const auto first = graphs_.size();
  std::map<std::uint32_t, std::size_t> open;  // by thread
  bool any_begin = false;
  const auto add = [&](std::int32_t begin) {
    CapturedGraph graph;
    graph.capture = index;
    graph.batch = capture.batch;
    if (begin != kNone) graph.begin_ns = trace.host[at(begin)].begin_ns;
    for (auto around = begin == kNone ? kNone : tree.parents[at(begin)]; around != kNone;
         around = tree.parents[at(around)]) {
      const auto& event = trace.host[at(around)];
      if (event.kind == HostKind::module) graph.around.insert(graph.around.begin(), around);
      if (event.kind != HostKind::range) continue;
      if (const auto batch = batch_of_range(trace.names[event.name]); batch > 0) graph.batch = batch;
    }
    graphs_.push_back(std::move(graph));
  };
  for (const auto& event : trace.host) {
    any_begin = any_begin || (event.kind == HostKind::launch && begins_capture(trace.names[event.name]));
  }
  if (!any_begin) add(kNone);
  for (std::size_t i = 0; i < trace.host.size(); ++i) {
    const auto& event = trace.host[i];
    if (event.kind != HostKind::launch) continue;
    const auto& call = trace.names[event.name];
    if (begins_capture(call)) {
      open[event.thread] = graphs_.size();
      add(static_cast<std::int32_t>(i));
    } else if (ends_capture(call)) {
      if (const auto ended = open.find(event.thread); ended != open.end()) {
        graphs_[ended->second].end_ns = event.begin_ns;
        open.erase(ended);
      }
    }
    if (any_begin && open.empty()) continue;
    const bool kernel = launches_kernel(call);
    if ((!kernel && !copies_memory(call) && !fills_memory(call)) || ran.contains(event.correlation)) continue;
    const auto own = open.find(event.thread);  // another thread may launch on the stream that is captured
    auto& graph = !any_begin ? graphs_.back() : graphs_[own != open.end() ? own->second : open.begin()->second];
    graph.launches.push_back(static_cast<std::int32_t>(i));
    if (!kernel) {
      graph.symbols.push_back(copies_memory(call) ? kCopied : kFilled);
    } else if (event.call == kNone) {
      graph.symbols.push_back(kUnnamed);
      graph.named = false;
    } else {
      graph.symbols.push_back(symbol_of(trace.launched[at(event.call)].name));
    }
  }
  std::erase_if(graphs_, [](const CapturedGraph& graph) { return graph.launches.empty(); });
  if (capture.given && graphs_.size() == first) {
    throw TraceError("the capture " + capture.name +
                     " has no launch that a graph captured: record with ProfilerActivity.CPU and "
                     "ProfilerActivity.CUDA while the graph is captured");
  }
}

std::string CapturedGraphs::shown_symbol(std::int32_t symbol) const {
  if (symbol == kCopied) return "a copy";
  if (symbol == kFilled) return "a fill";
  for (const auto& [name, number] : symbols_) {
    if (number == symbol) return "'" + shown(name) + "'";
  }
  return "a kernel without a name";
}

// Says where two sequences first differ.
std::string CapturedGraphs::difference(const Sequence& records, const CapturedGraph& graph) const {
  std::size_t first = 0;
  while (first < std::min(records.size(), graph.symbols.size()) && records[first] == graph.symbols[first]) ++first;
  std::string text = captures_[graph.capture].name + " captured " +
                     counted(std::ssize(graph.symbols), "launch", "launches") + ", the replay ran " +
                     counted(std::ssize(records), "kernel, copy or fill", "kernels, copies and fills");
  if (!graph.named || (first == records.size() && first == graph.symbols.size())) return text;
  const auto side = [&](const Sequence& all) {
    return first < all.size() ? shown_symbol(all[first]) : std::string("nothing");
  };
  return text + "; they first differ at number " + std::to_string(first + 1) + ", where it captured " +
         side(graph.symbols) + " and " + side(records) + " ran";
}

// Returns the innermost op around a launch of the capture.
std::int32_t CapturedGraphs::op_around(const CapturedGraph& graph, std::size_t launch) const {
  return innermost_op(captures_[graph.capture].trace.host, trees_[graph.capture], graph.launches[launch]);
}

// Returns how many kernels speak against a match by order alone: equal calls of an op launch equal kernels, and
// Triton's ops have the names of their kernels.
std::int64_t CapturedGraphs::doubts(const Sequence& records, const CapturedGraph& graph, const Fit& fit) const {
  std::map<std::pair<std::int32_t, std::int32_t>, std::map<std::int32_t, std::int64_t>> kernels;
  const auto& trace = captures_[graph.capture].trace;
  std::vector<std::int32_t> record_of(graph.launches.size(), kNone);
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (fit.launch_of[i] != kNone) record_of[at(fit.launch_of[i])] = static_cast<std::int32_t>(i);
  }
  std::int64_t doubtful = 0;
  std::int32_t last = kNone;
  std::int32_t nth = 0;
  for (std::size_t i = 0; i < record_of.size(); ++i) {
    const auto op = op_around(graph, i);
    if (op == kNone || record_of[i] == kNone) continue;
    nth = op == last ? nth + 1 : 0;
    last = op;
    const auto symbol = records[at(record_of[i])];
    const auto& name = trace.names[trace.host[at(op)].name];
    if (name.starts_with("triton_")) {
      const auto known = symbols_.find(name);
      doubtful += known == symbols_.end() || known->second != symbol ? 1 : 0;
    } else {
      ++kernels[{trace.host[at(op)].call, nth}][symbol];
    }
  }
  for (const auto& [call, names] : kernels) {
    std::int64_t all = 0;
    std::int64_t most = 0;
    for (const auto& [name, count] : names) {
      all += count;
      most = std::max(most, count);
    }
    doubtful += all - most;
  }
  return doubtful;
}

Fit CapturedGraphs::fit_of(const Sequence& records, const CapturedGraph& graph) const {
  Fit fit;
  const auto is_kernel = [](std::int32_t symbol) { return symbol >= 0 || symbol == kUnnamed; };
  const auto kernels_ran = std::ranges::count_if(records, is_kernel);
  const auto kernels_launched = std::ranges::count_if(graph.symbols, is_kernel);
  bool fits = false;
  std::int64_t others = 0;  // kernels that stand where the capture has another one
  std::vector<bool> matched(graph.symbols.size(), false);
  if (graph.named) {
    fit.launch_of = in_common(records, graph.symbols);
    const auto in_order = fit.launch_of;
    match_by_name(records, graph.symbols, fit.launch_of);
    for (std::size_t i = 0; i < in_order.size(); ++i) fit.moved += in_order[i] != fit.launch_of[i] ? 1 : 0;
    for (const auto launch : fit.launch_of) {
      if (launch != kNone) matched[at(launch)] = true;
    }
    std::int64_t only_ran = 0;
    std::size_t launch = 0;
    for (std::size_t i = 0; i <= records.size(); ++i) {
      if (i < records.size() && in_order[i] == kNone) {
        only_ran += fit.launch_of[i] == kNone && is_kernel(records[i]) ? 1 : 0;
        continue;
      }
      const auto end = i < records.size() ? at(in_order[i]) : graph.symbols.size();
      std::int64_t only_launched = 0;
      for (; launch < end; ++launch) only_launched += !matched[launch] && is_kernel(graph.symbols[launch]) ? 1 : 0;
      ++launch;
      others += std::min(only_ran, only_launched);
      only_ran = 0;
    }
    fits = true;
  } else {
    fit.launch_of.assign(records.size(), kNone);
    fits = match_by_order(records, graph.symbols, fit.launch_of);
    for (const auto launch : fit.launch_of) {
      if (launch != kNone) matched[at(launch)] = true;
    }
    if (fits) others = doubts(records, graph, fit);
  }
  std::int64_t found = 0;
  for (std::size_t i = 0; i < records.size(); ++i) found += fit.launch_of[i] != kNone && is_kernel(records[i]) ? 1 : 0;
  const auto ran_matched = std::ranges::count_if(fit.launch_of, [](auto launch) { return launch != kNone; });
  fit.edits = std::ssize(records) + std::ssize(graph.symbols) - 2 * ran_matched;
  if (!fits || others * kOtherOneIn > kernels_ran || (kernels_launched - found) * kMissingOneIn > kernels_launched ||
      found * 2 < kernels_ran) {
    fit.difference = difference(records, graph);
    if (!graph.named && fits) {
      fit.difference += ", but equal calls of an operator would have run different kernels";
    }
  }
  return fit;
}

std::string CapturedGraphs::calls_of(const CapturedGraph& graph) const {
  std::string text;
  const auto& trace = captures_[graph.capture].trace;
  for (std::size_t i = 0; i < graph.launches.size(); ++i) {
    const auto op = op_around(graph, i);
    if (op != kNone) {
      const auto& call = trace.calls[at(trace.host[at(op)].call)];
      for (const auto& part : {call.op, call.sizes, call.types, call.strides, call.scalars}) (text += part) += '\n';
    }
    text += '\n';
  }
  return text;
}

}  // namespace roofprof::kineto
