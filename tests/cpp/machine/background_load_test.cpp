#include "machine/cpu/background_load.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "machine/cpu/host.h"

namespace roofprof {
namespace {

using namespace std::chrono_literals;

// However slow and busy a machine is.
constexpr auto kLongest = 2min;

[[noreturn]] void spin() {
  volatile bool on = true;
  while (on) {
  }
  _exit(0);
}

bool becomes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

TEST(BackgroundLoad, UseWhatThisProcessDoesNot) {
  using Use = BackgroundLoad::Use;
  const auto share = [](const Use& use) { return BackgroundLoad::share_of_others(use); };
  EXPECT_EQ(share({.busy_seconds = 8, .own_seconds = 2, .wall_seconds = 4, .cpus = 2}), 0.75);
  EXPECT_EQ(share({.busy_seconds = 4, .own_seconds = 4, .wall_seconds = 1, .cpus = 4}), 0);
  EXPECT_EQ(share({.busy_seconds = 4, .own_seconds = 0, .wall_seconds = 1, .cpus = 4}), 1);
  // The system counts in ticks, the process in nanoseconds.
  EXPECT_EQ(share({.busy_seconds = 0.99, .own_seconds = 1, .wall_seconds = 1, .cpus = 1}), 0);
  EXPECT_EQ(share({.busy_seconds = 1.01, .own_seconds = 0, .wall_seconds = 1, .cpus = 1}), 1);
}

TEST(MeasuringBackgroundLoad, AnotherProcessIsSeen) {
  if (!busy_seconds(allowed_cpus())) GTEST_SKIP() << "this system does not tell what its processors do";
  const pid_t child = fork();
  if (child == 0) spin();
  const BackgroundLoad other_load;
  EXPECT_TRUE(becomes_true([&] { return other_load.share().value_or(0) > 0; }));
  EXPECT_LE(other_load.share().value_or(2), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Two ranks that one program started: what one uses is no neighbour's work to the other.
TEST(MeasuringBackgroundLoad, SiblingsAreKnownByTheirParent) {
  const pid_t program = fork();
  if (program == 0) {
    const pid_t rank = fork();
    if (rank == 0) spin();
    const pid_t other = fork();
    if (other == 0) {
      const double before = seconds_of_siblings();
      _exit(becomes_true([&] { return seconds_of_siblings() > before; }) ? 0 : 1);
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

}  // namespace
}  // namespace roofprof
