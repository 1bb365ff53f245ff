#include "kineto/trace_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "core/kernel_names.h"
#include "kineto/collectives.h"
#include "kineto/json_text.h"

namespace roofprof::kineto {
namespace {

constexpr std::size_t kLongestValue = std::size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// The number of first bytes that show the kind of any other file: a tar archive's come last.
constexpr std::size_t kBytesOfKind = 264;
constexpr std::size_t kMostDevices = 1024;
constexpr std::string_view kModulePrefix = "nn.Module: ";
constexpr std::string_view kRecomputeFrame = "recompute_fn";

// Kineto's categories of events, those of today and those of 2021.
enum class Category : std::uint8_t { other, op, range, frame, launch, kernel, copy, fill, counter_range };

constexpr std::array<std::pair<std::string_view, Category>, 22> kCategories = {{
    {"cpu_op", Category::op},
    {"Operator", Category::op},
    {"user_annotation", Category::range},
    {"python_function", Category::frame},
    {"cuda_runtime", Category::launch},
    {"cuda_driver", Category::launch},
    {"hip_runtime", Category::launch},
    {"hip_driver", Category::launch},
    {"xpu_runtime", Category::launch},
    {"xpu_driver", Category::launch},
    {"mtia_runtime", Category::launch},
    {"privateuse1_runtime", Category::launch},
    {"privateuse1_driver", Category::launch},
    {"Runtime", Category::launch},
    {"kernel", Category::kernel},
    {"Kernel", Category::kernel},
    {"gpu_memcpy", Category::copy},
    {"Memcpy", Category::copy},
    {"gpu_memset", Category::fill},
    {"Memset", Category::fill},
    {"cuda_profiler_range", Category::counter_range},
    {"CUDA_PROFILER_RANGE", Category::counter_range},
}};

Category category_of(std::string_view text) {
  const auto found = std::ranges::find(kCategories, text, &std::pair<std::string_view, Category>::first);
  return found == kCategories.end() ? Category::other : found->second;
}

bool is_space(char character) { return std::isspace(static_cast<unsigned char>(character)) != 0; }

// Returns whether the name is an op's or an autograd node's ("MulBackward0", "torch::autograd::AccumulateGrad",
// "aten::mul"), which traces of 2021 do not distinguish from ranges.
bool is_op_name(std::string_view name) {
  if (name.find('#') != std::string_view::npos) return false;
  if (name.find("::") != std::string_view::npos) return true;
  const auto stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return stem.ends_with("Backward");
}

// Returns the end of the object, list or string that begins at the front of `text`. `looked`, `depth` and `in_string`
// continue from the previous call.
std::optional<std::size_t> end_of_nested(std::string_view text, std::size_t& looked, std::size_t& depth,
                                         bool& in_string) {
  auto at = looked;
  while (at < text.size()) {
    if (in_string) {
      const auto found = text.find_first_of("\"\\", at);
      if (found == std::string_view::npos) {
        at = text.size();
        break;
      }
      if (text[found] == '\\') {
        if (found + 1 == text.size()) {
          looked = found;
          return std::nullopt;
        }
        at = found + 2;
        continue;
      }
      in_string = false;
      at = found + 1;
      if (depth == 0) return at;
      continue;
    }
    const char character = text[at++];
    if (character == '"') {
      in_string = true;
    } else if (character == '{' || character == '[') {
      ++depth;
    } else if ((character == '}' || character == ']') && --depth == 0) {
      return at;
    }
  }
  looked = at;
  return std::nullopt;
}

// "Pageable", "Device", "Device Static", "Array"; "Host" of ROCm's is neither pinned nor pageable.
Memory memory_of(std::string_view word) {
  if (word == "Array") return Memory::device;
  for (std::size_t i = 1; i < kMemoryNames.size(); ++i) {
    const bool same = std::ranges::equal(word.substr(0, word.find(' ')), kMemoryNames[i], [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    });
    if (same) return static_cast<Memory>(i);
  }
  return Memory::unknown;
}

// Returns the ends of a copy, "Memcpy HtoD (Pageable -> Device)", or where a fill writes, "Memset (Device)". An end
// that is not known otherwise is the device's where the kind of copy says so, as in the collector.
std::pair<Memory, Memory> memories_of(std::string_view name) {
  constexpr std::string_view kArrow = " -> ";
  const auto open = name.find('(');
  const auto close = name.find(')');
  if (open == name.npos || close == name.npos || open > close) return {};
  const auto inside = name.substr(open + 1, close - open - 1);
  const auto arrow = inside.find(kArrow);
  if (arrow == inside.npos) return {Memory::unknown, memory_of(inside)};
  const auto words = name.substr(0, open);
  const auto kind = words.find("to");
  const auto end = [&](std::string_view word, std::size_t letter) {
    const auto reported = memory_of(word);
    const bool on_device =
        letter < words.size() && std::string_view("DAP").find(words[letter]) != std::string_view::npos;
    return reported == Memory::unknown && kind != words.npos && on_device ? Memory::device : reported;
  };
  return {end(inside.substr(0, arrow), kind - 1), end(inside.substr(arrow + kArrow.size()), kind + 2)};
}

std::array<std::int32_t, 3> three(std::string_view list) {
  std::array<std::int32_t, 3> result{};
  JsonItems items(list);
  for (auto& value : result) {
    if (!items.next()) break;
    const auto number = integer(items.value()).value_or(0);
    value = static_cast<std::int32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
  }
  return result;
}

std::uint32_t small(std::string_view value) {
  const auto number = integer(value).value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

// Versions are numbers such as 12040 (CUDA), 60443483 (HIP: 6.4.43483).
std::string cuda_version(std::int64_t number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string hip_version(std::int64_t number) {
  constexpr std::int64_t kMajor = 10'000'000;
  constexpr std::int64_t kMinor = 100'000;
  return std::to_string(number / kMajor) + "." + std::to_string(number % kMajor / kMinor);
}

struct OtherFile {
  std::string_view begins;
  std::string_view is;
};

using std::literals::operator""sv;

// Files that users give as traces although they are something else, by their first bytes.
constexpr std::array kOtherFiles = {
    OtherFile{"PK\x03\x04"sv, "a zip archive, not the JSON of a trace: unpack it first"sv},
    OtherFile{"7z\xBC\xAF\x27\x1C"sv, "a 7z archive: unpack it first"sv},
    OtherFile{"\x28\xB5\x2F\xFD"sv, "packed by zstd: unpack it first, or pack it by gzip"sv},
    OtherFile{"\xFD"
              "7zXZ"sv,
              "packed by xz: unpack it first, or pack it by gzip"sv},
    OtherFile{"BZh"sv, "packed by bzip2: unpack it first, or pack it by gzip"sv},
    OtherFile{"version https://git-lfs"sv,
              "a pointer of Git LFS, which stands for the file: `git lfs pull` fetches it"sv},
    OtherFile{"<"sv, "a web page or XML, not the JSON of a trace: download the file itself"sv},
};

constexpr std::string_view kWideText =
    "it is text in UTF-16 or UTF-32, as Windows PowerShell writes it: save it as UTF-8, as torch.profiler does";

[[noreturn]] void refuse_other(std::string_view text) {
  if (text.starts_with("SQLite format") || text.starts_with("NSYS")) {
    throw TraceError(
        "it is a report of Nsight Systems: `nsys export --type sqlite` makes a file of it that `roofprof import` "
        "reads");
  }
  if (text.starts_with("\x1f\x8b")) {
    throw TraceError("it is packed by gzip: unpack it first (gunzip), or read it with `roofprof import`");
  }
  if (text.starts_with("==PROF==") || text.starts_with("\"ID\",")) {
    throw TraceError("it is what Nsight Compute printed: give it as --ncu, with the trace of the program or without");
  }
  for (const auto& other : kOtherFiles) {
    if (text.starts_with(other.begins)) throw TraceError("it is " + std::string(other.is));
  }
  constexpr std::size_t kTarsName = 257;
  if (text.size() > kTarsName && text.substr(kTarsName).starts_with("ustar")) {
    throw TraceError("it is a tar archive: unpack it first");
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") || text.starts_with("\0{"sv) ||
      text.starts_with("\0["sv) || text.starts_with("\0\0\0{"sv) || text.starts_with("\0\0\0["sv) ||
      text.starts_with("\0\0\xFE\xFF"sv)) {
    throw TraceError(std::string(kWideText));
  }
  throw TraceError(
      "it is not the JSON of a trace; a trace is what torch.profiler's "
      "prof.export_chrome_trace(\"trace.json.gz\") writes (files of Nsight and Perfetto are not read)");
}

// Returns whether of each event, by what the key says of it, there are several. One thread cannot do the same twice at
// the same time, unless the clock stood still.
template <class Event, class Key>
bool stand_twice(const std::vector<Event>& events, Key key) {
  if (events.size() < 2) return false;
  const auto repeated = [&](const Event& event) {
    return std::ranges::count_if(events, [&](const Event& other) { return key(other) == key(event); }) > 1;
  };
  if (!repeated(events.front()) || !repeated(events.back())) return false;
  std::vector<decltype(key(events.front()))> keys;
  keys.reserve(events.size());
  for (const auto& event : events) keys.push_back(key(event));
  std::ranges::sort(keys);
  bool any_length = false;
  for (auto first = keys.begin(); first != keys.end();) {
    const auto next = std::find_if(first, keys.end(), [&](const auto& other) { return other != *first; });
    if (next - first < 2) return false;
    any_length = any_length || std::get<0>(*first) < std::get<1>(*first);
    first = next;
  }
  return any_length;
}

}  // namespace

void TraceReader::feed(std::string_view piece) {
  rest_ += piece;
  const auto consumed = consume(rest_);
  rest_.erase(0, consumed);
  looked_ -= std::min(looked_, consumed);
  if (rest_.size() > kLongestValue) throw TraceError("one of its values is longer than 64 MB, which no trace has");
}

std::size_t TraceReader::consume(std::string_view text) {
  std::size_t at = 0;
  const auto skip = [&](std::string_view also) {
    while (at < text.size() && (is_space(text[at]) || also.find(text[at]) != also.npos)) ++at;
    return at < text.size();
  };
  // Returns the whole value at `at`; empty if its end was not fed yet.
  const auto whole_value = [&]() -> std::optional<std::string_view> {
    const auto rest = text.substr(at);
    if (rest[0] != '{' && rest[0] != '[' && rest[0] != '"') {
      const auto end = rest.find_first_of(",}] \n\r\t");
      if (end == rest.npos) return std::nullopt;
      at += end;
      return rest.substr(0, end);
    }
    auto looked = looked_ > at ? looked_ - at : 0;
    if (looked == 0) {
      depth_ = 0;
      in_string_ = false;
    }
    const auto end = end_of_nested(rest, looked, depth_, in_string_);
    looked_ = end ? 0 : at + looked;
    if (!end) return std::nullopt;
    at += *end;
    return rest.substr(0, *end);
  };
  while (true) {
    switch (at_) {
      case At::start:
        if (kByteOrderMark.starts_with(text)) return at;  // it may go on
        if (text.starts_with(kByteOrderMark)) at = kByteOrderMark.size();
        if (!skip("")) return at;
        if (text[at] != '{' && text[at] != '[') {
          if (text.size() - at < kBytesOfKind) return at;
          refuse_other(text.substr(at));
        }
        is_list_ = text[at] == '[';
        events_seen_ = is_list_;
        at_ = is_list_ ? At::events : At::document;
        ++at;
        break;
      case At::document: {
        if (!skip(",")) return at;
        if (text[at] == '}') {
          ++at;
          at_ = At::end;
          break;
        }
        if (text[at] == '\0') throw TraceError(std::string(kWideText));
        if (text[at] != '"') throw TraceError("it is not valid JSON: a name is expected where other text stands");
        const auto key = whole_value();
        if (!key) return at;
        key_ = unquoted(*key);
        at_ = At::key;
        break;
      }
      case At::key:
        if (!skip(":")) return at;
        if (key_ == "traceEvents" && text[at] == '[') {
          if (events_seen_) throw TraceError("it holds two lists of events: give each trace its own file");
          events_seen_ = true;
          at_ = At::events;
          ++at;
        } else {
          at_ = At::value;
        }
        break;
      case At::value: {
        const auto value = whole_value();
        if (!value) return at;
        take_member(key_, *value);
        at_ = At::document;
        break;
      }
      case At::events: {
        if (!skip(",")) return at;
        if (text[at] == ']') {
          ++at;
          at_ = is_list_ ? At::end : At::document;
          break;
        }
        if (text[at] == '\0') throw TraceError(std::string(kWideText));
        const auto event = whole_value();
        if (!event) return at;
        if (event->empty()) throw TraceError("it is not valid JSON: in the list of events stands something else");
        take_event(*event);
        break;
      }
      case At::end:
        if (!skip("")) return at;
        if (!events_seen_) throw TraceError("it is several JSON documents in one file, of which the first is no trace");
        throw TraceError("behind the trace stands more text: give each trace its own file");
    }
  }
}

Trace TraceReader::finish() {
  if (at_ == At::start) {
    if (rest_.empty() || rest_ == kByteOrderMark) throw TraceError("it is empty");
    refuse_other(rest_);
  }
  if (at_ != At::end) {
    throw TraceError("it is cut off after " + std::to_string(trace_.events) +
                     " events: it was not written to its end; export it again");
  }
  if (!events_seen_) {
    if (key_ == "schema_version" || trace_.recorded_by == "roofprof") {
      throw TraceError("it is a report of roofprof, no trace: `roofprof show` prints it");
    }
    throw TraceError(
        "it is JSON but no trace: it has no \"traceEvents\"; a trace is what torch.profiler's "
        "prof.export_chrome_trace(\"trace.json.gz\") writes");
  }
  if (!of_torch_) {
    throw TraceError(
        "it has no event of torch.profiler's (no operators and no kernels): it comes from another "
        "program, or nothing ran while it was recorded");
  }
  if (stand_twice(trace_.host, [](const HostEvent& e) { return std::tuple(e.begin_ns, e.end_ns, e.name, e.thread); }) ||
      (trace_.host.empty() && stand_twice(trace_.device.records, [](const KernelRecord& r) {
         return std::tuple(r.start_ns, r.end_ns, r.name, r.device, r.stream, r.correlation, r.block);
       }))) {
    throw TraceError(
        "each of its events stands in it twice, or more often: copies of one trace were put together; give one of "
        "them");
  }
  std::string by;
  const auto add = [&](const std::string& word) {
    if (word.empty()) return;
    if (!by.empty()) by += ", ";
    by += word;
  };
  for (const auto& version : versions_) add(version);
  trace_.recorded_by = std::move(by);
  // Some names were mangled in a way that the recording machine could not read.
  for (auto& name : trace_.device.names) name = demangled(name);
  names_ = {};
  kernel_names_ = {};
  calls_ = {};
  launched_ = {};
  return std::move(trace_);
}

void TraceReader::take_member(std::string_view key, std::string_view value) {
  if (key == "deviceProperties") {
    take_devices(value);
  } else if (key == "recorder") {  // python/roofprof/profiling/nsight_systems.py writes it
    trace_.recorder = decoded(value);
  } else if (key == "cuda_runtime_version") {
    if (const auto number = integer(value)) versions_[0] = "CUDA " + cuda_version(*number);
  } else if (key == "hip_runtime_version") {
    trace_.rocm = true;
    if (const auto number = integer(value)) versions_[0] = "ROCm's HIP " + hip_version(*number);
  } else if (key == "cuda_driver_version") {
    if (const auto number = integer(value)) versions_[1] = "driver for CUDA " + cuda_version(*number);
  } else if (key == "cupti_version") {
    if (const auto number = integer(value)) versions_[2] = "CUPTI " + std::to_string(*number);
  } else if (key == "roctracer_version") {
    trace_.rocm = true;
  } else if (key == "distributedInfo") {
    take_distributed_facts(value, trace_);
  } else if (key == "host_name") {
    trace_.host_name = decoded(value);
  } else if (key == "baseTimeNanoseconds") {
    trace_.base_ns = integer(value).value_or(0);
  } else if (key == "schema_version") {
    trace_.recorded_by = "roofprof";  // until finish()
  }
}

void TraceReader::take_devices(std::string_view value) {
  JsonItems items(value);
  while (items.next() && trace_.devices.size() < kMostDevices) {
    DeviceProperties properties;
    std::optional<std::int64_t> major;
    std::optional<std::int64_t> minor;
    JsonMembers members(items.value());
    while (members.next()) {
      if (members.key() == "name") properties.name = decoded(members.value());
      if (members.key() == "computeMajor") major = integer(members.value());
      if (members.key() == "computeMinor") minor = integer(members.value());
    }
    if (major && minor) properties.compute_capability = std::to_string(*major) + "." + std::to_string(*minor);
    trace_.devices.push_back(std::move(properties));
  }
}

void TraceReader::take_event(std::string_view text) {
  ++trace_.events;
  std::string_view phase;
  std::string_view category;
  std::string_view name;
  std::string_view pid;
  std::string_view tid;
  std::string_view begin;
  std::string_view length;
  std::string_view args;
  JsonMembers members(text);
  while (members.next()) {
    const auto key = members.key();
    if (key == "ph")
      phase = unquoted(members.value());
    else if (key == "cat")
      category = unquoted(members.value());
    else if (key == "name")
      name = members.value();
    else if (key == "pid")
      pid = members.value();
    else if (key == "tid")
      tid = members.value();
    else if (key == "ts")
      begin = members.value();
    else if (key == "dur")
      length = members.value();
    else if (key == "args")
      args = members.value();
  }
  if (phase != "X") return;
  // Events that EventList.export_chrome_trace writes (prof.events(), torch.autograd's profilers) have no categories.
  const bool of_event_list = category.empty() && unquoted(pid) == "CPU functions";
  const auto kind = of_event_list ? Category::op : category_of(category);
  if (kind == Category::other) return;
  of_torch_ = true;
  trace_.event_list = trace_.event_list || of_event_list;
  if (kind == Category::counter_range) {
    ++trace_.counter_ranges;
    return;
  }
  const auto bare = unquoted(name);
  const bool module = kind == Category::frame && bare.starts_with(kModulePrefix);
  if (kind == Category::frame) {
    ++trace_.python_frames;
    if (!module && bare.find(kRecomputeFrame) == bare.npos) return take_frame(name, begin, length);
  }
  const auto start = nanoseconds(begin);
  const auto duration = length.empty() ? std::optional<std::int64_t>(0) : nanoseconds(length);
  if (!start || !duration || *duration < 0 || name.empty() || name[0] != '"') {
    ++trace_.damaged;
    return;
  }
  if (kind == Category::kernel || kind == Category::copy || kind == Category::fill) {
    KernelRecord record;
    record.start_ns = *start;
    record.end_ns = *start + *duration;
    const auto of = kind == Category::kernel ? KernelKind::kernel
                    : kind == Category::copy ? KernelKind::copy
                                             : KernelKind::fill;
    take_device_event(of, name, args, record);
    return;
  }
  HostEvent event;
  event.begin_ns = *start;
  event.end_ns = *start + *duration;
  event.thread = thread_of(pid, tid);
  HostKind of = HostKind::launch;
  const bool mixed = of_event_list || category == "Operator";
  if (kind == Category::op) of = mixed && !is_op_name(bare) ? HostKind::range : HostKind::op;
  if (bare.starts_with(kCompiledRange)) of = HostKind::range;
  if (kind == Category::range) of = HostKind::range;
  if (kind == Category::frame) of = module ? HostKind::module : HostKind::recompute;
  take_host_event(of, module ? name.substr(1 + kModulePrefix.size(), bare.size() - kModulePrefix.size()) : name, args,
                  event);
}

void TraceReader::take_frame(std::string_view name, std::string_view begin, std::string_view length) {
  constexpr std::int64_t kLongNs = 1'000'000;
  constexpr std::size_t kMost = 10'000;
  const auto start = nanoseconds(begin);
  const auto duration = length.empty() ? std::nullopt : nanoseconds(length);
  if (!start || !duration || *duration < kLongNs || trace_.long_frames.size() >= kMost) return;
  trace_.long_frames.push_back({decoded(name), *start, *start + *duration});
}

void TraceReader::take_host_event(HostKind kind, std::string_view name, std::string_view args, HostEvent event) {
  event.kind = kind;
  std::string_view sizes;
  std::string_view types;
  std::string_view strides;
  std::string_view scalars;
  std::string_view kernel;
  std::string_view grid;
  std::string_view block;
  std::string_view code;
  bool triton = false;
  if (kind == HostKind::op || kind == HostKind::launch) {
    JsonMembers members(args);
    while (members.next()) {
      const auto key = members.key();
      const auto value = members.value();
      if (kind == HostKind::launch) {
        if (key == "correlation")
          event.correlation = static_cast<std::uint64_t>(integer(value).value_or(0));
        else if (key == "kernel")
          kernel = value;
        else if (key == "grid")
          grid = value;
        else if (key == "block")
          block = value;
      } else if (key == "Input Dims" || key == "Input dims") {
        sizes = value;
      } else if (key == "Input type") {
        types = value;
      } else if (key == "Input Strides") {
        strides = value;
      } else if (key == "Concrete Inputs") {
        scalars = value;
      } else if (key == "kernel_backend") {
        triton = unquoted(value) == "triton";
      } else if (key == "kernel_file") {
        code = value;
      } else if (key == "External id") {
        event.correlation = static_cast<std::uint64_t>(integer(value).value_or(0));
      } else if (key == "Sequence number") {
        event.sequence = integer(value).value_or(kNone);
      } else if (key == "Fwd thread id") {
        event.of_backward = integer(value).value_or(0) > 0;
      }
    }
  }
  event.name = names_.number_of(name, trace_.names);
  if (kind == HostKind::op) {
    event.call = call_of(event.name, sizes, types, strides, scalars);
    if (triton) {
      auto& call = trace_.calls[at(event.call)];
      call.triton = true;
      if (call.code.empty()) call.code = decoded(code);
    }
  }
  if (is_message(kind, trace_.names[event.name])) {
    event.message = static_cast<std::int32_t>(trace_.messages.size());
    trace_.messages.push_back(message_of(trace_.names[event.name], args));
  }
  if (!kernel.empty()) event.call = launched_of(kernel, grid, block);
  trace_.host.push_back(event);
}

void TraceReader::take_device_event(KernelKind kind, std::string_view name, std::string_view args,
                                    KernelRecord record) {
  record.kind = kind;
  std::uint64_t external = 0;
  std::optional<std::uint32_t> to_device;  // of a copy between devices, which has no "device"
  JsonMembers members(args);
  while (members.next()) {
    const auto key = members.key();
    const auto value = members.value();
    if (key == "device" || key == "fromDevice")
      record.device = small(value);
    else if (key == "toDevice")
      to_device = small(value);
    else if (key == "stream")
      record.stream = small(value);
    else if (key == "correlation")
      record.correlation = static_cast<std::uint64_t>(integer(value).value_or(0));
    else if (key == "External id" || key == "external id")
      external = static_cast<std::uint64_t>(integer(value).value_or(0));
    else if (key == "grid")
      record.grid = three(value);
    else if (key == "block")
      record.block = three(value);
    else if (key == "bytes")
      record.bytes = std::max<std::int64_t>(integer(value).value_or(0), 0);
    else if (key == "graph node id")
      record.graph_node = static_cast<std::uint64_t>(integer(value).value_or(0));
  }
  if (record.device >= kMostDevices) {
    ++trace_.damaged;
    return;
  }
  record.to_device = to_device.value_or(record.device);
  if (is_fill_of_graph(unquoted(name), record.graph_node)) record.kind = kind = KernelKind::fill;
  if (kind == KernelKind::kernel) record.name = kernel_names_.number_of(name, trace_.device.names);
  if (kind != KernelKind::kernel) std::tie(record.from, record.to) = memories_of(unquoted(name));
  if (kind == KernelKind::kernel && record.correlation != 0 && is_kernel_of_collectives(unquoted(name))) {
    if (auto message = message_of("", args); !message.name.empty()) {
      trace_.kernel_messages.emplace(record.correlation, static_cast<std::int32_t>(trace_.messages.size()));
      trace_.messages.push_back(std::move(message));
    }
  }
  trace_.device.records.push_back(record);
  trace_.external_ids.push_back(external);
}

std::uint32_t TraceReader::Names::number_of(std::string_view quoted, std::vector<std::string>& names) {
  const auto text = unquoted(quoted);
  if (const auto found = as_written.find(text); found != as_written.end()) return found->second;
  auto name = decoded(text);
  auto id = static_cast<std::uint32_t>(names.size());
  if (name == text) {
    if (const auto known = escaped.find(name); known != escaped.end()) id = known->second;
  } else {
    const auto plain = as_written.find(name);
    // The same text as written may belong to a name with escapes, which means something else.
    if (plain != as_written.end() && names[plain->second] == name) id = plain->second;
    id = escaped.try_emplace(name, id).first->second;
  }
  if (id == names.size()) names.push_back(std::move(name));
  as_written.emplace(text, id);
  return id;
}

std::uint32_t TraceReader::thread_of(std::string_view pid, std::string_view tid) {
  scratch_.assign(unquoted(pid));
  scratch_ += '/';
  scratch_ += unquoted(tid);
  if (const auto found = threads_.find(scratch_); found != threads_.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(threads_.size());
  threads_.emplace(scratch_, id);
  return id;
}

std::int32_t TraceReader::call_of(std::uint32_t name, std::string_view sizes, std::string_view types,
                                  std::string_view strides, std::string_view scalars) {
  scratch_ = std::to_string(name);
  for (const auto text : {sizes, types, strides, scalars}) {
    scratch_ += '\n';
    scratch_ += text;
  }
  if (const auto found = calls_.find(scratch_); found != calls_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(trace_.calls.size());
  trace_.calls.push_back({.op = trace_.names[name],
                          .described = !sizes.empty(),
                          .sizes = std::string(sizes),
                          .types = std::string(types),
                          .strides = std::string(strides),
                          .scalars = std::string(scalars),
                          .list_type = {}});
  calls_.emplace(scratch_, id);
  return id;
}

std::int32_t TraceReader::launched_of(std::string_view kernel, std::string_view grid, std::string_view block) {
  scratch_.assign(kernel);
  for (const auto text : {grid, block}) {
    scratch_ += '\n';
    scratch_ += text;
  }
  if (const auto found = launched_.find(scratch_); found != launched_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(trace_.launched.size());
  trace_.launched.push_back({decoded(kernel), three(grid), three(block)});
  launched_.emplace(scratch_, id);
  return id;
}

}  // namespace roofprof::kineto
