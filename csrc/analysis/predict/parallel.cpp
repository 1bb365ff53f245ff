#include "analysis/predict/parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/predict/collective_time.h"
#include "analysis/predict/op_features.h"
#include "analysis/predict/scaling.h"
#include "core/note_codes.h"
#include "core/phrases.h"

namespace roofprof {

std::vector<double> exposed_seconds(const std::vector<Happening>& line, const std::vector<double>& ops,
                                    const std::vector<double>& collectives) {
  struct Span {
    double begin = 0;
    double end = 0;
  };
  std::vector<Span> under_way(collectives.size());
  std::vector<double> exposed(collectives.size());
  double now = 0;
  double free = 0;  // from when on the next collective can start
  for (const auto& [what, index] : line) {
    if (what == Happening::What::op) {
      now += ops[index];
    } else if (what == Happening::What::begins) {
      under_way[index].begin = std::max(now, free);
      under_way[index].end = free = under_way[index].begin + collectives[index];
    } else if (under_way[index].end > now) {
      for (std::size_t i = 0; i < exposed.size(); ++i) {
        const double shared = std::min(under_way[i].end, under_way[index].end) - std::max(under_way[i].begin, now);
        exposed[i] += std::max(shared, 0.0);
      }
      now = under_way[index].end;
    }
  }
  return exposed;
}

namespace {

// torch.nn.parallel.DistributedDataParallel: kDefaultFirstBucketBytes of its reducer, and bucket_cap_mb.
constexpr double kMebibyte = 1 << 20;
constexpr double kFirstBucket = 1 * kMebibyte;
constexpr double kBucket = 25 * kMebibyte;

using What = Happening::What;

bool is_backward(const OpBucket& bucket) {
  return bucket.owner.phase == Phase::backward || bucket.owner.phase == Phase::recompute;
}

// ---- Parameters

// Returns the parameters that each module has itself; of a tensor that several have, one of them.
std::vector<std::int64_t> own_parameters(const Profile& data, std::int64_t Module::* count) {
  const auto& modules = data.tree.modules;
  std::vector<std::int64_t> own(modules.size());
  const auto is_again = [&](std::size_t id) { return modules[id].same_as >= 0; };
  for (std::size_t id = 0; id < modules.size(); ++id) {
    if (is_again(id)) continue;
    own[id] += modules[id].*count;
    if (modules[id].parent >= 0) own[index_of(modules[id].parent)] -= modules[id].*count;
  }
  // A module has less than those in it together where they share tensors. The gradient of such a tensor is there when
  // the first of them, which the backward comes to last, has added its part.
  for (std::size_t id = modules.size(); id-- > 0;) {
    for (std::size_t other = modules.size(); own[id] < 0 && other-- > id + 1;) {
      const auto taken = std::clamp<std::int64_t>(own[other], 0, -own[id]);
      own[other] -= taken;
      own[id] += taken;
    }
    own[id] = std::max<std::int64_t>(own[id], 0);
  }
  return own;
}

// Returns for each module the repeated block that it is in, such as a transformer's; kModel for those in none.
std::vector<ModuleId> blocks_of(const Profile& data) {
  const auto& modules = data.tree.modules;
  std::vector<ModuleId> blocks(modules.size(), kModel);
  for (std::size_t id = 0; id < modules.size(); ++id) {
    const auto parent = modules[id].parent;
    if (parent < 0) continue;
    if (blocks[index_of(parent)] != kModel) {
      blocks[id] = blocks[index_of(parent)];
      continue;
    }
    const bool is_list = !modules[index_of(parent)].has_forward;
    const auto is_like = [&](const Module& other) { return other.parent == parent && other.type == modules[id].type; };
    const bool repeated =
        is_list || (modules[index_of(parent)].type == "Sequential" && std::ranges::count_if(modules, is_like) > 1);
    if (repeated && modules[id].params > 0) blocks[id] = static_cast<ModuleId>(id);
  }
  return blocks;
}

class Planner {
 public:
  Planner(Profile& data, const PredictionOptions& options, double parameter_bytes, std::int64_t steps)
      : data_(data),
        ranks_(options.ranks),
        n_(static_cast<double>(options.ranks)),
        parameter_bytes_(parameter_bytes),
        steps_(steps) {
    const Module& model = data.tree.modules.at(index_of(kModel));
    plan_.weight_bytes = model.param_bytes + model.buffer_bytes;
    for (std::size_t i = 0; i < data.counts.ops.size(); ++i) {
      const auto phase = data.counts.ops[i].owner.phase;
      (is_backward(data.counts.ops[i]) ? backward_ : phase == Phase::optimizer ? optimizer_ : forward_).push_back(i);
    }
  }

  RankPlan planned(Parallel parallel) {
    if (parallel == Parallel::tp) {
      tensors();
      return std::move(plan_);
    }
    check_training(parallel);
    if (parallel == Parallel::ddp) {
      gradients();
    } else {
      shards();
    }
    return std::move(plan_);
  }

 private:
  void check_training(Parallel parallel) const {
    const Module& model = data_.tree.modules.at(index_of(kModel));
    const std::string name(name_of(parallel));
    if (!model.params_known || model.trainable_params <= 0) {
      throw InvalidArgument(name + " sends gradients of parameters, and the report knows none of " +
                            (data_.run.model.empty() ? "the model" : data_.run.model));
    }
    if (backward_.empty()) {
      throw InvalidArgument(name + " sends gradients, and no backward was counted: count a training step" +
                            (parallel == Parallel::ddp ? " (without one its ranks send each other nothing)" : ""));
    }
  }

  // Returns the element type of what is sent as parameters are kept.
  DType parameter_type() const {
    if (parameter_bytes_ > 2) return parameter_bytes_ > 4 ? DType::fp64 : DType::fp32;
    for (const auto& bucket : data_.counts.ops) {
      if (bytes_of(bucket.dtype) == parameter_bytes_) return bucket.dtype;
    }
    return DType::fp16;
  }

  void happens(What what, std::size_t index) { plan_.line.push_back({what, index}); }

  std::size_t begin(CollectiveKind kind, double bytes, DType dtype, const Owner& owner, std::int64_t calls = 1) {
    plan_.collectives.push_back({kind, bytes, dtype, owner, calls});
    happens(What::begins, plan_.collectives.size() - 1);
    return plan_.collectives.size() - 1;
  }

  void await_all() {
    for (std::size_t i = 0; i < plan_.collectives.size(); ++i) happens(What::awaited, i);
  }

  Owner in_backward(ModuleId module, std::size_t op) const {
    return {module, Phase::backward, data_.counts.ops[op].owner.region};
  }

  // ---- ddp

  // Returns for each op of the backward the modules whose gradients are complete after it.
  std::vector<std::vector<ModuleId>> complete_after(const std::vector<std::int64_t>& own) const {
    std::vector<std::optional<std::size_t>> last(own.size());
    for (std::size_t place = 0; place < backward_.size(); ++place) {
      const auto& owner = data_.counts.ops[backward_[place]].owner;
      if (owner.phase == Phase::backward) last[index_of(owner.module)] = place;
    }
    std::vector<std::vector<ModuleId>> complete(backward_.size());
    for (std::size_t id = own.size(); id-- > 0;) {
      if (own[id] <= 0) continue;
      // Another module's ops may use its parameters, as those of MultiheadAttention do.
      auto user = static_cast<ModuleId>(id);
      while (user >= 0 && !last[index_of(user)]) user = data_.tree.modules[index_of(user)].parent;
      complete[user < 0 ? backward_.size() - 1 : *last[index_of(user)]].push_back(static_cast<ModuleId>(id));
    }
    return complete;
  }

  void gradients() {
    const auto own = own_parameters(data_, &Module::trainable_params);
    const auto complete = complete_after(own);
    const auto dtype = parameter_type();
    double bytes = 0;
    double limit = kFirstBucket;
    Owner last;
    for (const auto op : forward_) happens(What::op, op);
    for (std::size_t place = 0; place < backward_.size(); ++place) {
      happens(What::op, backward_[place]);
      for (const auto module : complete[place]) {
        bytes += static_cast<double>(own[index_of(module)]) * parameter_bytes_;
        last = in_backward(module, backward_[place]);
        if (bytes < limit) continue;
        begin(CollectiveKind::all_reduce, std::exchange(bytes, 0), dtype, last);
        limit = kBucket;
      }
    }
    if (bytes > 0) begin(CollectiveKind::all_reduce, bytes, dtype, last);
    await_all();
  }

  // ---- fsdp

  struct Unit {
    double bytes = 0;      // of its parameters
    double gradients = 0;  // of those that are trained
    std::optional<std::size_t> gather;
    bool started = false;
  };

  // The ops of one pass over the model, each unit's after its parameters have come; the next unit's are under way.
  void pass(const std::vector<std::size_t>& ops, const std::vector<ModuleId>& blocks, std::vector<Unit> units,
            Phase phase) {
    std::vector<ModuleId> order = {kModel};  // the model's own come first
    std::vector<std::size_t> last(units.size());
    for (std::size_t place = 0; place < ops.size(); ++place) {
      const auto unit = blocks[index_of(data_.counts.ops[ops[place]].owner.module)];
      last[index_of(unit)] = place;
      if (std::ranges::find(order, unit) == order.end()) order.push_back(unit);
    }
    std::erase_if(order, [&](ModuleId unit) { return units[index_of(unit)].bytes <= 0; });
    const auto dtype = parameter_type();
    const auto gather = [&](std::size_t next, std::size_t op) {
      if (next >= order.size() || units[index_of(order[next])].gather) return;
      Unit& unit = units[index_of(order[next])];
      const Owner owner{order[next], phase, data_.counts.ops[op].owner.region};
      unit.gather = begin(CollectiveKind::all_gather, unit.bytes, dtype, owner);
    };
    for (std::size_t place = 0; place < ops.size(); ++place) {
      const auto op = ops[place];
      const auto id = blocks[index_of(data_.counts.ops[op].owner.module)];
      Unit& unit = units[index_of(id)];
      if (unit.bytes > 0 && !std::exchange(unit.started, true)) {
        const auto place_in_order = static_cast<std::size_t>(std::ranges::find(order, id) - order.begin());
        gather(0, op);
        gather(place_in_order, op);
        happens(What::awaited, *unit.gather);
        gather(place_in_order + 1, op);
      }
      happens(What::op, op);
      if (phase == Phase::backward && unit.gradients > 0 && last[index_of(id)] == place) {
        begin(CollectiveKind::reduce_scatter, unit.gradients, dtype, in_backward(id, op));
      }
    }
  }

  void shards() {
    const auto blocks = blocks_of(data_);
    const auto own = own_parameters(data_, &Module::params);
    const auto trained = own_parameters(data_, &Module::trainable_params);
    std::vector<Unit> units(data_.tree.modules.size());
    double largest = 0;
    for (std::size_t id = 0; id < own.size(); ++id) {
      Unit& unit = units[index_of(blocks[id])];
      unit.bytes += static_cast<double>(own[id]) * parameter_bytes_;
      unit.gradients += static_cast<double>(trained[id]) * parameter_bytes_;
      largest = std::max(largest, unit.bytes);
    }
    pass(forward_, blocks, units, Phase::forward);
    pass(backward_, blocks, units, Phase::backward);
    await_all();
    for (const auto op : optimizer_) scale_work(data_.counts.ops[op].work, 1 / n_);
    const Module& model = data_.tree.modules.at(index_of(kModel));
    plan_.weight_bytes = model.buffer_bytes + std::llround(static_cast<double>(model.param_bytes) / n_ + largest);
  }

  // ---- tp

  enum class Size : std::uint8_t { rows, width, depth };

  struct Product {
    std::size_t op = 0;
    Size split = Size::width;  // width: each rank has some of the outputs; depth: some of the inputs
  };

  // Products from one that each rank has some outputs of to the one that adds up: attention's projections, an MLP's.
  struct Pair {
    std::vector<Product> products;  // the last one adds up
    ModuleId block = kModel;
  };

  bool can_be_split(std::size_t op) const {
    const auto& features = features_[op];
    return features.op == OpClass::linear && features.macs > 0 && features.rows > 0 && features.width > 0;
  }

  static bool is_attention(OpClass op) {
    return op == OpClass::attention || op == OpClass::unfused_attention || op == OpClass::softmax;
  }

  void add_pairs(ModuleId block, const std::vector<ModuleId>& blocks) {
    std::vector<Product> pending;
    bool attended = false;
    const auto pair_up = [&] {
      pending.back().split = Size::depth;
      pairs_.push_back({std::exchange(pending, {}), block});
      attended = false;
    };
    for (const auto op : forward_) {
      if (blocks[index_of(data_.counts.ops[op].owner.module)] != block) continue;
      if (can_be_split(op)) {
        pending.push_back({op, Size::width});
        if (attended) pair_up();
      } else if (is_attention(features_[op].op) && !pending.empty()) {
        attended = true;
      }
    }
    if (pending.size() > 1) pair_up();
  }

  void find_pairs() {
    const auto blocks = blocks_of(data_);
    block_of_ = blocks;
    std::vector<ModuleId> seen;
    for (const auto op : forward_) {
      const auto block = blocks[index_of(data_.counts.ops[op].owner.module)];
      if (block == kModel || std::ranges::find(seen, block) != seen.end()) continue;
      seen.push_back(block);
      add_pairs(block, blocks);
    }
    if (pairs_.empty()) {  // the model may be a block itself
      block_of_.assign(block_of_.size(), kModel);
      add_pairs(kModel, block_of_);
    }
    if (pairs_.empty()) {
      throw InvalidArgument("tp splits the products around attention, and pairs of products such as an MLP's: " +
                            (data_.run.model.empty() ? "the model" : data_.run.model) + " has none");
    }
    for (const auto& pair : pairs_) {
      for (const auto& product : pair.products) check_divides(product);
    }
  }

  void check_divides(const Product& product) const {
    const auto& features = features_[product.op];
    const bool outputs = product.split == Size::width;
    const double size = outputs ? features.width : features.depth;
    if (std::fmod(size, n_) == 0) return;
    const auto& module = data_.tree.modules[index_of(data_.counts.ops[product.op].owner.module)];
    throw InvalidArgument(std::to_string(ranks_) + " ranks cannot share the " + short_text(size, 9) +
                          (outputs ? " outputs of " : " inputs of ") + display_path(module.path) +
                          ": it is no multiple");
  }

  // Returns which size of an op of the backward or of a recomputation is split; empty if it is not of that product.
  std::optional<Size> split_size(std::size_t op, const Product& product) const {
    const auto& here = features_[op];
    const auto& forward = features_[product.op];
    if (!can_be_split(op) || data_.counts.ops[op].owner.module != data_.counts.ops[product.op].owner.module)
      return std::nullopt;
    const auto sorted = [](const OpFeatures& of) {
      std::array sizes{of.rows, of.width, of.depth};
      std::ranges::sort(sizes);
      return sizes;
    };
    if (sorted(here) != sorted(forward)) return std::nullopt;
    if (data_.counts.ops[op].owner.phase == Phase::recompute) return product.split;
    const bool of_outputs = product.split == Size::width;
    const double size = of_outputs ? forward.width : forward.depth;
    if (here.depth == forward.rows && here.depth != size) return here.rows == size ? Size::rows : Size::width;
    return of_outputs ? Size::depth : Size::width;  // the gradient of its input
  }

  void split_product(std::size_t op, Size size) {
    OpBucket& bucket = data_.counts.ops[op];
    const auto& features = features_[op];
    double rows = features.rows;
    double width = features.width;
    double depth = features.depth;
    const auto read = [&] { return depth * (rows + width); };
    const double read_before = read();
    const double written_before = rows * width;
    (size == Size::rows ? rows : size == Size::width ? width : depth) /= n_;
    Work& work = bucket.work;
    const double read_bytes = static_cast<double>(work.read_bytes) * read() / read_before;
    const double written = rows * width / written_before;
    const double write_bytes = static_cast<double>(work.write_bytes) * written;
    const double output_elements = static_cast<double>(work.output_elements) * written;
    const double input_elements = static_cast<double>(work.input_elements) * (size == Size::width ? 1 : 1 / n_);
    scale_work(work, 1 / n_);
    work.read_bytes = std::llround(read_bytes);
    work.write_bytes = std::llround(write_bytes);
    work.output_elements = std::llround(output_elements);
    work.input_elements = std::llround(input_elements);
    split_shapes(bucket, size);
  }

  void split_shapes(OpBucket& bucket, Size size) const {
    auto& shapes = bucket.shapes.tensors;
    const auto name = plain_name(bucket.op);
    const bool linear = name == "linear";
    const std::size_t first = name == "addmm" && shapes.size() > 2 ? 1 : 0;
    if (shapes.size() < first + 2 || shapes[first].size() < 2 || shapes[first + 1].size() != 2) return;
    const auto divide = [&](std::int64_t& length) {
      if (length >= 0) length = std::max<std::int64_t>(length / ranks_, 1);
    };
    Shape& matrix = shapes[first];
    Shape& other = shapes[first + 1];
    if (size == Size::rows) divide(matrix[matrix.size() - 2]);
    if (size == Size::depth) {
      divide(matrix.back());
      divide(other[linear ? 1 : 0]);
    }
    if (size == Size::width) {
      divide(other[linear ? 0 : 1]);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (i != first && i != first + 1 && !shapes[i].empty()) divide(shapes[i].back());
      }
    }
  }

  // Another op between the products of a pair: each rank has some heads, or some elements of each row.
  void split_other(OpBucket& bucket) const {
    scale_work(bucket.work, 1 / n_);
    const auto op = class_of(bucket, sized_shapes(bucket));
    const bool of_products = op == OpClass::batched_matmul || op == OpClass::softmax;
    for (auto& shape : bucket.shapes.tensors) {
      if (!has_sizes(shape)) continue;
      std::size_t at = shape.size() - 1;
      if (shape.size() == 4) at = 1;
      if (shape.size() == 3 && of_products) at = 0;
      if (shape[at] % ranks_ == 0) shape[at] /= ranks_;
    }
  }

  // Splits what a phase does of a pair, and returns its last op; empty where the phase does nothing of it.
  std::optional<std::size_t> split_pair(const Pair& pair, const std::vector<std::size_t>& ops, Phase phase) {
    std::vector<std::pair<std::size_t, Size>> found;
    for (const auto op : ops) {
      if (data_.counts.ops[op].owner.phase != phase) continue;
      for (const auto& product : pair.products) {
        const auto size = phase == Phase::forward ? (op == product.op ? std::optional(product.split) : std::nullopt)
                                                  : split_size(op, product);
        if (!size) continue;
        found.emplace_back(op, *size);
        break;
      }
    }
    if (found.empty()) return std::nullopt;
    const auto begin = found.front().first;
    const auto end = found.back().first;
    for (const auto op : ops) {
      OpBucket& bucket = data_.counts.ops[op];
      if (op <= begin || op >= end || bucket.owner.phase != phase || can_be_split(op)) continue;
      if (block_of_[index_of(bucket.owner.module)] == pair.block) split_other(bucket);
    }
    for (const auto& [op, size] : found) split_product(op, size);
    return end;
  }

  void tensors() {
    features_ = features_of(data_, {.autocast = false});
    find_pairs();
    struct Sum {
      std::size_t after = 0;
      PlannedCollective sum;
    };
    std::vector<Sum> sums;
    double split = 0;  // parameters
    for (const auto& pair : pairs_) {
      const auto& first = features_[pair.products.front().op];
      const auto& last = features_[pair.products.back().op];
      for (const auto& product : pair.products) split += features_[product.op].width * features_[product.op].depth;
      for (const auto phase : {Phase::forward, Phase::recompute, Phase::backward}) {
        const auto end = split_pair(pair, phase == Phase::forward ? forward_ : backward_, phase);
        if (!end) continue;
        const OpBucket& bucket = data_.counts.ops[*end];
        const double elements = phase == Phase::backward ? first.rows * first.depth : last.rows * last.width;
        const auto calls = std::max<std::int64_t>(data_.counts.ops[pair.products.back().op].calls / steps_, 1);
        sums.push_back({*end,
                        {CollectiveKind::all_reduce, elements * bytes_of(bucket.dtype).value_or(0), bucket.dtype,
                         bucket.owner, calls}});
      }
    }
    std::ranges::stable_sort(sums, {}, &Sum::after);
    auto next = sums.begin();
    for (std::size_t op = 0; op < data_.counts.ops.size(); ++op) {
      happens(What::op, op);
      for (; next != sums.end() && next->after == op; ++next) {
        const auto& sum = next->sum;
        happens(What::awaited, begin(sum.kind, sum.bytes, sum.dtype, sum.owner, sum.calls));
      }
    }
    const Module& model = data_.tree.modules.at(index_of(kModel));
    if (model.params <= 0) return;
    const double kept = 1 - std::min(split / static_cast<double>(model.params), 1.0) * (1 - 1 / n_);
    for (const auto op : optimizer_) scale_work(data_.counts.ops[op].work, kept);
    plan_.weight_bytes = model.buffer_bytes + std::llround(static_cast<double>(model.param_bytes) * kept);
  }

  Profile& data_;
  std::int64_t ranks_;
  double n_;  // ranks
  double parameter_bytes_;
  std::int64_t steps_;
  RankPlan plan_;
  // The ops, by when they run.
  std::vector<std::size_t> forward_;
  std::vector<std::size_t> backward_;  // and what is recomputed there
  std::vector<std::size_t> optimizer_;
  // Of tp
  std::vector<OpFeatures> features_;  // as they were counted
  std::vector<ModuleId> block_of_;
  std::vector<Pair> pairs_;
};

// ---- The collectives of a predicted profile

std::string_view op_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "c10d::_allgather_base_";
    case CollectiveKind::reduce_scatter:
      return "c10d::_reduce_scatter_base_";
    default:
      return "c10d::allreduce_";
  }
}

std::string_view words_of(Parallel parallel) {
  switch (parallel) {
    case Parallel::ddp:
      return "gradients are all-reduced in buckets of 25 MiB, the first of 1 MiB, while the backward goes on";
    case Parallel::fsdp:
      return "each block's parameters are gathered before its forward and again before its backward, one block ahead, "
             "and its gradients reduce-scattered while the backward goes on";
    case Parallel::tp:
      return "the products of attention and of MLPs are split, and what each rank made of them is all-reduced; norms, "
             "embeddings and the head are computed by each rank";
  }
  return "";
}

void note_ranks(Profile& data, const Ceilings& ceilings, const PredictionOptions& options) {
  // NCCL was measured with up to so many ranks, and on PCIe with more than two on one host alone.
  constexpr std::int64_t kMeasuredRanks = 8;
  const double exposed = static_cast<double>(data.comms->exposed_ns.value_or(0));
  const double all = static_cast<double>(data.comms->time_ns.value_or(0));
  const std::string link = ceilings.facts.link.empty() ? "the measured network" : ceilings.facts.link;
  add_note(data.notes, "prediction-ranks",
           "one of " + std::to_string(options.ranks) + " ranks by " + std::string(name_of(options.parallel)) +
               " over " + link + ": " +
               (all > 0 ? percent(exposed / all) + " of the communication is exposed" : "nothing is sent") + "; " +
               std::string(words_of(options.parallel)) + "; neither slows the other down");
  if (options.ranks > kMeasuredRanks) {
    add_note(data.notes, "prediction-doubtful",
             "no collective of more than 8 ranks was measured: all are taken to be linked as those of one machine");
  } else if (options.ranks > 2 && is_on_pcie(ceilings.facts) && ceilings.network.empty()) {
    add_note(data.notes, "prediction-doubtful",
             "how fast more than two ranks send over PCIe depends on their host, and one host was measured: give roofs "
             "with a measured network");
  }
}

}  // namespace

RankPlan plan_ranks(Profile& data, const PredictionOptions& options, double parameter_bytes, std::int64_t steps) {
  if (std::ranges::any_of(data.counts.ops, [](const OpBucket& bucket) { return is_communication(bucket.op); })) {
    throw InvalidArgument(
        "the report has collectives, so it is of one of several ranks already: give the count of the model alone");
  }
  return Planner(data, options, parameter_bytes, steps).planned(options.parallel);
}

std::vector<CollectiveTimes> collective_times(const RankPlan& plan, const std::vector<double>& ops, std::int64_t ranks,
                                              const Ceilings& ceilings, const PredictionParameters& parameters) {
  std::vector<double> seconds;
  for (const auto& planned : plan.collectives) {
    seconds.push_back(static_cast<double>(planned.calls) *
                      collective_seconds(planned.kind, planned.bytes, ranks, ceilings, parameters));
  }
  const auto exposed_with = [&](double factor) {
    auto all = seconds;
    for (auto& one : all) one *= factor;
    return exposed_seconds(plan.line, ops, all);
  };
  const auto exposed = exposed_with(1);
  const auto low = exposed_with(parameters.collectives.low);
  const auto high = exposed_with(parameters.collectives.high);
  std::vector<CollectiveTimes> times;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    // Another collective may hide less where those before it take longer.
    times.push_back({seconds[i], exposed[i], std::min(low[i], exposed[i]), std::max(high[i], exposed[i])});
  }
  return times;
}

void add_collectives(Profile& data, const RankPlan& plan, const Ceilings& ceilings, const PredictionOptions& options,
                     const PredictionParameters& parameters, std::int64_t steps) {
  constexpr double kNanosecondsInSecond = 1e9;
  const double in_all_steps = static_cast<double>(steps) * kNanosecondsInSecond;
  std::vector<double> ops;
  for (const auto& bucket : data.counts.ops)
    ops.push_back(static_cast<double>(bucket.time_ns.value_or(0)) / in_all_steps);
  const auto times = collective_times(plan, ops, options.ranks, ceilings, parameters);

  CollectiveData& to = data.comms.make();
  to.groups = {{.name = std::string(name_of(options.parallel)), .backend = "nccl", .ranks = options.ranks}};
  std::int64_t all_ns = 0;
  std::int64_t all_exposed_ns = 0;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const auto& planned = plan.collectives[i];
    const auto calls = planned.calls * steps;
    const auto bytes = std::llround(planned.bytes) * calls;
    const auto of_rank = bytes / options.ranks;
    OpBucket bucket;
    bucket.op = op_of(planned.kind);
    bucket.owner = planned.owner;
    bucket.dtype = planned.dtype;
    const double elements = planned.bytes / bytes_of(planned.dtype).value_or(1);
    const bool gathers = planned.kind == CollectiveKind::all_gather;
    bucket.shapes.tensors = {{std::llround(gathers ? elements / static_cast<double>(options.ranks) : elements)}};
    bucket.calls = calls;
    bucket.work.read_bytes = gathers ? of_rank : bytes;
    bucket.work.write_bytes = planned.kind == CollectiveKind::reduce_scatter ? of_rank : bytes;
    const auto exposed_ns = std::llround(times[i].exposed * in_all_steps);
    const auto time_ns = std::llround(times[i].seconds * in_all_steps);
    bucket.time_ns = exposed_ns;
    bucket.time_low_ns = std::llround(times[i].low * in_all_steps);
    bucket.time_high_ns = std::llround(times[i].high * in_all_steps);
    const auto index = std::ssize(data.counts.ops);
    data.counts.ops.push_back(std::move(bucket));
    if (exposed_ns > 0) to.exposed_in.push_back({std::ssize(to.collectives), planned.owner, exposed_ns});
    to.collectives.push_back({.bucket = index,
                              .group = 0,
                              .calls = calls,
                              .timed_calls = calls,
                              .time_ns = time_ns,
                              .exposed_ns = exposed_ns,
                              .exposed_known = true});
    all_ns = saturating_add(all_ns, time_ns);
    all_exposed_ns = saturating_add(all_exposed_ns, exposed_ns);
  }
  to.time_ns = all_ns;
  to.exposed_ns = all_exposed_ns;
  note_ranks(data, ceilings, options);
}

}  // namespace roofprof
