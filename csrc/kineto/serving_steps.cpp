#include "kineto/serving_steps.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "kineto/recorded_arguments.h"
#include "roofprof/work.h"

namespace roofprof::kineto {
namespace {

// The sums over a step's requests of one kind. -1: not known.
struct Requests {
  std::int64_t count = 0;
  std::int64_t queries = 0;
  std::int64_t keys = -1;
  std::int64_t squares = -1;  // queries x queries of each
  std::int64_t pairs = -1;    // queries x keys of each
  std::int64_t least_pairs = 0;
};

// Reads a text from its begin on.
class Text {
 public:
  explicit Text(std::string_view rest) : rest_(rest) {}
  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool number(std::int64_t& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0 || value > kMost) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool ended() const { return rest_.empty(); }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 52;
  std::string_view rest_;
};

// "2(sq32sk40sqsq512sqsk640)"
bool read_sums(Text& text, Requests& requests) {
  return text.number(requests.count) && text.skip("(sq") && text.number(requests.queries) && text.skip("sk") &&
         text.number(requests.keys) && text.skip("sqsq") && text.number(requests.squares) && text.skip("sqsk") &&
         text.number(requests.pairs) && text.skip(")");
}

// "2(32)"; an older form has a second number. It is not documented whether this sums queries x queries or queries x
// keys: "1(888_788544)".
bool read_tokens(Text& text, Requests& requests) {
  if (!text.number(requests.count) || !text.skip("(") || !text.number(requests.queries)) return false;
  if (text.skip("_") && !text.number(requests.least_pairs)) return false;
  return text.skip(")");
}

std::int64_t value_of(std::string_view body, std::string_view key) {
  for (std::size_t at = body.find(key); at != body.npos; at = body.find(key, at + 1)) {
    if (at > 0 && body[at - 1] != ' ') continue;
    Text text(body.substr(at + key.size()));
    std::int64_t value = -1;
    if (text.skip("=") && text.number(value)) return value;
  }
  return -1;
}

// "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 ...]"
bool read_sglang(std::string_view range, Requests& context, Requests& generation) {
  if (!range.starts_with("step[") || !range.ends_with(']')) return false;
  const auto body = range.substr(5, range.size() - 6);
  const auto all = value_of(body, "bs");
  if (all < 0) return false;
  const auto read = [&](Requests& requests, std::string_view letter, std::int64_t count) {
    const auto of = [&](std::string_view key) { return value_of(body, std::string(letter) + std::string(key)); };
    requests = {count, std::max<std::int64_t>(of("_sq"), 0), of("_sk"), of("_sqsq"), of("_sqsk"), 0};
  };
  if (body.starts_with("DECODE")) {
    read(generation, "g", all);
    if (generation.queries == 0) generation.queries = all;
  } else if (body.starts_with("EXTEND")) {
    read(context, "c", all);
    if (context.queries == 0) context.queries = std::max(value_of(body, "toks"), all);
  } else if (body.starts_with("MIXED")) {
    const auto of_context = value_of(body, "c");
    const auto of_generation = value_of(body, "g");
    if (of_context < 0 || of_generation < 0) return false;
    read(context, "c", of_context);
    read(generation, "g", of_generation);
  } else {
    return false;
  }
  return true;
}

// "decode[bs=32 tok=128 d=32 sqsq=512 sqsk=262144 sk=65536]"; with "p=2" some of a decode's requests are new.
bool read_atom(std::string_view range, Requests& context, Requests& generation) {
  const bool prefill = range.starts_with("prefill[");
  if ((!prefill && !range.starts_with("decode[")) || !range.ends_with(']')) return false;
  const auto open = range.find('[') + 1;
  const auto body = range.substr(open, range.size() - open - 1);
  const auto count = value_of(body, "bs");
  const auto tokens = value_of(body, "tok");
  if (count < 0 || tokens < 0) return false;
  const Requests requests = {count, tokens, value_of(body, "sk"), value_of(body, "sqsq"), value_of(body, "sqsk"), 0};
  (prefill ? context : generation) = requests;
  if (!prefill && value_of(body, "p") > 0) context.count = value_of(body, "p");
  return true;
}

void add(const Requests& requests, ServingStep& step) {
  if (requests.queries == 0) return;
  step.requests += requests.count;
  step.queries += requests.queries;
  if (requests.keys >= 0 && requests.squares >= 0 && requests.pairs >= 0) {
    step.keys += requests.keys;
    step.pairs = saturating_add(step.pairs, requests.pairs);
    const auto masked = std::max<std::int64_t>(requests.squares - requests.queries, 0) / 2;
    step.causal_pairs = saturating_add(step.causal_pairs, std::max<std::int64_t>(requests.pairs - masked, 0));
    return;
  }
  // The sum of squares is least where all requests have as many queries, and no request has fewer keys than queries.
  step.exact = false;
  const auto count = std::max<std::int64_t>(requests.count, 1);
  const auto squares = saturating_multiply(requests.queries, requests.queries) / count;
  step.keys += requests.queries;
  step.pairs = saturating_add(step.pairs, std::max(squares, requests.least_pairs));
  step.causal_pairs = saturating_add(step.causal_pairs, saturating_add(squares, requests.queries) / 2);
}

// Operators that attend to a cache.
bool is_attention(std::string_view op) {
  return op.starts_with("vllm::unified_attention") || op.starts_with("sglang_profiler::attention_paged_attention") ||
         op == "flash_attn::_flash_attn_varlen_forward" || op == "aiter::fmha_v3_varlen_fwd";
}

// Operators that write new keys and values into a cache, which is their third argument.
bool writes_cache(std::string_view op) {
  return op.find("::reshape_and_cache") != op.npos || op == "sglang::store_cache";
}

class Finder {
 public:
  Finder(Trace& trace, const HostTree& tree)
      : trace_(trace), tree_(tree), steps_(trace.host.size(), kNone), attention_(trace.host.size(), kNone) {}

  ServingSteps run() && {
    find_windows();
    for (std::size_t i = 0; i < trace_.host.size(); ++i) visit(i);
    for (const auto event : calls_) give_facts(event);
    for (auto& [kind, tokens] : tokens_) result_.tokens.push_back(std::move(tokens));
    return std::move(result_);
  }

 private:
  // Finds launches of kernels that look at a window of the context: their names say so.
  void find_windows() {
    for (const auto& record : trace_.device.records) {
      if (record.kind != KernelKind::kernel) continue;
      if (trace_.device.names[record.name].find("Sliding") != std::string::npos) windows_.insert(record.correlation);
    }
  }

  void visit(std::size_t i) {
    const auto& event = trace_.host[i];
    const auto parent = tree_.parents[i];
    if (parent != kNone) {
      steps_[i] = steps_[at(parent)];
      attention_[i] = attention_[at(parent)];
    }
    if (event.kind == HostKind::range) {
      open_step(i, event);
    } else if (event.kind == HostKind::op) {
      const auto& call = trace_.calls[at(event.call)];
      if (attention_[i] == kNone && call.described && is_attention(call.op)) {
        attention_[i] = static_cast<std::int32_t>(i);
        calls_.push_back(i);
        cache_bytes_[i] = last_cache_bytes_;
      } else if (call.described && writes_cache(call.op)) {
        write_cache(i, call);
      }
    } else if (event.kind == HostKind::launch && attention_[i] != kNone && windows_.contains(event.correlation)) {
      has_window_.insert(at(attention_[i]));
    }
  }

  void open_step(std::size_t i, const HostEvent& event) {
    const auto known = by_name_.try_emplace(event.name, kNone);
    if (known.second) {
      if (auto step = serving_step(trace_.names[event.name])) {
        known.first->second = static_cast<std::int32_t>(all_.size());
        all_.emplace_back(*step, event.name);
      }
    }
    const auto step = known.first->second;
    if (step == kNone) return;
    const auto around = steps_[i];
    if (around == kNone) count_tokens(all_[at(step)].first);
    if (around == kNone || !all_[at(around)].first.exact) steps_[i] = step;
  }

  void count_tokens(const ServingStep& step) {
    auto& tokens = tokens_[step.kind];
    tokens.region = step.kind;
    ++tokens.calls;
    tokens.sequences += step.requests;
    tokens.tokens += step.queries;
    const bool one = step.exact && step.requests == 1;
    const bool first = tokens.calls == 1;
    const bool known = one && (first || tokens.most_context >= 0);
    tokens.least_context = !known ? -1 : first ? step.keys : std::min(tokens.least_context, step.keys);
    tokens.most_context = !known ? -1 : std::max(tokens.most_context, step.keys);
  }

  void write_cache(std::size_t i, const RecordedCall& call) {
    constexpr std::size_t kCache = 2;
    const auto arguments = arguments_of(call);
    if (arguments.size() <= kCache || arguments[kCache].tensors.size() != 1) return;
    const auto* type = element_of(arguments[kCache].tensors.front().type);
    last_cache_bytes_ = type == nullptr ? 0 : type->bytes;  // 0: not known
    if (attention_[i] == kNone) return;
    cache_bytes_[at(attention_[i])] = last_cache_bytes_;
    wrote_.insert(at(attention_[i]));
  }

  void give_facts(std::size_t i) {
    auto call = trace_.calls[at(trace_.host[i].call)];
    const auto cache = cache_bytes_.find(i);
    if (cache != cache_bytes_.end() && cache->second > 0) call.facts.emplace_back("cache_item_bytes", cache->second);
    if (wrote_.contains(i)) call.facts.emplace_back("cache_written", 1);
    const bool windowed = has_window_.contains(i);
    if (windowed) ++result_.windowed;
    if (const auto index = steps_[i]; index != kNone && !windowed) {
      const auto& [step, name] = all_[at(index)];
      call.facts.emplace_back("step_pairs", step.pairs);
      call.facts.emplace_back("step_causal_pairs", step.causal_pairs);
      call.facts.emplace_back("step_keys", step.keys);
      call.facts.emplace_back("step_exact", step.exact ? 1 : 0);
      if (step.exact) {
        ++result_.of_whole_context;
      } else {
        ++result_.calls_of_inexact;
        result_.inexact = trace_.names[name];
      }
    }
    if (call.facts.empty()) return;
    const auto [known, fresh] = with_facts_.try_emplace(std::pair(trace_.host[i].call, call.facts),
                                                        static_cast<std::int32_t>(trace_.calls.size()));
    if (fresh) trace_.calls.push_back(std::move(call));
    trace_.host[i].call = known->second;
  }

  Trace& trace_;
  const HostTree& tree_;
  ServingSteps result_;
  std::vector<std::int32_t> steps_;      // by event: the step around it, index into all_
  std::vector<std::int32_t> attention_;  // by event: the call of attention that it is or that is around it
  std::vector<std::size_t> calls_;       // of attention
  std::vector<std::pair<ServingStep, std::uint32_t>> all_;  // with the number of the annotation's name
  std::unordered_map<std::uint32_t, std::int32_t> by_name_;
  std::unordered_set<std::uint64_t> windows_;  // correlations
  std::unordered_map<std::size_t, std::int64_t> cache_bytes_;
  std::unordered_set<std::size_t> has_window_;
  std::unordered_set<std::size_t> wrote_;
  std::int64_t last_cache_bytes_ = 0;
  std::map<std::string_view, TokenCalls> tokens_;
  std::map<std::pair<std::int32_t, std::vector<std::pair<std::string, std::int64_t>>>, std::int32_t> with_facts_;
};

}  // namespace

std::optional<ServingStep> serving_step(std::string_view range) {
  Requests context;
  Requests generation;
  Text text(range);
  std::int64_t all = 0;
  bool is_step = false;
  if (text.skip("execute_context_")) {
    is_step = read_tokens(text, context) && text.skip("_generation_") && read_tokens(text, generation) && text.ended();
  } else if (text.skip("execute_")) {
    is_step = text.number(all) && text.skip("_context_") && read_sums(text, context) && text.skip("_generation_") &&
              read_sums(text, generation) && text.ended();
  } else {
    is_step = read_sglang(range, context, generation) || read_atom(range, context, generation);
  }
  if (!is_step || context.queries + generation.queries == 0) return std::nullopt;
  ServingStep step;
  const bool prefills = context.count > 0;
  step.kind = !prefills ? "decode" : generation.count > 0 ? "mixed" : "prefill";
  step.exact = true;
  add(context, step);
  add(generation, step);
  return step;
}

void note_serving(const ServingSteps& steps, std::vector<Note>& notes) {
  if (steps.calls_of_inexact > 0) {
    add_note(notes, "trace-lacks",
             "the step '" + steps.inexact + "' does not say how long its requests' contexts are, so " +
                 counted(steps.calls_of_inexact, "call") +
                 " of attention count no cached token: vLLM writes it with --profiler-config.detailed_trace_annotation "
                 "true");
  }
  if (steps.windowed > 0) {
    add_note(notes, "trace-lacks",
             counted(steps.windowed, "call") +
                 " of attention launched kernels of a sliding window, whose size the trace does not have: each token "
                 "counts with itself alone");
  }
  if (steps.of_whole_context > 0) {
    add_note(notes, "whole-context",
             counted(steps.of_whole_context, "call") +
                 " of attention count the whole context that the step's annotation gives: layers with a sliding window "
                 "do less, and kernels' names do not always say so");
  }
}

ServingSteps find_serving_steps(Trace& trace, const HostTree& tree) { return Finder(trace, tree).run(); }

}  // namespace roofprof::kineto
