#include "device/cupti/activity_records.h"

#include <limits>
#include <string_view>
#include <unordered_map>

namespace roofprof::cupti {

namespace {

// Structs of the loaded library may be longer than these: newer ones only append, and cuptiActivityGetNextRecord knows
// their length. Every version since CUDA 12.0 has the fields that are read below.
using Kernel = CUpti_ActivityKernel9;
using Copy = CUpti_ActivityMemcpy5;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
using Fill = CUpti_ActivityMemset4;

Memory memory_of(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return Memory::pageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return Memory::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return Memory::device;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return Memory::managed;
    default:
      return Memory::unknown;
  }
}

// The ends of a copy as its kind gives them, for ends that are not known otherwise. A host's end stays unknown: the
// kind does not say whether it is pinned or pageable.
struct CopyKind {
  std::string_view name;
  bool from_device = false;
  bool to_device = false;
};

CopyKind copy_kind(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return {"[CUDA memcpy Host-to-Device]", false, true};
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return {"[CUDA memcpy Device-to-Host]", true, false};
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
      return {"[CUDA memcpy Device-to-Device]", true, true};
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return {"[CUDA memcpy Host-to-Host]", false, false};
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return {"[CUDA memcpy Peer-to-Peer]", true, true};
    default:
      return {"[CUDA memcpy]", false, false};
  }
}

Memory end_of_copy(unsigned memory, bool on_device) {
  const Memory reported = memory_of(memory);
  return reported == Memory::unknown && on_device ? Memory::device : reported;
}

class Reader {
 public:
  ParsedBuffer take() { return std::move(parsed_); }

  void read(const CUpti_Activity* record) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL:
        return kernel(*reinterpret_cast<const Kernel*>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return copy(*reinterpret_cast<const Copy*>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return peer_copy(*reinterpret_cast<const PeerCopy*>(record));
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return fill(*reinterpret_cast<const Fill*>(record));
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return external(*reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record));
      case CUPTI_ACTIVITY_KIND_RUNTIME:
      case CUPTI_ACTIVITY_KIND_DRIVER:
        return call(*reinterpret_cast<const CUpti_ActivityAPI*>(record));
      default:  // what another client of CUPTI's asked for
        return;
    }
  }

  void unreadable() { parsed_.readable = false; }

 private:
  void kernel(const Kernel& kernel) {
    const std::string_view name = kernel.name != nullptr ? kernel.name : "(unnamed kernel)";
    const bool is_fill = is_fill_of_graph(name, kernel.graphNodeId);
    KernelRecord* record = add(is_fill ? KernelKind::fill : KernelKind::kernel, kernel, name);
    if (record == nullptr) return;
    record->grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
    record->block = {kernel.blockX, kernel.blockY, kernel.blockZ};
  }

  void copy(const Copy& copy) {
    const CopyKind kind = copy_kind(copy.copyKind);
    KernelRecord* record = add(KernelKind::copy, copy, kind.name);
    if (record == nullptr) return;
    record->from = end_of_copy(copy.srcKind, kind.from_device);
    record->to = end_of_copy(copy.dstKind, kind.to_device);
    record->bytes = static_cast<std::int64_t>(copy.bytes);
  }

  // Its device is where it comes from, so that its time is found where the bytes were.
  void peer_copy(const PeerCopy& copy) {
    const CopyKind kind = copy_kind(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    KernelRecord* record = add(KernelKind::copy, copy, kind.name);
    if (record == nullptr) return;
    record->from = end_of_copy(copy.srcKind, true);
    record->to = end_of_copy(copy.dstKind, true);
    record->device = copy.srcDeviceId;
    record->to_device = copy.dstDeviceId;
    record->bytes = static_cast<std::int64_t>(copy.bytes);
  }

  void fill(const Fill& fill) {
    KernelRecord* record = add(KernelKind::fill, fill, "[CUDA memset]");
    if (record == nullptr) return;
    record->to = memory_of(fill.memoryKind);
    record->bytes = static_cast<std::int64_t>(fill.bytes);
  }

  void external(const CUpti_ActivityExternalCorrelation& id) {
    if (id.externalKind == kOurIds) parsed_.launches.push_back({id.correlationId, id.externalId});
  }

  void call(const CUpti_ActivityAPI& call) { parsed_.launches.push_back({call.correlationId, kNoLaunch}); }

  // Adds a record with the members that all kinds share. Returns null where it has no times: such a record is counted
  // and left out.
  template <class Activity>
  KernelRecord* add(KernelKind kind, const Activity& activity, std::string_view name) {
    constexpr auto kLatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (activity.start == 0 || activity.end < activity.start || activity.end > kLatest) {
      ++parsed_.incomplete;
      return nullptr;
    }
    KernelRecord record;
    record.kind = kind;
    record.name = index_of(name);
    record.device = record.to_device = activity.deviceId;
    record.stream = activity.streamId;
    record.correlation = activity.correlationId;
    record.graph_node = activity.graphNodeId;
    record.start_ns = static_cast<std::int64_t>(activity.start);
    record.end_ns = static_cast<std::int64_t>(activity.end);
    return &parsed_.records.emplace_back(record);
  }

  std::uint32_t index_of(std::string_view name) {
    const auto [known, is_new] = indices_.try_emplace(name, static_cast<std::uint32_t>(parsed_.names.size()));
    if (is_new) parsed_.names.emplace_back(name);
    return known->second;
  }

  ParsedBuffer parsed_;
  std::unordered_map<std::string_view, std::uint32_t> indices_;  // views of CUPTI's strings, valid while this one reads
};

}  // namespace

ParsedBuffer parse_records(const Api& api, std::uint8_t* buffer, std::size_t valid_bytes) {
  Reader reader;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while ((result = api.cuptiActivityGetNextRecord(buffer, valid_bytes, &record)) == CUPTI_SUCCESS) reader.read(record);
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) reader.unreadable();
  return reader.take();
}

}  // namespace roofprof::cupti
