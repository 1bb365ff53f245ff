// Prints the libraries of this program in the order in which the loader looks for symbols, and where std::filesystem
// comes from.

#include <dlfcn.h>
#include <link.h>
#include <roofprof/op_costs.h>
#include <roofprof/profiler.h>
#include <roofprof/scope.h>

#include <iostream>

static_assert(__cplusplus >= 202002L);
#if defined(DEBUG_BUILD) && defined(NDEBUG)
#error "roofprof switches a debug build's asserts off"
#endif

int main() {
  ROOFPROF_SCOPE("nothing is profiled, and nothing happens");
  const auto print = [](dl_phdr_info* info, std::size_t, void*) {
    std::cout << "library " << info->dlpi_name << "\n";
    return 0;
  };
  dl_iterate_phdr(print, nullptr);
  Dl_info found;
  dladdr(dlsym(RTLD_DEFAULT, "_ZNSt10filesystem10remove_allERKNS_7__cxx114pathE"), &found);
  std::cout << "filesystem " << found.dli_fname << "\n";
}
