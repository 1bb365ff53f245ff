// Another allocator of the CPU's memory than the one that roofprof listened to before: it lets this one be, so memory
// is known by sizes alone, as on a GPU. What is allocated is real.

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstddef>

namespace {

class FakeCpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override { return c10::GetDefaultCPUAllocator()->allocate(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return c10::GetDefaultCPUAllocator()->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

c10::Allocator* before = nullptr;

}  // namespace

extern "C" void fake_cpu_allocator_install() {
  static auto* allocator = new FakeCpuAllocator;  // storages keep it as theirs
  before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(allocator);
}

extern "C" void fake_cpu_allocator_uninstall() { c10::SetCPUAllocator(before); }
