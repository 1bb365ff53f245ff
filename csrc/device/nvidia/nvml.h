#pragma once
// The state of a GPU as NVIDIA's management library (NVML) reports it; looked up at run time through prototypes of our
// own.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace roofprof::cuda {

// Values that NVML does not report (an older driver, another kind of card, a virtual GPU) are empty.
struct GpuState {
  std::optional<std::string> name;  // "NVIDIA H100 80GB HBM3"
  std::optional<std::string> uuid;
  std::optional<std::int64_t> sm_clock_hz;  // now
  std::optional<std::int64_t> max_sm_clock_hz;
  std::optional<std::int64_t> memory_clock_hz;  // now
  std::optional<std::int64_t> max_memory_clock_hz;
  std::optional<double> power_watts;  // now
  std::optional<double> power_limit_watts;
  std::optional<std::vector<std::string>> throttle_reasons;  // in words; an empty list: the clocks are not held down
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<std::int64_t> pcie_generation;  // now: an idle link is often slower
  std::optional<std::int64_t> max_pcie_generation;
  std::optional<std::int64_t> pcie_width;  // lanes
  std::optional<std::int64_t> max_pcie_width;
  std::optional<std::int64_t> nvlinks_up;
  std::optional<std::int64_t> temperature_celsius;
  std::optional<std::int64_t> utilization_percent;  // of the last fraction of a second in which any kernel ran
  std::string problem;  // one sentence on why all or most of it is empty; empty where nothing is wrong
};

// The library, started for as long as this lives: the file that ROOFPROF_NVML_LIB names, else libnvidia-ml.so.1.
// Nothing here throws; GpuState::problem says what is wrong.
class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns why nothing is known, in one sentence; empty where the library is there and works.
  const std::string& problem() const;
  // Returns the driver's version, "580.65.06"; empty where NVML does not report it.
  std::optional<std::string> driver_version() const;

  // Returns the state of the GPU at a PCI bus id ("0000:3b:00.0", as the driver names it; NVML's indices differ).
  // Without an id it returns that of the GPU, if there is exactly one.
  GpuState state(const std::string& pci_bus_id) const;
  // These return three members alone, which is cheap enough to ask while something is measured.
  std::optional<std::int64_t> sm_clock_hz(const std::string& pci_bus_id) const;
  std::optional<double> power_watts(const std::string& pci_bus_id) const;
  std::optional<std::vector<std::string>> throttle_reasons(const std::string& pci_bus_id) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

// Returns the reasons that hold the clocks down, in words, by NVML's bits; unknown bits stand as a number.
std::vector<std::string> throttle_words(std::uint64_t reasons);

}  // namespace roofprof::cuda
