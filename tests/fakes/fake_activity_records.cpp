#include "fake_activity_records.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fake_cupti.h"

namespace fake {
namespace {

// As long as the library's version has it; what ours does not know of is noise.
template <class Struct>
Record record_of(const Struct& values, long long bytes, std::string name = {}) {
  Record record{std::vector<std::uint8_t>(static_cast<std::size_t>(bytes), 0xab), std::move(name)};
  std::memcpy(record.bytes.data(), &values, std::min(sizeof(values), record.bytes.size()));
  return record;
}

template <class Struct>
void set_common(Struct& record, const Ran& ran) {
  record.deviceId = ran.launch.device;
  record.contextId = ran.launch.device + 1;
  record.streamId = ran.launch.stream;
  record.correlationId = ran.correlation;
  record.graphId = ran.launch.graph;
  record.graphNodeId = ran.launch.graph_node;
  record.start = ran.launch.incomplete != 0 ? 0 : static_cast<std::uint64_t>(by_clock_of_records(ran.start_ns));
  record.end = static_cast<std::uint64_t>(by_clock_of_records(ran.end_ns));
}

template <class Struct>
void set_copy(Struct& record, const Ran& ran) {
  record.copyKind = static_cast<std::uint8_t>(ran.launch.copy_kind);
  record.srcKind = static_cast<std::uint8_t>(ran.launch.from_memory);
  record.dstKind = static_cast<std::uint8_t>(ran.launch.to_memory);
  record.bytes = ran.launch.bytes;
}

Record kernel(const Ran& ran) {
  CUpti_ActivityKernel9 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  set_common(record, ran);
  record.gridX = ran.launch.grid[0];
  record.gridY = ran.launch.grid[1];
  record.gridZ = ran.launch.grid[2];
  record.blockX = ran.launch.block[0];
  record.blockY = ran.launch.block[1];
  record.blockZ = ran.launch.block[2];
  return record_of(record, fake_get("kernel_record_bytes"), ran.launch.name != nullptr ? ran.launch.name : "");
}

Record copy(const Ran& ran) {
  if (ran.launch.copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP) {
    CUpti_ActivityMemcpyPtoP4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    set_common(record, ran);
    set_copy(record, ran);
    record.srcDeviceId = ran.launch.device;
    record.dstDeviceId = ran.launch.to_device;
    return record_of(record, sizeof(record));
  }
  CUpti_ActivityMemcpy5 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  set_common(record, ran);
  set_copy(record, ran);
  return record_of(record, fake_get("copy_record_bytes"));
}

Record fill(const Ran& ran) {
  CUpti_ActivityMemset4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set_common(record, ran);
  record.bytes = ran.launch.bytes;
  record.memoryKind = static_cast<std::uint16_t>(ran.launch.to_memory);
  return record_of(record, sizeof(record));
}

}  // namespace

Record work(const Ran& ran) {
  return ran.launch.kind == FAKE_KERNEL ? kernel(ran) : ran.launch.kind == FAKE_COPY ? copy(ran) : fill(ran);
}

Record external_id(CUpti_ExternalCorrelationKind kind, std::uint64_t id, unsigned correlation) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = kind;
  record.externalId = id;
  record.correlationId = correlation;
  return record_of(record, sizeof(record));
}

Record call(CUpti_ActivityKind api, unsigned correlation) {
  CUpti_ActivityAPI record{};
  record.kind = api;
  record.correlationId = correlation;
  return record_of(record, sizeof(record));
}

CUpti_ActivityKind kind_of(const std::uint8_t* record) {
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
  std::memcpy(&kind, record, sizeof(kind));
  return kind;
}

std::size_t bytes_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return static_cast<std::size_t>(fake_get("kernel_record_bytes"));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return static_cast<std::size_t>(fake_get("copy_record_bytes"));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return 0;
  }
}

}  // namespace fake
