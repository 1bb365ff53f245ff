#pragma once
// Reads the JSON that torch.profiler writes (Kineto's Chrome traces, 2021 to today), piece by piece, so that memory
// stays small whatever the size of the file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kineto/trace.h"
#include "roofprof/error.h"

namespace roofprof::kineto {

// Says in one sentence why the text is not a trace, and what to do.
class TraceError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

class TraceReader {
 public:
  // Takes the next piece of the text, of any length. Throws TraceError as soon as the text cannot be a trace.
  void feed(std::string_view piece);
  // Returns the trace, after the last piece. Throws TraceError if the text is cut off or holds nothing that a profile
  // is made of.
  Trace finish();
  std::int64_t events() const { return trace_.events; }
  // Returns what was read so far.
  const Trace& trace() const { return trace_; }

 private:
  enum class At : std::uint8_t { start, document, key, value, events, end };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <class Value>
  using ByText = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  // Numbers of names. The same name may be written with escapes in one place and without in another.
  struct Names {
    ByText<std::uint32_t> as_written;
    ByText<std::uint32_t> escaped;  // by the name without escapes, if that differs from the text as written
    std::uint32_t number_of(std::string_view quoted, std::vector<std::string>& names);
  };

  std::size_t consume(std::string_view text);
  void take_member(std::string_view key, std::string_view value);
  void take_devices(std::string_view value);
  void take_event(std::string_view event);
  void take_frame(std::string_view name, std::string_view begin, std::string_view length);
  void take_host_event(HostKind kind, std::string_view name, std::string_view args, HostEvent event);
  void take_device_event(KernelKind kind, std::string_view name, std::string_view args, KernelRecord record);
  std::uint32_t thread_of(std::string_view pid, std::string_view tid);
  std::int32_t call_of(std::uint32_t name, std::string_view sizes, std::string_view types, std::string_view strides,
                       std::string_view scalars);
  std::int32_t launched_of(std::string_view kernel, std::string_view grid, std::string_view block);

  Trace trace_;
  At at_ = At::start;
  bool is_list_ = false;      // the document is the list of events itself
  bool events_seen_ = false;  // there is a list of events
  bool of_torch_ = false;     // an event of a kind that torch.profiler writes
  std::string key_;
  std::string rest_;  // the end of what was fed, which is not yet a whole value
  // The state of the scan of rest_: the bytes scanned, the open brackets, and true inside a string.
  std::size_t looked_ = 0;
  std::size_t depth_ = 0;
  bool in_string_ = false;
  Names names_;
  Names kernel_names_;
  ByText<std::uint32_t> threads_;
  ByText<std::int32_t> calls_;
  ByText<std::int32_t> launched_;
  std::string scratch_;
  std::string versions_[3];
};

}  // namespace roofprof::kineto
