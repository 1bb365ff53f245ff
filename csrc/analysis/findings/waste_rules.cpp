#include "analysis/findings/waste_rules.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/findings/finding_case.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

using cases::part_of;
using sentences::number;

constexpr std::int64_t kMany = 8;        // calls of one op in a call of its module: a loop
constexpr double kShortCall = 20e3;      // ns: starting an op of Python takes about so long
constexpr double kLongBetweenOps = 1e5;  // ns of host code for each op: more than calling ops takes

template <class Names>
bool is_one_of(std::string_view op, const Names& names) {
  return std::ranges::find(names, op) != names.end();
}

// Returns how often the module was called in the forward; 1 where its calls are not known.
std::int64_t calls_of_module(const FindingCase& where) { return std::max<std::int64_t>(where.calls.forwards, 1); }

// Returns whether the host's own code may take the time: neither a device nor compiled code is what it waits for.
bool ran_op_by_op_on_host(const FindingCase& where) { return !where.data->device && !where.program->compiled; }

// Returns whether an op is over so soon that starting it is what takes the time.
bool is_short(const FindingCase& where) {
  return where.bucket != nullptr && where.ops->calls >= kMany && where.call_ns() < kShortCall &&
         where.of_roof() < cases::kFarFromRoof;
}

}  // namespace

// ---- the host

std::optional<Ruling> reads_on_host(const FindingCase& where) {
  constexpr std::int64_t kMuchOfAll = 5;  // one of so many calls is a read
  const auto reads = where.calls.reads_on_host;
  if (!ran_op_by_op_on_host(where) || (!where.is_outside_ops() && !is_short(where))) return std::nullopt;
  if (reads < kMany * calls_of_module(where) || reads * kMuchOfAll < where.calls.ops) return std::nullopt;
  return Ruling{
      .at_stake_ns = where.time_ns(),
      .evidence = {{"reads", reads}},
      .text = number(reads) +
              " values are read on the host one by one (item(), bool(), float() of a tensor), and the "
              "code waits for each",
      .action = "keep the decision in tensors (torch.where, masks), or read all values at once (tolist())",
      .gain = {0.3, 1, kTimesOfReport, Confidence::high, "the calls that read values on the host were counted"},
      .reference = "this report's aten::_local_scalar_dense"};
}

namespace {

// Both rules on it say this of the host's code. A call on a host usually spends a tenth of its time between ops.
Ruling of_code_between_ops(const FindingCase& where, std::int64_t at_stake_ns, std::string_view because,
                           std::string_view reference) {
  return {.at_stake_ns = at_stake_ns,
          .evidence = {{"calls", saturating_add(where.calls.ops, where.calls.modules_inside)}},
          .text = "it is spent in the host's code between calls of ops and modules, and in starting them",
          .action = std::string("larger batches give each op more to do") +
                    (where.may_compile() ? ", torch.compile takes that code out" : ""),
          .try_it = std::string(kCompileIt),
          .gain = {0.1, 0.95, kTimesOfReport, Confidence::medium, because},
          .reference = reference};
}

}  // namespace

std::optional<Ruling> outside_ops_of_host(const FindingCase& where) {
  if (!where.is_outside_ops() || !ran_op_by_op_on_host(where)) return std::nullopt;
  if (where.data->counts.ops.empty()) return std::nullopt;  // then it is all that the call does
  // If most of it may be waiting for other ranks, the host's code is not the cause.
  const auto& collectives = *where.data->comms;
  if (collectives.exposed_in.empty() && 2 * collectives.exposed_ns.value_or(0) > where.time_ns()) return std::nullopt;
  Ruling ruling = of_code_between_ops(where, where.outside_ns(), "the time was seen to pass outside of long ops",
                                      "this report's time outside ops");
  const auto calls = saturating_add(where.calls.ops, where.calls.modules_inside);
  const auto ns = static_cast<double>(where.outside_ns());
  ruling.evidence.emplace_back("time_us", ns / 1e3);
  const bool is_most = 2 * ns > where.all.time_ns;
  if (is_most && ns > kLongBetweenOps * std::max(static_cast<double>(calls), 1.0)) {
    ruling.text = "it is spent in the host's code beside torch: " + sentences::text_of_microseconds(ns / 1e3) +
                  " with " + counted(calls, "call of an op", "calls of ops");
    ruling.action =
        "look for loops, files and conversions there (py-spy, cProfile), and do them once or in the data loader";
    ruling.try_it = "python -m cProfile -s tottime program.py";
  }
  return ruling;
}

std::optional<Ruling> short_calls(const FindingCase& where) {
  if (!ran_op_by_op_on_host(where) || !is_short(where)) return std::nullopt;
  return of_code_between_ops(where, where.wasted_ns(), "the time was seen to pass in short ops",
                             "this report's calls and times");
}

// ---- types

namespace {

// Returns whether parameters or buffers may be in fp64; where neither are, changing the model's type changes nothing.
bool may_hold_fp64(const Profile& data) {
  constexpr std::int64_t kBytesOfFp32 = 4;
  const Module& model = data.tree.modules[kModel];
  return !model.params_known || model.buffer_bytes > 0 ||
         model.param_bytes > saturating_multiply(kBytesOfFp32, model.params);
}

}  // namespace

std::optional<Ruling> double_precision(const FindingCase& where) {
  if (where.bucket == nullptr || where.bucket->dtype != DType::fp64) return std::nullopt;
  const auto* wide = where.data->roofs.compute_for(DType::fp64);
  const auto* narrow = where.data->roofs.compute_for(DType::fp32);
  double ratio = 2;  // of the bytes
  // oneDNN has no convolutions in fp64: ATen's own took three times as long or more (docs/findings.md).
  if (where.ran_on_cpu() && where.convolution()) ratio = 3;
  if (where.is_bound(BoundKind::compute) && wide != nullptr && narrow != nullptr && wide->operations_per_second > 0)
    ratio = std::max(ratio, narrow->operations_per_second / wide->operations_per_second);
  const bool casts = where.program->may_cast_to_fp64;
  const bool model_to_fp32_helps = !casts && may_hold_fp64(*where.data) && cases::takes_one_tensor(*where.data);
  return Ruling{
      .at_stake_ns = part_of(where.time_ns(), 1 - 1 / ratio),
      .evidence = {{"ratio", ratio}},
      .text = "computes in fp64, which takes " + number(ratio) + " times as long as fp32 by its bytes and roofs",
      .action = std::string("compute in fp32, where no digit needs fp64: ") +
                (casts ? "the forward itself casts to fp64 (.double(), .to), so change that together with the weights"
                       : "a constant of NumPy or Python, or the type of an input, may have made it so"),
      .try_it = std::string(model_to_fp32_helps ? kToFp32 : ""),
      .gain = {0.5, 1.5, kRoofOfOther, Confidence::high, "bytes and operations follow from the type"},
      .reference = "this report's dtypes and roofs"};
}

// ---- work that need not be done

namespace {

constexpr std::string_view kTorchNn = "torch::nn::";

// Returns whether torch wrote the forward that calls the op.
bool is_of_torch(const Module& module) { return module.forward_of_torch || module.type.starts_with(kTorchNn); }

// Returns whether the module is one of torch's that begin with a state of zeros where none is passed.
bool is_recurrent(const Module& module) {
  constexpr std::array<std::string_view, 6> kRecurrent = {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"};
  std::string_view type = module.type;
  if (type.starts_with(kTorchNn)) type.remove_prefix(kTorchNn.size());
  if (type.ends_with("Impl")) type.remove_suffix(std::string_view("Impl").size());
  return is_one_of(type, kRecurrent);
}

}  // namespace

std::optional<Ruling> made_in_forward(const FindingCase& where) {
  constexpr std::array<std::string_view, 6> kConstants = {"aten::linspace", "aten::arange", "aten::eye",
                                                          "aten::ones",     "aten::full",   "aten::zeros"};
  constexpr std::array<std::string_view, 11> kRandom = {
      "aten::randn",    "aten::rand",       "aten::randint",   "aten::randperm", "aten::normal_",     "aten::normal",
      "aten::uniform_", "aten::randn_like", "aten::rand_like", "aten::random_",  "aten::exponential_"};
  const bool constant = is_one_of(*where.ops->op, kConstants);
  if (where.bucket == nullptr || (!constant && !is_one_of(*where.ops->op, kRandom))) return std::nullopt;
  if (where.bucket->owner.phase != Phase::forward) return std::nullopt;
  const Module& module = where.data->tree.modules[index_of(where.bucket->owner.module)];
  const bool first_state = is_of_torch(module);
  if (first_state && !is_recurrent(module)) return std::nullopt;  // nobody can change that
  const auto elements = where.ops->output_elements;
  return Ruling{
      .at_stake_ns = where.time_ns(),
      .evidence = {{"elements", elements}},
      .text = number(elements) + " elements are made anew in each forward, from no input" +
              (first_state ? ", as no first state is passed" : ""),
      .action = first_state ? "make the first state (h0; for an LSTM also c0) once and pass it"
                : constant
                    ? "make them once, in the constructor (register_buffer)"
                    : "make them in the data loader, or once (register_buffer) where each forward may have the same",
      .gain = {0.5, 1, kTimesOfReport, Confidence::high, "these ops depend on no input"},
      .reference = "this report's ops"};
}

namespace {

bool is_joined_in_a_loop(const FindingCase& where) {
  constexpr std::array<std::string_view, 2> kJoins = {"aten::cat", "aten::stack"};
  return is_one_of(*where.ops->op, kJoins) && where.ops->calls >= kMany * calls_of_module(where);
}

bool is_copied(const FindingCase& where) {
  constexpr std::array<std::string_view, 7> kCopies = {
      "aten::clone", "aten::contiguous", "aten::copy_", "aten::_to_copy", "aten::to", "aten::repeat", "aten::reshape"};
  return is_one_of(*where.ops->op, kCopies);
}

// Moves bytes and computes nothing, in one memory.
bool moves_only(const FindingCase& where) {
  return where.bucket != nullptr && where.bucket->link_bytes <= 0 && where.ops->flops <= 0 &&
         where.bucket->work.read_bytes > 0;
}

// Both rules on copies say this.
Ruling of_copies(const FindingCase& where) {
  const auto [bytes, calls] = std::pair(where.ops->bytes, where.ops->calls);
  return {.at_stake_ns = where.time_ns(),
          .evidence = {{"bytes", bytes}, {"calls", calls}},
          .text = number(calls) + (calls == 1 ? " copy moves " : " copies move ") + number(bytes) +
                  (calls == 1 ? "B and computes nothing" : "B and compute nothing"),
          .gain = {.basis = kTimesOfReport},
          .reference = "this report's ops without operations"};
}

}  // namespace

bool moves_as_requested(const FindingCase& where) {
  return moves_only(where) && (is_joined_in_a_loop(where) || is_copied(where));
}

std::optional<Ruling> joins_in_a_loop(const FindingCase& where) {
  if (!moves_only(where) || !is_joined_in_a_loop(where)) return std::nullopt;
  Ruling ruling = of_copies(where);
  ruling.text += ", in a loop, so that parts are copied again with each part that is added";
  ruling.action = "collect the parts in a list and join them once, or write into one tensor that was made before";
  ruling.gain = {0.6, 1, kTimesOfReport, Confidence::high, "joined once, each part is copied once"};
  return ruling;
}

std::optional<Ruling> copies(const FindingCase& where) {
  if (!moves_only(where) || !is_copied(where)) return std::nullopt;
  Ruling ruling = of_copies(where);
  ruling.action = "leave out .contiguous(), .clone() and transposes that the next op does not need";
  ruling.gain = {0, 1, kTimesOfReport, Confidence::medium, "some ops need a copy in another layout"};
  return ruling;
}

// oneDNN computes convolutions on blocks of channels that fill a vector of 16 floats: of 33 channels the last block has
// one.
std::optional<Ruling> misaligned_channels(const FindingCase& where) {
  constexpr std::int64_t kBlock = 16;
  constexpr double kMuchPadding = 1.35;
  if (!where.ran_on_cpu() || where.of_roof() >= cases::kNearRoof) return std::nullopt;
  const auto sizes = where.convolution();
  if (!sizes || sizes->groups != 1) return std::nullopt;
  std::int64_t channels = 0;  // of the side that wastes most
  double ratio = 1;
  for (const std::int64_t size : {sizes->in_channels, sizes->out_channels}) {
    const std::int64_t padded = (size + kBlock - 1) / kBlock * kBlock;
    const double of_size = static_cast<double>(padded) / static_cast<double>(std::max<std::int64_t>(size, 1));
    if (size <= kBlock || of_size <= ratio) continue;  // fewer have kernels of their own
    channels = size;
    ratio = of_size;
  }
  if (ratio < kMuchPadding) return std::nullopt;
  const std::int64_t below = channels / kBlock * kBlock;
  return Ruling{.at_stake_ns = part_of(where.time_ns(), 1 - 1 / ratio),
                .evidence = {{"channels", channels},
                             {"block", kBlock},
                             {"ratio", ratio},
                             {"percent_of_roof", where.all.percent_of_roof}},
                .text = std::to_string(channels) + " channels just exceed a multiple of " + std::to_string(kBlock) +
                        ", the channels of a vector, so that " + number(ratio) + " times as much is computed, at " +
                        where.all.roof_text(),
                .action = "take " + std::to_string(below) + " or " + std::to_string(below + kBlock) + " channels",
                .gain = {0.2, 1.5, "padding to whole vectors", Confidence::medium, "oneDNN may choose another block"},
                .reference = "oneDNN, blocks of 16 channels; docs/findings.md"};
}

}  // namespace roofprof
