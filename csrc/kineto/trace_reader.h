#pragma once
// Reads the JSON that torch.profiler writes (Kineto's Chrome traces, 2021 to today), piece by piece: what is kept is
// small, whatever the size of the file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kineto/trace.h"

namespace roofprof::kineto {

// One sentence: what the text is in place of a trace, and what to do.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TraceReader {
 public:
  // The next piece of the text, of any length. Throws TraceError as soon as it is clear that it is no trace.
  void feed(std::string_view piece);
  // After the last piece. Throws TraceError where the text is cut off or holds nothing that a profile is made of.
  Trace finish();
  std::int64_t events() const { return trace_.events; }

 private:
  enum class At : std::uint8_t { start, document, key, value, events, end };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <class Value>
  using ByText = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  // Names by what they say: one may be escaped here and plain there.
  struct Names {
    ByText<std::uint32_t> as_written;
    ByText<std::uint32_t> escaped;  // by what they say, those that say something else than what is written
    std::uint32_t number_of(std::string_view quoted, std::vector<std::string>& names);
  };

  std::size_t consume(std::string_view text);
  void take_member(std::string_view key, std::string_view value);
  void take_devices(std::string_view value);
  void take_event(std::string_view event);
  void take_host_event(HostKind kind, std::string_view name, std::string_view args, HostEvent event);
  void take_device_event(KernelKind kind, std::string_view name, std::string_view args, KernelRecord record);
  std::uint32_t thread_of(std::string_view pid, std::string_view tid);
  std::int32_t call_of(std::uint32_t name, std::string_view sizes, std::string_view types, std::string_view strides,
                       std::string_view scalars);

  Trace trace_;
  At at_ = At::start;
  bool is_list_ = false;      // the document is the list of events itself
  bool events_seen_ = false;  // there is a list of events
  bool of_torch_ = false;     // an event of a kind that torch.profiler writes
  std::string key_;
  std::string rest_;  // of what was fed: not yet a whole value
  // Of rest_: how far it was looked at, and what is open there.
  std::size_t looked_ = 0;
  std::size_t depth_ = 0;
  bool in_string_ = false;
  Names names_;
  Names kernel_names_;
  ByText<std::uint32_t> threads_;
  ByText<std::int32_t> calls_;
  std::string scratch_;
  std::string versions_[3];
};

}  // namespace roofprof::kineto
