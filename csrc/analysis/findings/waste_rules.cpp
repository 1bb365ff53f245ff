#include "analysis/findings/waste_rules.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/findings/finding_case.h"
#include "analysis/hotspots.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

using cases::call_ns;
using cases::kFarFromRoof;
using cases::kNearRoof;
using cases::may_compile;
using cases::of_roof;
using cases::part_of;
using cases::ran_on_cpu;
using cases::time_of;
using cases::wasted_in;
using sentences::percent_of_roof;
using sentences::text_of;
using sentences::text_of_microseconds;
using sentences::value_of;

constexpr std::int64_t kMany = 8;        // calls of one op in a call of its module: a loop
constexpr double kShortCall = 20e3;      // ns: starting an op of Python takes about so long
constexpr double kLongBetweenOps = 1e5;  // ns of host code for each op: more than calling ops takes

template <class Names>
bool is_one_of(std::string_view op, const Names& names) {
  return std::ranges::find(names, op) != names.end();
}

// Returns how often the module was called in the forward; 1 where its calls are not known.
std::int64_t calls_of_module(const FindingCase& where) { return std::max<std::int64_t>(where.calls.forwards, 1); }

// Returns the calls of ops in the module and of modules right below it.
double calls_inside(const FindingCase& where) {
  return static_cast<double>(saturating_add(where.calls.ops, where.calls.modules_inside));
}

// Returns whether an op is over so soon that starting it is what takes the time.
bool is_short(const FindingCase& where) {
  return where.bucket != nullptr && where.ops->calls >= kMany && call_ns(where) < kShortCall &&
         of_roof(where) < kFarFromRoof;
}

}  // namespace

// ---- the host

std::optional<FindingReason> reads_on_host(const FindingCase& where) {
  constexpr std::int64_t kMuchOfAll = 5;  // one of so many calls is a read
  const bool outside = where.ops->op == kOutsideOps;
  if (where.data->device || where.compiled || (!outside && !is_short(where))) return std::nullopt;
  const auto reads = where.calls.reads_on_host;
  if (reads < kMany * calls_of_module(where) || reads * kMuchOfAll < where.calls.ops) return std::nullopt;
  return FindingReason{time_of(where), {{"reads", static_cast<double>(reads)}}};
}

Said say_reads_on_host(const FindingCase&, const NamedFigures& figures) {
  return {text_of(figures, "reads") +
              " values are read on the host one by one (item(), bool(), float() of a tensor), and "
              "the code waits for each",
          "keep the decision in tensors (torch.where, masks), or read all values at once (tolist())"};
}

std::optional<FindingReason> outside_ops_of_host(const FindingCase& where) {
  if (where.ops->op != kOutsideOps || where.data->device || where.compiled) return std::nullopt;
  if (where.data->counts.ops.empty()) return std::nullopt;  // then it is all that the call does
  // If most of it may be waiting for other ranks, the host's code is not the cause.
  const auto& collectives = *where.data->comms;
  if (collectives.exposed_in.empty() && 2 * collectives.exposed_ns.value_or(0) > time_of(where)) return std::nullopt;
  const auto outside_ns = cases::outside_ns(where);
  return FindingReason{outside_ns,
                       {{"calls", calls_inside(where)}, {"time_us", static_cast<double>(outside_ns) / 1e3}}};
}

std::optional<FindingReason> short_calls(const FindingCase& where) {
  if (where.data->device || where.compiled || !is_short(where)) return std::nullopt;
  return FindingReason{wasted_in(where), {{"calls", calls_inside(where)}}};
}

Said say_outside_ops(const FindingCase& where, const NamedFigures& figures) {
  const double calls = value_of(figures, "calls");
  const double us = value_of(figures, "time_us");
  const double all_us = static_cast<double>(where.total->time_ns.value_or(0)) / 1e3;
  const bool is_most = 2 * us > all_us * value_of(figures, "percent_of_time") / 100;
  if (where.ops->op == kOutsideOps && is_most && us * 1e3 > kLongBetweenOps * std::max(calls, 1.0)) {
    return {"it is spent in the host's code beside torch: " + text_of_microseconds(us) + " with " +
                counted(static_cast<std::int64_t>(calls), "call of an op", "calls of ops"),
            "look for loops, files and conversions there (py-spy, cProfile), and do them once or in the data loader",
            "python -m cProfile -s tottime program.py"};
  }
  return {"it is spent in the host's code between calls of ops and modules, and in starting them",
          std::string("larger batches give each op more to do") +
              (may_compile(*where.data) ? ", torch.compile takes that code out" : "")};
}

// ---- types

std::optional<FindingReason> double_precision(const FindingCase& where) {
  if (where.bucket == nullptr || where.bucket->dtype != DType::fp64) return std::nullopt;
  const auto* wide = where.data->roofs.compute_for(DType::fp64);
  const auto* narrow = where.data->roofs.compute_for(DType::fp32);
  double ratio = 2;  // of the bytes
  const bool computes = where.ops->bound.kind == BoundKind::compute;
  // oneDNN has no convolutions in fp64: ATen's own took three times as long or more (docs/findings.md).
  if (ran_on_cpu(where) && cases::convolution(where)) ratio = 3;
  if (computes && wide != nullptr && narrow != nullptr && wide->operations_per_second > 0)
    ratio = std::max(ratio, narrow->operations_per_second / wide->operations_per_second);
  return FindingReason{part_of(time_of(where), 1 - 1 / ratio), {{"ratio", ratio}}};
}

namespace {

// Returns whether the forward may make elements of fp64 of others, which keep their type where model and input change
// theirs: integers of the same size look alike.
bool may_cast_to_fp64(const Profile& data) {
  constexpr std::int64_t kBytesOfFp64 = 8;
  return std::ranges::any_of(data.counts.ops, [&](const OpBucket& op) {
    return op.owner.phase == Phase::forward && cases::may_change_type(op.op) && op.dtype != DType::fp64 &&
           op.work.output_elements > 0 &&
           op.work.write_bytes == saturating_multiply(kBytesOfFp64, op.work.output_elements);
  });
}

// Returns whether parameters or buffers may be in fp64; where neither are, changing the model's type changes nothing.
bool may_hold_fp64(const Profile& data) {
  constexpr std::int64_t kBytesOfFp32 = 4;
  const Module& model = data.tree.modules[kModel];
  return !model.params_known || model.buffer_bytes > 0 ||
         model.param_bytes > saturating_multiply(kBytesOfFp32, model.params);
}

}  // namespace

Said say_double_precision(const FindingCase& where, const NamedFigures& figures) {
  const std::string what =
      "computes in fp64, which takes " + text_of(figures, "ratio") + " times as long as fp32 by its bytes and roofs";
  const std::string how = "compute in fp32, where no digit needs fp64: ";
  if (may_cast_to_fp64(*where.data)) {
    return {what, how + "the forward itself casts to fp64 (.double(), .to), so change that together with the weights"};
  }
  const bool changes = may_hold_fp64(*where.data) && cases::takes_one_tensor(*where.data);
  return {what, how + "a constant of NumPy or Python, or the type of an input, may have made it so",
          changes ? std::string(kToFp32) : ""};
}

// ---- work that need not be done

namespace {

const Module& module_of(const FindingCase& where) {
  return where.data->tree.modules[index_of(where.bucket->owner.module)];
}

constexpr std::string_view kTorchNn = "torch::nn::";

// Returns whether torch wrote the forward that calls the op.
bool is_of_torch(const FindingCase& where) {
  return module_of(where).forward_of_torch || module_of(where).type.starts_with(kTorchNn);
}

// Returns whether the module is one of torch's that begin with a state of zeros where none is passed.
bool is_recurrent(const FindingCase& where) {
  constexpr std::array<std::string_view, 6> kRecurrent = {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"};
  std::string_view type = module_of(where).type;
  if (type.starts_with(kTorchNn)) type.remove_prefix(kTorchNn.size());
  if (type.ends_with("Impl")) type.remove_suffix(std::string_view("Impl").size());
  return is_one_of(type, kRecurrent);
}

bool makes_constants(const FindingCase& where) {
  constexpr std::array<std::string_view, 6> kConstants = {"aten::linspace", "aten::arange", "aten::eye",
                                                          "aten::ones",     "aten::full",   "aten::zeros"};
  return is_one_of(*where.ops->op, kConstants);
}

}  // namespace

std::optional<FindingReason> made_in_forward(const FindingCase& where) {
  constexpr std::array<std::string_view, 11> kRandom = {
      "aten::randn",    "aten::rand",       "aten::randint",   "aten::randperm", "aten::normal_",     "aten::normal",
      "aten::uniform_", "aten::randn_like", "aten::rand_like", "aten::random_",  "aten::exponential_"};
  if (where.bucket == nullptr || (!makes_constants(where) && !is_one_of(*where.ops->op, kRandom))) return std::nullopt;
  if (where.bucket->owner.phase != Phase::forward) return std::nullopt;
  if (is_of_torch(where) && !is_recurrent(where)) return std::nullopt;  // nobody can change that
  return FindingReason{time_of(where), {{"elements", static_cast<double>(where.ops->output_elements)}}};
}

Said say_made_in_forward(const FindingCase& where, const NamedFigures& figures) {
  const std::string what = text_of(figures, "elements") + " elements are made anew in each forward, from no input";
  if (is_of_torch(where))
    return {what + ", as no first state is passed", "make the first state (h0; for an LSTM also c0) once and pass it"};
  if (makes_constants(where)) return {what, "make them once, in the constructor (register_buffer)"};
  return {what, "make them in the data loader, or once (register_buffer) where each forward may have the same"};
}

namespace {

// Moves bytes and computes nothing, in one memory.
std::optional<FindingReason> moves_only(const FindingCase& where) {
  if (where.bucket == nullptr || where.bucket->link_bytes > 0 || where.ops->flops > 0) return std::nullopt;
  if (where.bucket->work.read_bytes <= 0) return std::nullopt;
  return FindingReason{
      time_of(where),
      {{"bytes", static_cast<double>(where.ops->bytes)}, {"calls", static_cast<double>(where.ops->calls)}}};
}

std::string copies_text(const NamedFigures& figures) {
  const bool one = value_of(figures, "calls") == 1;
  return text_of(figures, "calls") + (one ? " copy moves " : " copies move ") + text_of(figures, "bytes") +
         (one ? "B and computes nothing" : "B and compute nothing");
}

}  // namespace

std::optional<FindingReason> joins_in_a_loop(const FindingCase& where) {
  constexpr std::array<std::string_view, 2> kJoins = {"aten::cat", "aten::stack"};
  if (!is_one_of(*where.ops->op, kJoins) || where.ops->calls < kMany * calls_of_module(where)) return std::nullopt;
  return moves_only(where);
}

Said say_joins_in_a_loop(const FindingCase&, const NamedFigures& figures) {
  return {copies_text(figures) + ", in a loop, so that parts are copied again with each part that is added",
          "collect the parts in a list and join them once, or write into one tensor that was made before"};
}

std::optional<FindingReason> copies(const FindingCase& where) {
  constexpr std::array<std::string_view, 7> kCopies = {
      "aten::clone", "aten::contiguous", "aten::copy_", "aten::_to_copy", "aten::to", "aten::repeat", "aten::reshape"};
  return is_one_of(*where.ops->op, kCopies) ? moves_only(where) : std::nullopt;
}

Said say_copies(const FindingCase&, const NamedFigures& figures) {
  return {copies_text(figures), "leave out .contiguous(), .clone() and transposes that the next op does not need"};
}

// oneDNN computes convolutions on blocks of channels that fill a vector of 16 floats: of 33 channels the last block has
// one.
std::optional<FindingReason> misaligned_channels(const FindingCase& where) {
  constexpr std::int64_t kBlock = 16;
  constexpr double kMuchPadding = 1.35;
  if (!ran_on_cpu(where) || of_roof(where) >= kNearRoof) return std::nullopt;
  const auto sizes = cases::convolution(where);
  if (!sizes || sizes->groups != 1) return std::nullopt;
  const auto padded = [](std::int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; };
  std::int64_t worst = 0;
  double ratio = 1;
  for (const std::int64_t size : {sizes->in_channels, sizes->out_channels}) {
    const double of_size = static_cast<double>(padded(size)) / static_cast<double>(std::max<std::int64_t>(size, 1));
    if (size <= kBlock || of_size <= ratio) continue;  // fewer have kernels of their own
    worst = size;
    ratio = of_size;
  }
  if (ratio < kMuchPadding) return std::nullopt;
  return FindingReason{part_of(time_of(where), 1 - 1 / ratio),
                       {{"channels", static_cast<double>(worst)},
                        {"block", static_cast<double>(kBlock)},
                        {"ratio", ratio},
                        {"percent_of_roof", of_roof(where)}}};
}

Said say_misaligned_channels(const FindingCase&, const NamedFigures& figures) {
  const auto channels = static_cast<std::int64_t>(value_of(figures, "channels"));
  const auto block = static_cast<std::int64_t>(value_of(figures, "block"));
  const std::int64_t below = channels / block * block;
  return {std::to_string(channels) + " channels just exceed a multiple of " + std::to_string(block) +
              ", the channels of a vector, so that " + text_of(figures, "ratio") + " times as much is computed, at " +
              percent_of_roof(figures),
          "take " + std::to_string(below) + " or " + std::to_string(below + block) + " channels"};
}

}  // namespace roofprof
