#include "roofs/cpu/neighbours.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "roofs/cpu/host.h"

namespace roofprof {
namespace {

using namespace std::chrono_literals;

void spin(std::chrono::milliseconds time) {
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
  }
}

TEST(Neighbours, AnotherProcessIsSeen) {
  const pid_t child = fork();
  if (child == 0) {
    spin(5s);
    _exit(0);
  }
  const Neighbours neighbours;
  std::this_thread::sleep_for(600ms);
  const auto share = neighbours.share();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!busy_seconds(allowed_cpus())) GTEST_SKIP() << "this system does not tell what its processors do";
  ASSERT_TRUE(share);
  EXPECT_GT(*share, 0.5 / static_cast<double>(allowed_cpus().size()));
}

// On all processors at once: what it used and what others used is no more than there is.
TEST(Neighbours, OwnWorkIsNotAnothers) {
  if (!busy_seconds(allowed_cpus())) GTEST_SKIP() << "this system does not tell what its processors do";
  const std::size_t cpus = allowed_cpus().size();
  const Neighbours neighbours;
  const std::clock_t before = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cpus; ++i) threads.emplace_back(spin, 500ms);
  for (auto& thread : threads) thread.join();
  const double own = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(neighbours.share().value_or(1) + own / wall.count() / static_cast<double>(cpus), 1.2);
}

// Two ranks that one program started: what one uses is no neighbour's work to the other.
TEST(Neighbours, SiblingsAreKnownByTheirParent) {
  const pid_t program = fork();
  if (program == 0) {
    const pid_t rank = fork();
    if (rank == 0) {
      spin(10s);
      _exit(0);
    }
    const pid_t other = fork();
    if (other == 0) {
      const double before = seconds_of_siblings();
      std::this_thread::sleep_for(1s);
      _exit(seconds_of_siblings() - before > 0.1 ? 0 : 1);
    }
    int status = 0;
    waitpid(other, &status, 0);
    kill(rank, SIGKILL);
    waitpid(rank, nullptr, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  waitpid(program, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(seconds_of_siblings("/nowhere"), 0);
}

TEST(Neighbours, AShortTimeTellsNothing) { EXPECT_FALSE(Neighbours().share()); }

}  // namespace
}  // namespace roofprof
