#include "observe/script/script_values.h"

#include <algorithm>

namespace roofprof::observe {
namespace {

std::vector<c10::IValue> items_of(const c10::IValue& value) {
  if (value.isList()) return value.toListRef().vec();
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isObject()) return value.toObjectRef().slots();
  std::vector<c10::IValue> items;
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      items.push_back(entry.key());
      items.push_back(entry.value());
    }
  }
  return items;
}

void put(const c10::IValue& container, const std::vector<c10::IValue>& items) {
  if (container.isList()) {
    const auto list = container.toList();
    list.clear();
    for (const auto& item : items) list.push_back(item);
  } else if (container.isGenericDict()) {
    const auto dict = container.toGenericDict();
    dict.clear();
    for (std::size_t i = 0; i < items.size(); i += 2) dict.insert(items[i], items[i + 1]);
  } else if (container.isObject()) {
    for (std::size_t slot = 0; slot < items.size(); ++slot) container.toObjectRef().setSlot(slot, items[slot]);
  }
}

}  // namespace

ScriptValues::ScriptValues(std::vector<c10::IValue> roots) {
  c10::IValue::HashAliasedIValues seen;
  auto& pending = roots;
  while (!pending.empty()) {
    const auto value = std::move(pending.back());
    pending.pop_back();
    if (value.isTensor()) {
      if (value.toTensor().defined()) tensors_.push_back(value.toTensor());
      continue;
    }
    const bool holds = value.isList() || value.isTuple() || value.isGenericDict() || value.isObject();
    if (!holds || !seen.insert(value).second) continue;
    auto items = items_of(value);
    pending.insert(pending.end(), items.begin(), items.end());
    if (!value.isTuple()) containers_.push_back({value, std::move(items)});
  }
}

void ScriptValues::restore() const {
  for (const auto& [container, items] : containers_) {
    const auto same = [](const c10::IValue& a, const c10::IValue& b) { return a.is(b); };
    if (!std::ranges::equal(items_of(container), items, same)) put(container, items);
  }
}

}  // namespace roofprof::observe
