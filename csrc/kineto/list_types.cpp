#include "kineto/list_types.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "kineto/recorded_arguments.h"

namespace roofprof::kineto {
namespace {

// So many ops before and behind the list's are looked at.
constexpr std::ptrdiff_t kNeighbours = 64;

bool is_floating_type(std::string_view type) {
  return type == "float" || type == "double" || type == "c10::BFloat16" || type == "c10::Half";
}

}  // namespace

void find_list_types(Trace& trace) {
  std::map<std::string, std::int64_t> floating;
  std::vector<std::vector<RecordedTensor>> tensors(trace.calls.size());
  std::vector<std::set<std::vector<std::int64_t>>> lists(trace.calls.size());
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    for (auto& argument : arguments_of(trace.calls[i])) {
      for (auto& tensor : argument.tensors) {
        if (argument.kind == RecordedArgument::Kind::tensor_list) {
          lists[i].insert(tensor.sizes);
        } else {
          if (is_floating_type(tensor.type)) ++floating[tensor.type];
          tensors[i].push_back(std::move(tensor));
        }
      }
    }
  }
  const auto most = std::ranges::max_element(floating, {}, [](const auto& count) { return count.second; });
  const auto usual = most == floating.end() ? std::string() : most->first;
  std::map<std::uint32_t, std::vector<std::int32_t>> calls_by_thread;
  for (const auto& event : trace.host) {
    if (event.kind == HostKind::op) calls_by_thread[event.thread].push_back(event.call);
  }
  const auto type_in = [&](std::int32_t call, const std::set<std::vector<std::int64_t>>& sizes) {
    for (const auto& tensor : tensors[static_cast<std::size_t>(call)]) {
      if (sizes.contains(tensor.sizes)) return tensor.type;
    }
    return std::string();
  };
  for (const auto& [thread, calls] : calls_by_thread) {
    for (std::ptrdiff_t i = 0; i < std::ssize(calls); ++i) {
      const auto index = static_cast<std::size_t>(calls[static_cast<std::size_t>(i)]);
      auto& call = trace.calls[index];
      if (lists[index].empty() || !call.list_type.empty()) continue;
      for (std::ptrdiff_t far = 1; far <= kNeighbours && call.list_type.empty(); ++far) {
        for (const auto other : {i - far, i + far}) {
          if (other < 0 || other >= std::ssize(calls) || !call.list_type.empty()) continue;
          call.list_type = type_in(calls[static_cast<std::size_t>(other)], lists[index]);
        }
      }
      if (call.list_type.empty()) call.list_type = usual;
    }
  }
}

}  // namespace roofprof::kineto
