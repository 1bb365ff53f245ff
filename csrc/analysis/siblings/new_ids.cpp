#include "analysis/siblings/new_ids.h"

#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/members.h"

namespace roofprof {
namespace {

// Replaces the numbers of modules in a struct, and in the structs below it.
class NewIds {
 public:
  explicit NewIds(const std::vector<ModuleId>& new_ids) : new_ids_(new_ids) {}

  template <HasMembers Struct>
  void replace_in(Struct& object) const {
    for_each_member(Of<Struct>{}, [&](std::string_view name, auto member, Written) {
      using Found = std::invoke_result_t<decltype(member), Struct&>;
      if constexpr (std::is_lvalue_reference_v<Found>) {
        replace(name, std::invoke(member, object));
      } else if constexpr (requires(const Found& found) { *found.if_there(); }) {  // of a part that may lack
        if (auto* value = std::invoke(member, object).if_there()) replace(name, *value);
      }  // else it is a key that stands for several members
    });
  }

 private:
  template <class Value>
  void replace(std::string_view name, Value& value) const {
    if constexpr (std::is_same_v<Value, ModuleId>) {
      if (name == "module") value = new_ids_[index_of(value)];  // a region's number has the same type
    } else if constexpr (HasMembers<Value>) {
      replace_in(value);
    }
  }
  template <class Item>
  void replace(std::string_view name, std::vector<Item>& items) const {
    if constexpr (HasMembers<Item> && !std::is_same_v<Item, Module>) {
      for (auto& item : items) replace(name, item);
    }
  }
  template <class Item>
  void replace(std::string_view name, std::optional<Item>& value) const {
    if (value) replace(name, *value);
  }

  const std::vector<ModuleId>& new_ids_;
};

}  // namespace

void renumber_modules(Profile& data, const std::vector<ModuleId>& new_ids) {
  const NewIds ids(new_ids);
  ids.replace_in(data);
  if (auto* merged = std::get_if<MergedRanks>(&data.origin.kind)) ids.replace_in(*merged);
}

}  // namespace roofprof
