#include "observe/script_state.h"

namespace roofprof::observe {
namespace {

bool is_container(const c10::IValue& value) { return value.isList() || value.isGenericDict(); }

bool same_content(const c10::IValue& a, const c10::IValue& b) {
  if (a.isList()) {
    const auto left = a.toListRef();
    const auto right = b.toListRef();
    return left.size() == right.size() &&
           std::equal(left.begin(), left.end(), right.begin(), [](const auto& x, const auto& y) { return x.is(y); });
  }
  const auto left = a.toGenericDict();
  const auto right = b.toGenericDict();
  if (left.size() != right.size()) return false;
  for (const auto& item : left) {
    const auto other = right.find(item.key());
    if (other == right.end() || !other->value().is(item.value())) return false;
  }
  return true;
}

void put(const c10::IValue& container, const c10::IValue& content) {
  if (container.isList()) {
    auto list = container.toList();
    list.clear();
    for (const auto& element : content.toListRef()) list.push_back(element);
    return;
  }
  auto dict = container.toGenericDict();
  dict.clear();
  for (const auto& item : content.toGenericDict()) dict.insert(item.key(), item.value());
}

}  // namespace

c10::IValue shallow_copy(const c10::IValue& value) {
  if (value.isList()) return value.toList().copy();
  if (value.isGenericDict()) return value.toGenericDict().copy();
  return value;
}

KeptAttributes::KeptAttributes(const torch::jit::Module& model) {
  for (const auto& module : model.modules()) {
    const auto owner = module._ivalue();
    for (std::size_t index = 0; index < owner->type()->numAttributes(); ++index) {
      const auto& value = owner->getSlot(index);
      if (value.isModule()) continue;
      slots_.push_back({owner, index, value, is_container(value) ? shallow_copy(value) : c10::IValue()});
    }
  }
}

void KeptAttributes::restore() const {
  for (const auto& [owner, index, value, content] : slots_) {
    if (!owner->getSlot(index).is(value)) owner->setSlot(index, value);
    if (is_container(value) && !same_content(value, content)) put(value, content);
  }
}

}  // namespace roofprof::observe
