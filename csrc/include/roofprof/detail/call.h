#pragma once
// A call of a C++ model that can be made again and again, with the arguments that the first one got.

#include <concepts>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofprof/version.h"

namespace at {
class Tensor;
}

namespace roofprof::detail {

class Call {
 public:
  Call() = default;
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  using Returned = std::function<void(const std::vector<const at::Tensor*>* tensors)>;
  // Makes the caller's call, with the arguments that the caller gave. `returned` gets the tensors that it returns,
  // before they are dropped; null where these may not be all.
  virtual void first(const Returned& returned) = 0;
  // True if arguments are left for further calls: an argument that can only be moved is gone after the first call.
  virtual bool repeatable() const = 0;
  // Makes arguments for one further call, and then that call: the part that is timed.
  virtual void prepare() = 0;
  virtual void again() = 0;
  // Returns the tensors among the arguments, also in containers of the standard library.
  virtual std::vector<const at::Tensor*> inputs() const = 0;
};

template <class T>
constexpr bool can_copy() {
  if constexpr (!std::is_copy_constructible_v<T>) {
    return false;
  } else if constexpr (requires { typename T::value_type; }) {  // a vector says that it can, whatever it holds
    using Item = std::remove_cv_t<typename T::value_type>;
    if constexpr (!std::is_same_v<Item, T>) return can_copy<Item>();
  }
  return true;
}

// True if a further call gets a copy of an argument (`Arg` as a forwarding reference deduces it), made before the first
// call and again before each: no call sees what another did to it. Constants need no copy; a reference to a base class
// gets none, because a copy would be sliced.
template <class Arg, class Value = std::remove_reference_t<Arg>>
constexpr bool is_copied = !std::is_const_v<Value> && std::is_object_v<Value> && !std::is_array_v<Value> &&
                           !(std::is_lvalue_reference_v<Arg> && std::is_polymorphic_v<Value>) && can_copy<Value>();

template <class Arg>
constexpr bool is_used_up = !std::is_lvalue_reference_v<Arg> && !std::is_const_v<Arg> && !is_copied<Arg>;

// Returns a copy of the container: those of torch (c10::Dict, c10::List) copy as references.
template <class T>
T copy_of(const T& value) {
  if constexpr (requires {
                  { value.copy() } -> std::same_as<T>;
                }) {
    return value.copy();
  } else {
    return value;
  }
}

// torch::nn::utils::rnn::PackedSequence.
template <class T>
concept PackedTensors = requires(const T& value) {
  value.data();
  value.batch_sizes();
  value.sorted_indices();
  value.unsorted_indices();
};

// `found`: a vector of them.
template <class T, class Found>
void collect_tensors(const T& value, Found& found) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    found.push_back(&value);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) collect_tensors(*value, found);
  } else if constexpr (PackedTensors<T>) {
    for (const auto* tensor :
         {&value.data(), &value.batch_sizes(), &value.sorted_indices(), &value.unsorted_indices()}) {
      found.push_back(tensor);
    }
  } else if constexpr (requires {
                         std::begin(value);
                         std::end(value);
                       }) {
    using Item = decltype(*std::begin(value));
    if constexpr (std::is_lvalue_reference_v<Item> && !std::is_same_v<std::remove_cvref_t<Item>, T> &&
                  std::is_class_v<std::remove_cvref_t<Item>>) {
      for (const auto& item : value) collect_tensors(item, found);
    }
    // tuple_size_v of anything else is an error. NOLINTNEXTLINE(modernize-type-traits)
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... items) { (collect_tensors(items, found), ...); }, value);
  }
}

// True if collect_tensors finds every tensor that a value of that type holds: in a user's struct it may miss some.
template <class T>
constexpr bool finds_all_tensors() {
  if constexpr (std::is_same_v<T, at::Tensor> || std::is_arithmetic_v<T> || std::is_enum_v<T> || PackedTensors<T>) {
    return true;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {  // NOLINT(modernize-type-traits)
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return (finds_all_tensors<std::remove_cvref_t<std::tuple_element_t<i, T>>>() && ...);
    }(std::make_index_sequence<std::tuple_size<T>::value>());  // NOLINT(modernize-type-traits)
  } else if constexpr (requires(const T& value) {
                         { *std::begin(value) } -> std::same_as<const typename T::value_type&>;
                       }) {
    if constexpr (!std::is_same_v<typename T::value_type, T>) return finds_all_tensors<typename T::value_type>();
  } else if constexpr (requires(const T& value) {
                         value.has_value();
                         *value;
                       }) {
    return finds_all_tensors<typename T::value_type>();
  }
  return false;
}

// Keeps nothing of what a call returns.
struct Drop {
  template <class Result>
  void operator()(Result&& /*result*/) const {}
};

// `keep_result` gets what the first call returns, if it returns anything.
template <class Keep, class Function, class... Args>
class CallOf final : public Call {
 public:
  CallOf(const Keep& keep_result, const Function& function, Args&&... args)
      : keep_result_(keep_result),
        function_(function),
        args_(std::forward<Args>(args)...),
        kept_(keep<Args>(args)...) {}

  void first(const Returned& returned) override {
    const auto call = [this](auto&... args) -> decltype(auto) { return function_(static_cast<Args&&>(args)...); };
    using Result = decltype(std::apply(call, args_));
    std::vector<const at::Tensor*> found;
    if constexpr (std::is_void_v<Result>) {
      std::apply(call, args_);
      returned(&found);
    } else {
      auto&& result = std::apply(call, args_);
      if constexpr (finds_all_tensors<std::remove_cvref_t<Result>>()) {
        collect_tensors(result, found);
        returned(&found);
      } else if constexpr (requires { result.template try_get<at::Tensor>(); }) {  // AnyModule's
        const at::Tensor* tensor = result.template try_get<at::Tensor>();
        if (tensor != nullptr) found.push_back(tensor);
        returned(tensor != nullptr ? &found : nullptr);
      } else {
        returned(nullptr);
      }
      keep_result_(std::forward<decltype(result)>(result));
    }
  }
  bool repeatable() const override { return !(is_used_up<Args> || ...); }
  void prepare() override {
    if constexpr (!(is_used_up<Args> || ...)) {
      std::apply([this](auto&... args) { fresh_.emplace(keep<Args>(args)...); }, kept_);
    }
  }
  void again() override {
    if constexpr (!(is_used_up<Args> || ...)) {
      std::apply([this](auto&... args) { function_(static_cast<Args&&>(args)...); }, *fresh_);
    }
  }
  std::vector<const at::Tensor*> inputs() const override {
    std::vector<const at::Tensor*> found;
    std::apply([&](const auto&... args) { (collect_tensors(args, found), ...); }, args_);
    return found;
  }

 private:
  // A copy or the thing itself.
  template <class Arg>
  using Kept = std::conditional_t<is_copied<Arg>, std::remove_reference_t<Arg>, std::remove_reference_t<Arg>&>;
  template <class Arg>
  static Kept<Arg> keep(std::remove_reference_t<Arg>& arg) {
    if constexpr (is_copied<Arg>) {
      return copy_of(arg);
    } else {
      return arg;
    }
  }

  Keep keep_result_;
  Function function_;
  std::tuple<Args&&...> args_;
  std::tuple<Kept<Args>...> kept_;
  std::optional<std::tuple<Kept<Args>...>> fresh_;
};

}  // namespace roofprof::detail
