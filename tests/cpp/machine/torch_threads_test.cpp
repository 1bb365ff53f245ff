#include "machine/cpu/environment.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace roofprof {
namespace {

std::vector<std::thread::id> threads_used() {
  std::vector<std::thread::id> ids(static_cast<std::size_t>(at::get_num_threads()));
  on_each_torch_thread([&](int index) { ids.at(static_cast<std::size_t>(index)) = std::this_thread::get_id(); });
  return ids;
}

TEST(TorchThreads, EachIndexHasAThreadOfItsOwnAndKeepsIt) {
  const auto ids = threads_used();
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(threads_used(), ids);
}

TEST(TorchThreads, FollowTorchsNumberOfThreads) {
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    std::atomic<int> calls = 0;
    on_each_torch_thread([&](int) { ++calls; });
    EXPECT_EQ(calls, threads);
    EXPECT_EQ(threads_used().size(), static_cast<std::size_t>(threads));
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace roofprof
