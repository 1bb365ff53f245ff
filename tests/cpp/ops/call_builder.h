#pragma once
// Builds operator calls in a line, and the checks that every family's test table goes through.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/formula.h"
#include "ops/registry.h"
#include "roofprof/op_call.h"
#include "roofprof/work.h"

namespace roofprof::ops::testing {

using enum roofprof::DType;
using Sizes = std::vector<std::int64_t>;

inline std::int64_t item_bytes_of(DType dtype) {
  switch (dtype) {
    case fp64:
    case int64:
      return 8;
    case fp32:
    case tf32:
    case int32:
      return 4;
    case fp16:
    case bf16:
    case int16:
      return 2;
    default:
      return 1;  // fp4 and int4 are held packed, in bytes
  }
}

inline TensorDesc tensor(DType dtype, Sizes sizes) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.item_bytes = item_bytes_of(dtype);
  desc.sizes = std::move(sizes);
  return desc;
}

inline TensorDesc nested_tensor(DType dtype, const std::vector<Sizes>& components) {
  TensorDesc desc = tensor(dtype, components.front());
  for (const auto& component : components) {
    for (std::size_t dim = 0; dim < component.size(); ++dim) {
      if (component[dim] != components.front()[dim]) desc.sizes[dim] = TensorDesc::kRagged;
    }
  }
  desc.sizes.insert(desc.sizes.begin(), static_cast<std::int64_t>(components.size()));
  desc.components = components;
  return desc;
}

inline std::vector<std::string> split(std::string_view text, std::string_view by) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(by, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + by.size();
  }
  return parts;
}

// A call as a line of text, after the manner of torch's schemas:
//
//     Call("aten::linear(input fp32 4x16, weight fp32 8x16, bias none) -> fp32 4x8")
//
// An argument is a tensor (type and sizes, without which it has one element), a list of tensors ([fp32 2x3; fp32 5]),
// none, or a number, flag, list of integers or word (dim=-1, training=true, kernel_size=[2,2], mode=tanh). After a
// tensor or list may stand: written, complex, repeated (seen before), expanded 10 (whether each dimension is),
// sparse 5/80 (values stored, bytes of indices), at 0,2 (positions in a list that has None at others).
// An overload stands after a point. What is no literal is added with the functions below; written(), sparse() and at()
// speak of the argument or result added last.
class Call {
 public:
  explicit Call(const std::string& text) {
    const auto end = std::min(text.find('('), text.find(" ->"));
    const auto point = std::min(text.find('.'), end);
    call_.name = text.substr(0, point);
    if (point < end) call_.overload = text.substr(point + 1, end - point - 1);
    if (end != std::string::npos) with(text.substr(end));
  }
  Call(std::string name, const std::string& text) {
    call_.name = std::move(name);
    with(text);
  }

  // More arguments and results: "(bias none) -> fp32 4x8", or one of the two.
  Call& with(const std::string& text) {
    const auto arrow = std::min(text.find("-> "), text.size());
    const auto open = text.find('(');
    if (open < arrow) {
      for (const auto& item : split(text.substr(open + 1, text.rfind(')', arrow) - open - 1), ", ")) argument(item);
    }
    if (arrow < text.size()) {
      for (const auto& item : split(text.substr(arrow + 3), ", ")) tensors("", item, call_.results);
    }
    return *this;
  }

  Call& overload(std::string name) {
    call_.overload = std::move(name);
    return *this;
  }
  Call& trait(Trait trait) {
    call_.trait = trait;
    return *this;
  }

  Call& in(std::string name, DType dtype, Sizes sizes) {
    return list(std::move(name), {tensor(dtype, std::move(sizes))});
  }
  Call& list(std::string name, std::vector<TensorDesc> tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].place = i;
    return add(call_.arguments, {std::move(name), std::move(tensors), {}, false});
  }
  Call& nested(std::string name, DType dtype, const std::vector<Sizes>& components) {
    return list(std::move(name), {nested_tensor(dtype, components)});
  }
  Call& none(std::string name) { return list(std::move(name), {}); }

  template <typename Value>
  Call& scalar(std::string name, Value value) {
    Argument argument{std::move(name), {}, {}, false};
    if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, Sizes>) {
      argument.scalar = std::move(value);
    } else if constexpr (std::is_integral_v<Value>) {
      argument.scalar = static_cast<std::int64_t>(value);
    } else if constexpr (std::is_floating_point_v<Value>) {
      argument.scalar = static_cast<double>(value);
    } else {
      argument.scalar = std::string(value);
    }
    return add(call_.arguments, std::move(argument));
  }

  Call& out(DType dtype, Sizes sizes) { return out_list({tensor(dtype, std::move(sizes))}); }
  Call& out_list(std::vector<TensorDesc> tensors) { return add(call_.results, {"", std::move(tensors), {}, false}); }
  Call& out_nested(DType dtype, const std::vector<Sizes>& components) {
    return out_list({nested_tensor(dtype, components)});
  }

  Call& written() {
    last().written = true;
    return *this;
  }
  Call& sparse(std::int64_t values, std::int64_t index_bytes) {
    for (auto& desc : last().tensors) {
      desc.stored = values;
      desc.index_bytes = index_bytes;
    }
    return *this;
  }
  Call& at(const std::vector<std::size_t>& positions) {
    for (std::size_t i = 0; i < positions.size(); ++i) last().tensors.at(i).place = positions[i];
    return *this;
  }

  operator OpCall() const { return call_; }  // NOLINT(google-explicit-constructor)

 private:
  template <typename Number = std::int64_t>
  static std::vector<Number> numbers(const std::string& text, const std::string& by) {
    std::vector<Number> found;
    for (const auto& part : split(text, by)) found.push_back(static_cast<Number>(std::stoll(part)));
    return found;
  }

  static DType dtype_named(const std::string& name) {
    static const std::map<std::string, DType> dtypes = {
        {"fp64", fp64},   {"fp32", fp32},   {"fp16", fp16},   {"bf16", bf16}, {"fp8", fp8},     {"fp4", fp4},
        {"int64", int64}, {"int32", int32}, {"int16", int16}, {"int8", int8}, {"uint8", uint8}, {"boolean", boolean}};
    return dtypes.at(name);
  }

  void argument(const std::string& item) {
    const auto equals = item.find('=');
    if (equals == std::string::npos)
      return tensors(item.substr(0, item.find(' ')), item.substr(item.find(' ') + 1), call_.arguments);
    const std::string name = item.substr(0, equals);
    const std::string value = item.substr(equals + 1);
    if (value.front() == '[') {
      scalar(name, numbers(value.substr(1, value.size() - 2), ","));
    } else if (value == "true" || value == "false") {
      scalar(name, value == "true");
    } else if (value.front() != '-' && (value.front() < '0' || value.front() > '9')) {
      scalar(name, value);
    } else if (value.find('.') != std::string::npos) {
      scalar(name, std::stod(value));
    } else {
      scalar(name, std::stoll(value));
    }
  }

  // "fp32 2x3 written", "[fp32 2x3; fp32] at 0,2", "none"
  void tensors(const std::string& name, const std::string& text, std::vector<Argument>& where) {
    add(where, {name, {}, {}, false});
    if (text == "none") return;
    const bool is_list = text.front() == '[';
    const auto end = is_list ? text.find(']') : text.size();
    std::vector<std::string> words;
    for (const auto& each : is_list ? split(text.substr(1, end - 1), "; ") : std::vector{text}) {
      words = split(each, " ");
      const bool sized = words.size() > 1 && words[1].front() >= '0' && words[1].front() <= '9';
      last().tensors.push_back(tensor(dtype_named(words[0]), sized ? numbers(words[1], "x") : Sizes{}));
      last().tensors.back().place = last().tensors.size() - 1;
      words.erase(words.begin(), words.begin() + (sized ? 2 : 1));
    }
    if (is_list) words = split(text.substr(std::min(end + 2, text.size())), " ");
    for (std::size_t i = 0; i < words.size(); ++i) mark(words[i], i + 1 < words.size() ? words[i + 1] : "");
  }

  void mark(const std::string& word, const std::string& next) {
    if (word == "written") written();
    if (word == "at") at(numbers<std::size_t>(next, ","));
    for (auto& desc : last().tensors) {
      if (word == "repeated") desc.repeated = true;
      if (word == "complex") {
        desc.is_complex = true;
        desc.item_bytes *= 2;
      }
      if (word == "expanded") desc.expanded = std::vector<bool>(next.size());
      for (std::size_t i = 0; word == "expanded" && i < next.size(); ++i) desc.expanded[i] = next[i] == '1';
    }
    if (word == "sparse") {
      const auto both = numbers(next, "/");
      sparse(both.at(0), both.at(1));
    }
  }

  Call& add(std::vector<Argument>& list, Argument argument) {
    list.push_back(std::move(argument));
    last_is_result_ = &list == &call_.results;
    return *this;
  }
  Argument& last() { return last_is_result_ ? call_.results.back() : call_.arguments.back(); }

  OpCall call_;
  bool last_is_result_ = false;
};

// What a call has to do, written out by hand: never computed with the code under test.
struct Expected {
  std::int64_t macs = 0;
  std::int64_t flops = 0;
  std::int64_t int_ops = 0;
  // Bytes; where a line has no rule of its own, the general one, with its own tests, holds unless one is given.
  std::optional<std::int64_t> read = std::nullopt;
  std::optional<std::int64_t> write = std::nullopt;
  std::optional<std::int64_t> causal_macs = std::nullopt;  // where it differs from macs
  bool not_known = false;  // it cannot be told: cost_of throws, and the op stands in coverage
};

struct CostCase {
  OpCall call;
  Expected expected;
};

inline void expect_costs(std::span<const CostCase> cases) {
  int index = 0;
  for (const auto& [call, expected] : cases) {
    SCOPED_TRACE("case " + std::to_string(index++) + ": " + call.name + " " + call.overload);
    if (expected.not_known) {
      EXPECT_THROW(cost_of(call), std::domain_error);
      continue;
    }
    std::optional<Work> work;
    ASSERT_NO_THROW(work = cost_of(call));
    ASSERT_TRUE(work.has_value());
    EXPECT_EQ(work->macs, expected.macs);
    EXPECT_EQ(work->causal_macs, expected.causal_macs.value_or(expected.macs));
    EXPECT_EQ(work->flops(), expected.flops);
    EXPECT_EQ(work->int_ops(), expected.int_ops);
    if (find_cost(call.name)->bytes == nullptr && !expected.read && !expected.write) continue;
    EXPECT_EQ(work->read_bytes, expected.read.value_or(0));
    EXPECT_EQ(work->write_bytes, expected.write.value_or(0));
  }
}

// Cases that differ in nothing but the operator, and tables put together.
template <typename Make>
std::vector<CostCase> each(Make make, std::initializer_list<const char*> ops) {
  std::vector<CostCase> cases;
  for (const char* op : ops) cases.push_back(make(op));
  return cases;
}
inline std::vector<CostCase> together(std::initializer_list<std::vector<CostCase>> tables) {
  std::vector<CostCase> cases;
  for (const auto& table : tables) cases.insert(cases.end(), table.begin(), table.end());
  return cases;
}

// What a line of a table says besides the name: lines alike in it share a case.
inline auto content(const OpCost& line) {
  const auto* other =
      line.formula.starts_with("as ") ? find_cost("aten::" + std::string(line.formula.substr(3))) : nullptr;
  const std::string_view formula = !computes(line) ? "" : other != nullptr ? other->formula : line.formula;
  return std::tuple(line.operations, line.weight, line.bytes, line.scalars, formula, line.arguments);
}

// Lines that count something need a case, unless their formula says the weight by itself or a line alike has one. A
// misspelt scalar would silently read as None: every declared one must be passed by a case.
inline void expect_each_line_is_tried(std::span<const OpCost> family, std::span<const CostCase> cases) {
  std::set<decltype(content(family.front()))> tried;
  std::set<std::pair<std::string_view, std::string_view>> passed;
  for (const auto& test_case : cases) {
    const OpCost* line = find_cost(test_case.call.name);
    ASSERT_NE(line, nullptr) << test_case.call.name;
    tried.insert(content(*line));
    for (const auto& argument : test_case.call.arguments) passed.emplace(line->scalars, argument.name);
  }
  for (const auto& line : family) {
    EXPECT_TRUE(is_free(line) || is_held_by_its_formula(line) || tried.contains(content(line)))
        << line.op << " has a cost, but no test case";
    for (std::string scalar : split(line.scalars, ",")) {
      scalar.erase(0, scalar.find_first_not_of(' '));
      if (scalar.ends_with(kLastValue)) scalar.resize(scalar.size() - kLastValue.size());
      EXPECT_TRUE(passed.contains({line.scalars, scalar})) << line.op << ": no case passes " << scalar;
    }
  }
}

inline void check_family(std::span<const OpCost> family, std::span<const CostCase> cases) {
  expect_each_line_is_tried(family, cases);
  expect_costs(cases);
}

}  // namespace roofprof::ops::testing
