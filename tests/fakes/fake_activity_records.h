#pragma once
// Activity records as libraries of several versions write them.

#include <cuda.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fake_state.h"

namespace fake {

// One record: its bytes, and of a kernel the name that it is to point to.
struct Record {
  std::vector<std::uint8_t> bytes;
  std::string name;
};

Record work(const Ran& ran);  // a kernel, copy or fill
Record external_id(CUpti_ExternalCorrelationKind kind, std::uint64_t id, unsigned correlation);
Record call(CUpti_ActivityKind api, unsigned correlation);

CUpti_ActivityKind kind_of(const std::uint8_t* record);
std::size_t bytes_of(CUpti_ActivityKind kind);  // 0: no kind that is written here

}  // namespace fake
