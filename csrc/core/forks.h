#pragma once
// What a child of fork() finds: locks that nobody holds there, and nothing that is its parent's. Only the thread that
// forked lives on in it, so whatever another thread held or was about to change would stay so for ever.

#include <cstdint>
#include <mutex>

namespace roofprof {

// Guards what all of the process share, and is never destroyed. A fork waits until nobody holds it, so the child has it
// free and what it guards whole; so nothing that takes long is done under it. What belongs to one profile has mutexes
// of its own: in the child that profile is over.
class ForkMutex {
 public:
  // Another one may be taken under an outer one.
  enum class Nesting : std::uint8_t { inner, outer };
  explicit ForkMutex(Nesting nesting = Nesting::inner);
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool is_outer() const { return nesting_ == Nesting::outer; }

 private:
  std::mutex mutex_;
  Nesting nesting_;
};

struct ForkHandler {
  void (*before)() = nullptr;    // in the parent, while all of these mutexes are held
  void (*in_child)() = nullptr;  // before all else there; the mutexes are free
};
void handle_forks(ForkHandler handler);

// How many forks made this process of the one that loaded this library.
std::uint32_t forks_so_far();

}  // namespace roofprof
