// The list of intercepted functions against what the installed libtorch exports.

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <set>
#include <string>

namespace roofprof {
namespace {

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? name.get() : symbol;
}

// The calls of torch::nn modules and the steps of optimizers that a shared library defines, as people write them.
std::set<std::string> calls_in(const std::string& library) {
  const std::string command = "nm -D --defined-only '" + library + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  static const std::regex kCall(
      R"(torch::optim::\w+::step\(std::function.*|torch::nn::\w+Impl(<.*>)?::(forward\w*|operator\(\)|log_prob|predict|_check_input_dim)\(.*)");
  std::set<std::string> found;
  std::array<char, 4096> line{};
  while (fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    std::string symbol(line.data());
    symbol.erase(symbol.find_last_not_of('\n') + 1);
    symbol.erase(0, symbol.rfind(' ') + 1);
    if (!symbol.starts_with("_ZN5torch") && !symbol.starts_with("_ZNK5torch")) continue;
    const auto name = demangled(symbol);
    if (std::regex_match(name, kCall)) found.insert(name);
  }
  return found;
}

std::string names_only_in(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::string names;
  for (const auto& name : a) {
    if (!b.contains(name)) names += "\n  " + name;
  }
  return names;
}

TEST(ListOfCalls, IsWhatLibtorchExports) {
  const auto exported = calls_in(ROOFPROF_TEST_LIBTORCH);
  const auto intercepted = calls_in(ROOFPROF_TEST_LIBRARY);
  ASSERT_GT(exported.size(), 100U) << "nm said nothing of " << ROOFPROF_TEST_LIBTORCH;
  EXPECT_EQ(names_only_in(exported, intercepted), "") << "add these to csrc/run/interpose/calls.def";
  EXPECT_EQ(names_only_in(intercepted, exported), "") << "libtorch exports these no more: nothing calls them";
}

}  // namespace
}  // namespace roofprof
