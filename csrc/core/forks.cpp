#include "core/forks.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "roofprof/error.h"

namespace roofprof {
namespace {

// Without a lock: one that is about to get its place is held by nobody yet.
template <class T>
class GrowingList {
 public:
  void add(T value) {
    const auto place = taken_.fetch_add(1);
    if (place >= entries_.size()) throw LogicError("roofprof: more of the process's mutexes than were thought of");
    entries_[place].value = value;
    entries_[place].is_there.store(true, std::memory_order_release);
  }
  template <class Function>
  void for_each(Function&& function) {
    for (const auto& entry : entries_) {
      if (entry.is_there.load(std::memory_order_acquire)) function(entry.value);
    }
  }

 private:
  struct Entry {
    T value{};
    std::atomic<bool> is_there{false};
  };
  std::array<Entry, 32> entries_;
  std::atomic<std::size_t> taken_{0};
};

struct Forks {
  GrowingList<ForkMutex*> mutexes;
  GrowingList<ForkHandler> handlers;
  std::atomic<std::uint32_t> so_far{0};
  std::mutex turn;  // threads may fork at the same time
  // The mutexes that the thread with the turn holds.
  std::array<ForkMutex*, 32> held{};
  std::size_t held_count = 0;

  Forks();
};

Forks& forks() {
  static auto* instance = new Forks;  // outlives every thread
  return *instance;
}

void take_all() {
  auto& all = forks();
  all.turn.lock();
  for (const bool outer : {true, false}) {
    all.mutexes.for_each([&](ForkMutex* mutex) {
      if (mutex->is_outer() != outer) return;
      mutex->lock();
      all.held[all.held_count++] = mutex;
    });
  }
  all.handlers.for_each([](const ForkHandler& handler) {
    if (handler.before != nullptr) handler.before();
  });
}

void free_all() {
  auto& all = forks();
  while (all.held_count > 0) all.held[--all.held_count]->unlock();
  all.turn.unlock();
}

void begin_child() {
  auto& all = forks();
  all.so_far.fetch_add(1, std::memory_order_relaxed);
  free_all();
  all.handlers.for_each([](const ForkHandler& handler) {
    if (handler.in_child != nullptr) handler.in_child();
  });
}

Forks::Forks() { pthread_atfork(&take_all, &free_all, &begin_child); }

}  // namespace

ForkMutex::ForkMutex(Nesting nesting) : nesting_(nesting) { forks().mutexes.add(this); }

void handle_forks(ForkHandler handler) { forks().handlers.add(handler); }

std::uint32_t forks_so_far() { return forks().so_far.load(std::memory_order_relaxed); }

}  // namespace roofprof
