#pragma once
// Prepares a child of fork(): nobody holds a lock there, and nothing of its parent's is left. Only the thread that
// forked lives on in the child, so a lock that another thread held would stay held for ever, and a change that it had
// begun would stay half done.

#include <cstdint>
#include <mutex>

namespace roofprof {

// Guards data that the whole process shares, and is never destroyed. A fork waits until nobody holds the mutex, so in
// the child it is free and its data are whole; for this reason, hold it for short work only. Data of one profile have
// other mutexes: in the child that profile is over.
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

// Returns the number of forks between the process that loaded this library and this one.
std::uint32_t forks_so_far();

}  // namespace roofprof
