#include "machine/known/given.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "machine/known/file.h"

namespace roofprof {

std::optional<MeasuredCeilings> given_ceilings() {
  const char* set = std::getenv("ROOFPROF_CEILINGS");
  const std::string given = set != nullptr ? set : "";
  if (given.empty()) return std::nullopt;
  if (given == "off") return MeasuredCeilings{};
  try {
    return read_ceilings_file(given).roofs;
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string("ROOFPROF_CEILINGS must name a file of roofs or be \"off\": ") + error.what());
  }
}

}  // namespace roofprof
