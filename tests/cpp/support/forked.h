#pragma once
// A child process that does something and must come to its end.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace roofprof::testing {

// "" where `body` gave true in a child; else what happened. A child that hangs is killed: the limit is there for that,
// and far above what a busy machine needs.
inline std::string in_child(const std::function<bool()>& body) {
  constexpr std::chrono::seconds kHangs{60};
  const pid_t child = fork();
  if (child == 0) {
    bool well = false;
    try {
      well = body();
    } catch (...) {
      _exit(2);
    }
    _exit(well ? 0 : 1);
  }
  if (child < 0) return "there is no child";
  int status = 0;
  const auto end = std::chrono::steady_clock::now() + kHangs;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "the child hung";
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (WIFSIGNALED(status)) return "the child died of signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) == 2) return "the child raised an exception";
  return WEXITSTATUS(status) == 0 ? "" : "the child found something wrong";
}

}  // namespace roofprof::testing
