#pragma once
// Builds operator calls in a line, and the checks that every family's test table goes through.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

// Call("aten::linear").in("input", fp32, {4, 16}).in("weight", fp32, {8, 16}).none("bias").out(fp32, {4, 8})
// at(), complex(), expanded(), repeated(), sparse() and written() speak of the argument or result added last.
class Call {
 public:
  explicit Call(std::string name) { call_.name = std::move(name); }

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
  Call& out_nested(DType dtype, const std::vector<Sizes>& components) {
    return out_list({nested_tensor(dtype, components)});
  }
  // The positions of its tensors in a list that has None at others.
  Call& at(const std::vector<std::size_t>& positions) {
    for (std::size_t i = 0; i < positions.size(); ++i) last().tensors.at(i).place = positions[i];
    return *this;
  }
  // An optional argument that is None.
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
  Call& scalar(std::string name, std::initializer_list<std::int64_t> values) {
    return scalar(std::move(name), Sizes(values));
  }

  Call& out(DType dtype, Sizes sizes) { return out_list({tensor(dtype, std::move(sizes))}); }
  Call& out_list(std::vector<TensorDesc> tensors) { return add(call_.results, {"", std::move(tensors), {}, false}); }
  // A result that was not asked for (output_mask).
  Call& out_none() { return out_list({}); }

  Call& written() {
    last().written = true;
    return *this;
  }
  Call& complex() {
    for (auto& desc : last().tensors) {
      desc.is_complex = true;
      desc.item_bytes *= 2;
    }
    return *this;
  }
  Call& expanded(std::vector<bool> dims) {
    for (auto& desc : last().tensors) desc.expanded = dims;
    return *this;
  }
  // Stores so many values, and so many bytes of indices.
  Call& sparse(std::int64_t values, std::int64_t index_bytes) {
    for (auto& desc : last().tensors) {
      desc.stored = values;
      desc.index_bytes = index_bytes;
    }
    return *this;
  }
  Call& repeated() {
    for (auto& desc : last().tensors) desc.repeated = true;
    return *this;
  }

  operator OpCall() const { return call_; }  // NOLINT(google-explicit-constructor)

 private:
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
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
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
    EXPECT_EQ(work->read_bytes, expected.read_bytes);
    EXPECT_EQ(work->write_bytes, expected.write_bytes);
  }
}

// Adding an operator is one line in the family's table and at least one in its test table: this fails when they differ.
inline void expect_same_ops(std::span<const OpCost> family, std::span<const CostCase> cases) {
  std::set<std::string> in_family;
  std::set<std::string> in_cases;
  std::set<std::string> declared;
  std::set<std::string> passed;
  for (const auto& line : family) in_family.emplace(line.op);
  for (const auto& test_case : cases) {
    const OpCost* line = find_cost(test_case.call.name);
    const std::string op(line != nullptr ? line->op : test_case.call.name);
    in_cases.insert(op);
    for (const auto& argument : test_case.call.arguments) passed.insert(op + " " + argument.name);
  }
  // A misspelt scalar would silently read as None: every declared one must be passed by a case.
  for (const auto& line : family) {
    std::string_view rest = line.scalars;
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      std::string_view name = rest.substr(0, comma);
      while (name.starts_with(' ')) name.remove_prefix(1);
      declared.insert(std::string(line.op) + " " + std::string(name));
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  }
  for (const auto& op : in_family) EXPECT_TRUE(in_cases.contains(op)) << op << " has a cost, but no test case";
  for (const auto& op : in_cases) EXPECT_TRUE(in_family.contains(op)) << op << " has a test case, but no cost";
  for (const auto& name : declared) EXPECT_TRUE(passed.contains(name)) << name << " is declared, but no case passes it";
}

inline void check_family(std::span<const OpCost> family, std::span<const CostCase> cases) {
  expect_same_ops(family, cases);
  expect_costs(cases);
}

}  // namespace roofprof::ops::testing
