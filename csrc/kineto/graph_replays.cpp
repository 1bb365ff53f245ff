#include "kineto/graph_replays.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "kineto/json_text.h"
#include "kineto/trace_reader.h"

namespace roofprof::kineto {
namespace {

// Sequence numbers of a capture's autograd nodes are moved by multiples of this.
constexpr std::int64_t kCaptureSequences = std::int64_t{1} << 40;

class Replays {
 public:
  Replays(Trace& trace, HostTree& tree, std::vector<Capture> captures, std::vector<Note>& notes)
      : trace_(trace), tree_(tree), captured_(std::move(captures)), notes_(notes) {
    trace_.captured.assign(trace_.device.records.size(), 0);
  }

  void give() && {
    find_replays();
    const auto given = std::ranges::find(captures(), true, &Capture::given);
    if (replays_.empty()) {
      if (given != captures().end()) {
        throw TraceError("no kernel of it was launched by a graph, so it has no use for the capture " + given->name);
      }
      return;
    }
    for (auto& replay : replays_) {
      find_candidates(replay);
      if (replay.by_node && disorder(replay) > 0) try_starts(replay);
    }
    choose();
    if (given != captures().end() &&
        std::ranges::all_of(replays_, [](const auto& one) { return one.graph == kNone; })) {
      throw TraceError("its replays of graphs are not those of the capture: " + refusals_.front());
    }
    splice();
    add_notes();
  }

 private:
  const std::vector<Capture>& captures() const { return captured_.captures(); }
  const std::vector<CapturedGraph>& graphs() const { return captured_.all(); }

  struct Replay {
    std::int32_t launch = kNone;       // the event
    std::vector<std::size_t> records;  // in order
    Sequence symbols;                  // of the records
    bool by_node = false;              // the order is that of the graph's nodes, else that of the starts
    std::int64_t batch = 0;
    std::vector<std::int32_t> candidates;  // graphs
    std::int32_t graph = kNone;
    std::map<std::int32_t, Fit>* fits = nullptr;  // by graph, of all replays with the same symbols
  };
  // Events that each replay of a graph adds to the trace. Places in `events` are relative.
  struct Addition {
    std::vector<HostEvent> events;
    std::vector<std::int32_t> parents;  // kNone: what is around the launch
    std::vector<bool> again;
    std::vector<std::int32_t> launches;  // by launch of the graph
  };

  // Fills and copies of a graph are kernels of HIP's runtime in some traces.
  std::int32_t symbol_of(const KernelRecord& record) {
    if (record.kind == KernelKind::copy) return kCopied;
    if (record.kind == KernelKind::fill) return kFilled;
    const auto& name = trace_.device.names[record.name];
    if (name.starts_with("__amd_rocclr_copy")) return kCopied;
    if (name.starts_with("__amd_rocclr_fill")) return kFilled;
    return captured_.symbol_of(name);
  }

  void find_replays() {
    std::unordered_map<std::uint64_t, std::size_t> by_correlation;
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      const auto& event = trace_.host[i];
      if (event.kind != HostKind::launch || event.correlation == 0 || !launches_graph(trace_.names[event.name]))
        continue;
      if (!by_correlation.try_emplace(event.correlation, replays_.size()).second) continue;
      Replay replay;
      replay.launch = static_cast<std::int32_t>(i);
      for (auto around = tree_.parents[i]; around != kNone && replay.batch == 0; around = tree_.parents[at(around)]) {
        const auto& range = trace_.host[at(around)];
        if (range.kind == HostKind::range) replay.batch = batch_of_range(trace_.names[range.name]);
      }
      replays_.push_back(std::move(replay));
    }
    const auto& records = trace_.device.records;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto replay = by_correlation.find(records[i].correlation);
      if (replay != by_correlation.end()) replays_[replay->second].records.push_back(i);
    }
    std::erase_if(replays_, [](const Replay& replay) { return replay.records.empty(); });
    for (auto& replay : replays_) {
      std::set<std::uint64_t> nodes;
      for (const auto record : replay.records) nodes.insert(records[record].graph_node);
      replay.by_node = nodes.size() == replay.records.size() && !nodes.contains(0);
      put_in_order(replay);
    }
  }

  // Nodes have numbers in the order in which they were captured; branches of a graph run in any order.
  void put_in_order(Replay& replay) {
    const auto& records = trace_.device.records;
    std::ranges::stable_sort(replay.records, {}, [&](std::size_t i) {
      return replay.by_node ? static_cast<std::int64_t>(records[i].graph_node) : records[i].start_ns;
    });
    replay.symbols.clear();
    for (const auto record : replay.records) replay.symbols.push_back(symbol_of(records[record]));
  }

  // Returns how much of a replay is not in the order of the capture.
  static std::int64_t disorder(const Replay& replay) {
    if (replay.candidates.empty()) return std::numeric_limits<std::int64_t>::max();
    const auto& fit = replay.fits->at(replay.candidates.front());
    return fit.edits + fit.moved;
  }

  // Takes the order of the starts where it is nearer to the capture's than that of the nodes.
  void try_starts(Replay& replay) {
    auto other = replay;
    other.by_node = false;
    other.candidates.clear();
    put_in_order(other);
    const auto refused = refusals_.size();
    find_candidates(other);
    if (replay.candidates.empty() || disorder(other) < disorder(replay)) {
      replay = std::move(other);
    } else {
      refusals_.resize(refused);
    }
  }

  // Finds the graphs that a replay may be of: of those that fit, the ones with the smallest batch that holds it, and of
  // these the ones that differ least.
  void find_candidates(Replay& replay) {
    auto& fits = fits_[replay.symbols];
    replay.fits = &fits;
    const Fit* nearest = nullptr;
    std::string too_small;
    for (std::size_t i = 0; i < graphs().size(); ++i) {
      const auto& graph = graphs()[i];
      const auto number = static_cast<std::int32_t>(i);
      if (!fits.contains(number)) fits.emplace(number, captured_.fit_of(replay.symbols, graph));
      const auto& fit = fits.at(number);
      if (!fit.difference.empty()) {
        if (nearest == nullptr || fit.edits < nearest->edits) nearest = &fit;
      } else if (replay.batch > 0 && graph.batch > 0 && graph.batch < replay.batch) {
        too_small = captures()[graph.capture].name + " is the capture of a batch of " + std::to_string(graph.batch) +
                    ", the replay is of " + std::to_string(replay.batch);
      } else {
        replay.candidates.push_back(number);
      }
    }
    if (replay.candidates.empty()) {
      if (replay.by_node) return;  // the other order is tried next
      if (!too_small.empty()) return refuse(too_small);
      if (nearest != nullptr) refuse(nearest->difference);
      return;
    }
    const auto keep_least = [&](auto&& value) {
      const auto least = value(*std::ranges::min_element(replay.candidates, {}, value));
      std::erase_if(replay.candidates, [&](std::int32_t graph) { return value(graph) != least; });
    };
    if (replay.batch > 0) {
      keep_least([&](std::int32_t graph) {
        return graphs()[at(graph)].batch > 0 ? graphs()[at(graph)].batch : std::numeric_limits<std::int64_t>::max();
      });
    }
    keep_least([&](std::int32_t graph) { return fits.at(graph).edits; });
    keep_alike(replay);
  }

  const std::string& calls_of(std::int32_t graph) {
    const auto [known, fresh] = calls_of_graph_.try_emplace(graph);
    if (fresh) known->second = captured_.calls_of(graphs()[at(graph)]);
    return known->second;
  }

  // If several graphs fit alike: pieces of one capture follow each other, and their calls are equal. Other graphs with
  // the same kernels cannot be distinguished.
  void keep_alike(Replay& replay) {
    if (replay.candidates.size() < 2) return;
    const auto& first = graphs()[at(replay.candidates.front())];
    const auto& calls = calls_of(replay.candidates.front());
    for (const auto other : replay.candidates) {
      const auto& graph = graphs()[at(other)];
      if (calls_of(other) == calls) continue;
      refuse(captures()[first.capture].name +
             (graph.capture == first.capture ? " has several graphs"
                                             : " and " + captures()[graph.capture].name + " have graphs") +
             " with the kernels of the replay, whose operators differ, and nothing tells which one it was" +
             (graph.capture == first.capture ? "" : ": give one of them"));
      replay.candidates.clear();
      return;
    }
    std::erase_if(replay.candidates, [&](std::int32_t graph) { return graphs()[at(graph)].capture != first.capture; });
  }

  void refuse(const std::string& why) {
    if (std::ranges::find(refusals_, why) == refusals_.end()) refusals_.push_back(why);
  }

  // Chooses a graph for each replay: pieces are replayed in the order in which they were captured. Where the first
  // replays fit several pieces, the first replay that fits only one of them decides.
  void choose() {
    const auto next = [&](const Replay& replay, std::int32_t from, int step) {
      const auto count = static_cast<std::int32_t>(graphs().size());
      auto graph = from;
      do {
        graph = (graph + step + count) % count;
      } while (std::ranges::find(replay.candidates, graph) == replay.candidates.end());
      return graph;
    };
    std::int32_t last = -1;
    const auto anchor = std::ranges::find_if(replays_, [](const auto& one) { return one.candidates.size() == 1; });
    if (anchor != replays_.end()) {
      last = anchor->candidates.front();
      for (auto replay = std::make_reverse_iterator(anchor); replay != replays_.rend(); ++replay) {
        if (replay->candidates.empty()) continue;
        replay->graph = last = next(*replay, last, -1);
      }
      last = -1;
    }
    for (auto& replay : replays_) {
      if (replay.candidates.empty()) continue;
      if (replay.graph == kNone) replay.graph = next(replay, last, 1);
      last = replay.graph;
    }
  }

  // ---- what is added

  // Returns the number of a name in the trace.
  std::uint32_t name_in_trace(const std::string& name) {
    if (names_.empty()) {
      for (std::size_t i = 0; i < trace_.names.size(); ++i) names_.emplace(trace_.names[i], i);
    }
    const auto [known, fresh] = names_.try_emplace(name, static_cast<std::uint32_t>(trace_.names.size()));
    if (fresh) trace_.names.push_back(name);
    return known->second;
  }

  std::int32_t call_in_trace(const RecordedCall& call) {
    const auto key = [](const RecordedCall& one) {
      std::string text;
      for (const auto& part : {one.op, one.sizes, one.types, one.strides, one.scalars, one.list_type}) {
        (text += part) += '\n';
      }
      return text;
    };
    if (calls_.empty()) {
      for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
        calls_.emplace(key(trace_.calls[i]), static_cast<std::int32_t>(i));
      }
    }
    const auto [known, fresh] = calls_.try_emplace(key(call), static_cast<std::int32_t>(trace_.calls.size()));
    if (fresh) trace_.calls.push_back(call);
    return known->second;
  }

  // Collects where each instance of a module was first called: the instances around it.
  static void collect_modules(const Trace& trace, const HostTree& tree, std::map<std::string, std::string>& paths) {
    std::vector<std::string> inside(trace.host.size());
    for (std::size_t i = 0; i < trace.host.size(); ++i) {
      if (tree.parents[i] != kNone) inside[i] = inside[at(tree.parents[i])];
      if (trace.host[i].kind != HostKind::module) continue;
      const auto& name = trace.names[trace.host[i].name];
      inside[i] = paths.try_emplace(name, inside[i] + "." + name).first->second;
    }
  }

  // Finds the names of a capture's modules in the trace. Each recording numbers the instances of a class by itself: an
  // instance whose name stands for another one here gets the next free number.
  void name_modules(std::size_t capture) {
    if (modules_.empty()) collect_modules(trace_, tree_, modules_);
    std::map<std::string, std::string> captured;
    collect_modules(captures()[capture].trace, captured_.tree(capture), captured);
    for (const auto& [name, path] : captured) {
      auto& chosen = renamed_[{capture, name}];
      const auto before = name_of_path_.find(path);
      if (before != name_of_path_.end()) {  // another capture has it too
        chosen = before->second;
        continue;
      }
      chosen = name;
      const auto known = modules_.find(name);
      if (known != modules_.end() && known->second != path) {
        const auto stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
        std::int64_t number = 0;
        do {
          chosen = stem + std::to_string(number++);
        } while (modules_.contains(chosen) || captured.contains(chosen));
      }
      modules_.insert_or_assign(chosen, path);
      name_of_path_.emplace(path, chosen);
    }
  }

  HostEvent in_trace(const CapturedGraph& graph, std::int32_t index) {
    const auto& trace = captures()[graph.capture].trace;
    auto event = trace.host[at(index)];
    const auto& name = trace.names[event.name];
    event.name = name_in_trace(event.kind == HostKind::module ? renamed_.at({graph.capture, name}) : name);
    if (event.kind == HostKind::op) event.call = call_in_trace(trace.calls[at(event.call)]);
    if (event.kind == HostKind::launch) event.call = kNone;
    if (event.message != kNone) {
      trace_.messages.push_back(trace.messages[at(event.message)]);
      event.message = static_cast<std::int32_t>(trace_.messages.size()) - 1;
    }
    if (event.sequence >= 0 && event.sequence < kCaptureSequences) {
      event.sequence += kCaptureSequences * static_cast<std::int64_t>(graph.capture + 1);
    }
    event.correlation = 0;
    return event;
  }

  // Makes what is added for a replay: launches, what is around them since the capture began, and calls of modules.
  // Ops that launched nothing do not run in a replay.
  Addition addition_of(const CapturedGraph& graph) {
    const auto& host = captures()[graph.capture].trace.host;
    const auto& tree = captured_.tree(graph.capture);
    std::unordered_map<std::int32_t, std::int32_t> launch_number;
    std::set<std::uint32_t> threads;
    std::vector<bool> kept(host.size(), false);
    for (std::size_t i = 0; i < graph.launches.size(); ++i) {
      launch_number.emplace(graph.launches[i], static_cast<std::int32_t>(i));
      threads.insert(host[at(graph.launches[i])].thread);
      for (auto event = graph.launches[i]; event != kNone && !kept[at(event)]; event = tree.parents[at(event)]) {
        if (host[at(event)].begin_ns < graph.begin_ns) break;
        kept[at(event)] = true;
      }
    }
    Addition addition;
    addition.launches.assign(graph.launches.size(), kNone);
    std::unordered_map<std::int32_t, std::int32_t> places;
    for (std::size_t i = 0; i < host.size(); ++i) {
      const auto& event = host[i];
      if (event.begin_ns < graph.begin_ns || event.begin_ns > graph.end_ns) continue;
      const auto index = static_cast<std::int32_t>(i);
      if (!kept[i] && (event.kind != HostKind::module || !threads.contains(event.thread))) continue;
      auto around = tree.parents[i];
      while (around != kNone && !places.contains(around)) around = tree.parents[at(around)];
      const auto place = static_cast<std::int32_t>(addition.events.size());
      places.emplace(index, place);
      if (const auto number = launch_number.find(index); number != launch_number.end()) {
        addition.launches[at(number->second)] = place;
      }
      addition.events.push_back(in_trace(graph, index));
      addition.parents.push_back(around == kNone ? kNone : places.at(around));
      addition.again.push_back(tree.dispatched_again[i]);
    }
    return addition;
  }

  // Puts behind each launch of a graph what its replay runs.
  void splice() {
    std::map<std::int32_t, Addition> additions;  // by graph
    // Captured launches get numbers above all of the trace's. Negative ones belong to no launch and do not count here.
    std::uint64_t correlation = 0;
    const auto take = [&](std::uint64_t known) {
      if (known <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) correlation = std::max(correlation, known);
    };
    for (const auto& event : trace_.host) take(event.correlation);
    for (const auto& record : trace_.device.records) take(record.correlation);
    std::set<std::size_t> used;
    for (const auto& one : replays_) {
      if (one.graph != kNone) used.insert(graphs()[at(one.graph)].capture);
    }
    for (const auto capture : used) name_modules(capture);
    std::vector<HostEvent> host;
    HostTree tree;
    std::vector<std::int32_t> moved;
    std::map<std::int32_t, std::int32_t> open;  // of a capture, modules around its graphs: places in `host`
    const auto push = [&](const HostEvent& event, std::int32_t parent, bool again) {
      host.push_back(event);
      tree.parents.push_back(parent);
      tree.dispatched_again.push_back(again);
      return static_cast<std::int32_t>(host.size() - 1);
    };
    const auto is_around = [&](std::int32_t event, std::uint32_t module) {
      for (; event != kNone; event = tree.parents[at(event)]) {
        if (host[at(event)].kind == HostKind::module && host[at(event)].name == module) return true;
      }
      return false;
    };
    std::int32_t last = kNone;
    auto replay = replays_.begin();
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      const auto& launch = trace_.host[i];
      const auto parent = tree_.parents[i] == kNone ? kNone : moved[at(tree_.parents[i])];
      moved.push_back(push(launch, parent, tree_.dispatched_again[i]));
      if (replay == replays_.end() || std::cmp_not_equal(replay->launch, i)) continue;
      const auto number = replay->graph;
      const auto& run = *replay++;
      if (number == kNone) continue;
      const auto& graph = graphs()[at(number)];
      auto known = additions.find(number);
      if (known == additions.end()) known = additions.emplace(number, addition_of(graph)).first;
      const auto as_now = [&](HostEvent event) {
        event.begin_ns = event.end_ns = launch.begin_ns;
        event.thread = launch.thread;
        return event;
      };
      // A call of a module around several pieces is one call.
      if (last == kNone || number <= last || graphs()[at(last)].capture != graph.capture) open.clear();
      last = number;
      auto root = parent;
      for (const auto around : graph.around) {
        const auto event = in_trace(graph, around);
        if (is_around(root, event.name)) continue;
        const auto [called, fresh] = open.try_emplace(around, kNone);
        if (fresh) called->second = push(as_now(event), root, false);
        root = called->second;
      }
      const auto& addition = known->second;
      const auto begin = static_cast<std::int32_t>(host.size());
      for (std::size_t event = 0; event < addition.events.size(); ++event) {
        const auto around = addition.parents[event];
        push(as_now(addition.events[event]), around == kNone ? root : begin + around, addition.again[event]);
      }
      for (const auto place : addition.launches) host[at(begin + place)].correlation = ++correlation;
      const auto& launch_of = run.fits->at(number).launch_of;
      for (std::size_t record = 0; record < run.records.size(); ++record) {
        if (launch_of[record] == kNone) continue;
        const auto place = addition.launches[at(launch_of[record])];
        trace_.captured[run.records[record]] = host[at(begin + place)].correlation;
      }
    }
    trace_.host = std::move(host);
    tree_ = std::move(tree);
  }

  // ---- notes

  struct Sum {
    std::int64_t count = 0;
    std::int64_t time_ns = 0;
    void add(const KernelRecord& record) {
      ++count;
      time_ns += record.end_ns - record.start_ns;
    }
    std::string text() const {
      return counted(count, "kernel, copy or fill", "kernels, copies and fills") + " (" + microseconds(time_ns) + ")";
    }
  };

  void add_notes() {
    Sum unknown;    // of replays of unknown graphs
    Sum unmatched;  // of replays whose graph is known
    std::int64_t unknown_replays = 0;
    std::int64_t not_run = 0;
    struct Use {
      std::int64_t replays = 0;
      Sum matched;
      bool by_order = false;
    };
    std::map<std::size_t, Use> uses;  // by capture
    std::int64_t larger = 0;
    for (const auto& replay : replays_) {
      if (replay.graph == kNone) {
        ++unknown_replays;
        for (const auto record : replay.records) unknown.add(trace_.device.records[record]);
        continue;
      }
      const auto& graph = graphs()[at(replay.graph)];
      auto& use = uses[graph.capture];
      ++use.replays;
      use.by_order = use.by_order || !graph.named;
      larger += replay.batch > 0 && graph.batch > replay.batch ? 1 : 0;
      not_run += std::ssize(graph.launches);
      for (const auto record : replay.records) {
        const bool matched = trace_.captured[record] != 0;
        (matched ? use.matched : unmatched).add(trace_.device.records[record]);
        not_run -= matched ? 1 : 0;
      }
    }
    for (const auto& [capture, use] : uses) {
      const auto& known = captures()[capture];
      const bool own = known.name == kOwnCapture;
      std::string text = counted(use.replays, "replay of a graph has", "replays of graphs have");
      text += known.given || own ? " the operators of the capture in "
                                 : " the operators of a capture beside the trace (--capture none: without), ";
      text += known.name + ": " + use.matched.text();
      if (use.by_order) text += "; its launches do not name their kernels: they are matched by order alone";
      add_note(notes_, "graph-captures", std::move(text));
    }
    if (larger > 0) {
      add_note(notes_, "graph-captures",
               counted(larger, "replay") + " ran a graph of a larger batch than the step had: its work is the graph's");
    }
    for (const auto& capture : captures()) {
      const auto index = static_cast<std::size_t>(&capture - captures().data());
      if (capture.given && !uses.contains(index)) refuse("no replay is of the capture " + capture.name);
    }
    if (unmatched.count > 0 || not_run > 0) {
      std::string text;
      if (unmatched.count > 0) {
        text = unmatched.text() + " of replays match no launch of the capture: they are in the row " +
               std::string(kGraphReplay);
      }
      if (not_run > 0) {
        if (!text.empty()) text += "; ";
        text += counted(not_run, "captured launch", "captured launches") +
                " match no kernel of the replays: the work counts, and no time";
      }
      add_note(notes_, "graph-replays", std::move(text));
    }
    if (unknown_replays > 0) {
      std::string text = counted(unknown_replays, "replay of a graph", "replays of graphs") + " ran " + unknown.text() +
                         ", whose operators are not known: they are in the row " + std::string(kGraphReplay);
      if (captures().empty()) text += "; a trace of the graph's capture tells them (--capture FILE)";
      add_note(notes_, "graph-replays", std::move(text));
    }
    constexpr std::size_t kMostRefusals = 3;
    for (std::size_t i = 0; i < std::min(refusals_.size(), kMostRefusals); ++i) {
      add_note(notes_, "graph-replays", "a capture was not taken: " + refusals_[i]);
    }
    if (refusals_.size() > kMostRefusals) {
      add_note(notes_, "graph-replays",
               counted(std::ssize(refusals_) - static_cast<std::int64_t>(kMostRefusals), "other replay") +
                   " did not fit the captures either");
    }
  }

  Trace& trace_;
  HostTree& tree_;
  CapturedGraphs captured_;
  std::vector<Note>& notes_;
  std::vector<Replay> replays_;
  std::map<Sequence, std::map<std::int32_t, Fit>> fits_;
  std::map<std::int32_t, std::string> calls_of_graph_;
  std::vector<std::string> refusals_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<std::string, std::int32_t> calls_;
  std::map<std::string, std::string> modules_;                          // of the trace: where each was first called
  std::map<std::pair<std::size_t, std::string>, std::string> renamed_;  // by capture and name
  std::map<std::string, std::string> name_of_path_;                     // of captured modules
};

}  // namespace

void give_replays(Trace& trace, HostTree& tree, std::vector<Capture> captures, std::vector<Note>& notes) {
  Replays(trace, tree, std::move(captures), notes).give();
}

}  // namespace roofprof::kineto
