#include "roofs/cpu/bandwidth.h"

#include <ATen/Parallel.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "roofs/cpu/torch_threads.h"

namespace roofprof {
namespace {

constexpr std::size_t kStepBytes = std::size_t{8} * 64;  // what the loops do at a time with the widest registers

// Keeps a loop that moves words from being turned into a call of memcpy, which has stores of its own choice.
#define ROOFPROF_NO_IDIOM asm volatile("")

#define ROOFPROF_LOOPS loops_plain
#define ROOFPROF_LOOPS_TARGET
#define ROOFPROF_LOOPS_WIDTH 16
#include "roofs/cpu/bandwidth_loops.inl"
#if defined(__x86_64__)
#define ROOFPROF_LOOPS loops_avx2
#define ROOFPROF_LOOPS_TARGET __attribute__((target("avx2,fma")))
#define ROOFPROF_LOOPS_WIDTH 32
#include "roofs/cpu/bandwidth_loops.inl"
#define ROOFPROF_LOOPS loops_avx512
#define ROOFPROF_LOOPS_TARGET __attribute__((target("avx512f")))
#define ROOFPROF_LOOPS_WIDTH 64
#include "roofs/cpu/bandwidth_loops.inl"
#endif

struct Loops {
  std::uint64_t (*read)(const std::byte*, std::size_t);
  void (*copy)(std::byte*, const std::byte*, std::size_t);
  void (*triad)(std::byte*, const std::byte*, const std::byte*, std::size_t);
};

Loops loops_of_this_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {loops_avx512::read, loops_avx512::copy, loops_avx512::triad};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {loops_avx2::read, loops_avx2::copy, loops_avx2::triad};
  }
#endif
  return {loops_plain::read, loops_plain::copy, loops_plain::triad};
}

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t rounded_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

struct Free {
  void operator()(std::byte* block) const { std::free(block); }
};
using Block = std::unique_ptr<std::byte, Free>;

Block allocate(std::size_t bytes) {
  const std::size_t alignment = bytes < kHugePage ? kPage : kHugePage;
  const std::size_t rounded = rounded_up(bytes, alignment);
  Block block(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!block) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // A roof is what the memory can do: walking page tables is a cost that a program may or may not have.
  if (alignment == kHugePage) madvise(block.get(), rounded, MADV_HUGEPAGE);
#endif
  return block;
}

// One thread's arrays. Their starts differ in the low 12 bits: loads that look as if they followed a store to the same
// place in a page are held back by the hardware.
struct Slice {
  static constexpr std::size_t kStagger = 5 * kStepBytes;

  explicit Slice(std::size_t bytes) : bytes(bytes), block(allocate(bytes + 3 * (kPage + kStagger))) {
    auto* values = reinterpret_cast<double*>(block.get());
    std::fill_n(values, (bytes + 3 * (kPage + kStagger)) / sizeof(double), 1.0);  // first touch
  }
  std::size_t array_bytes(std::size_t arrays) const {
    return std::max(kStepBytes, bytes / arrays / kStepBytes * kStepBytes);
  }
  std::byte* array(std::size_t index, std::size_t arrays) const {
    return block.get() + index * (rounded_up(array_bytes(arrays), kPage) + kStagger);
  }

  std::size_t bytes;
  Block block;
};

// A sink that the optimiser must take as read.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(value) : "memory");
}

struct Kernel {
  const char* name;
  std::size_t arrays;  // also the bytes moved for each byte of an array
  std::function<void(const Slice&)> sweep;
};

std::array<Kernel, 3> kernels(const Loops& loops) {
  return {{{"read", 1, [=](const Slice& s) { keep(loops.read(s.array(0, 1), s.array_bytes(1))); }},
           {"copy", 2,
            [=](const Slice& s) {
              loops.copy(s.array(0, 2), s.array(1, 2), s.array_bytes(2));
              keep(s.block.get());
            }},
           {"triad", 3, [=](const Slice& s) {
              loops.triad(s.array(0, 3), s.array(1, 3), s.array(2, 3), s.array_bytes(3));
              keep(s.block.get());
            }}}};
}

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Measurement {
 public:
  Measurement(const std::vector<std::unique_ptr<Slice>>& slices, const Kernel& kernel)
      : slices_(slices), kernel_(kernel) {
    for (const auto& slice : slices_) {
      bytes_per_sweep_ += static_cast<double>(kernel_.arrays * slice->array_bytes(kernel_.arrays));
    }
  }

  Bandwidth run(Seconds budget) {
    // A repeat is the best of several batches, so that the spread tells how far the figure moves, not how often
    // something else got the processor.
    constexpr int kRepeats = 7;
    constexpr int kFewestRepeats = 3;
    const auto begin = Clock::now();
    batch_rate();  // warm-up
    double best = 0;
    double worst = 0;
    int repeats = 0;
    for (; repeats < kRepeats && (repeats < kFewestRepeats || Clock::now() - begin < budget); ++repeats) {
      const auto end = Clock::now() + budget / kRepeats;
      double rate = 0;
      do rate = std::max(rate, batch_rate());
      while (Clock::now() < end);
      best = std::max(best, rate);
      worst = repeats == 0 ? rate : std::min(worst, rate);
    }
    return {kernel_.name, best, (best - worst) / best, repeats};
  }

 private:
  // Bytes per second of some sweeps in one parallel region, from when all threads are there to when the last is done.
  double batch_rate() {
    std::atomic<std::size_t> arrived = 0;
    on_each_torch_thread([&](int index) {
      auto& [begin, end] = spans_[static_cast<std::size_t>(index)];
      wait_for_all(arrived);
      begin = Clock::now();
      for (std::int64_t i = 0; i < sweeps_; ++i) kernel_.sweep(*slices_[static_cast<std::size_t>(index)]);
      end = Clock::now();
    });
    const auto first = std::ranges::min(spans_, {}, &Span::begin).begin;
    const auto last = std::ranges::max(spans_, {}, &Span::end).end;
    const double rate = static_cast<double>(sweeps_) * bytes_per_sweep_ / std::max(Seconds(last - first).count(), 1e-9);

    // Batches grow until they are long against the threads' uneven start (about a microsecond), and stay short against
    // the slices of time that the scheduler deals out. The quickest thread decides: the others may have been stopped.
    constexpr double kBatchSeconds = 0.002;
    const double quickest = std::max(std::ranges::min(spans_, {}, &Span::seconds).seconds(), 1e-9);
    if (quickest < kBatchSeconds) {
      sweeps_ = 1 + static_cast<std::int64_t>(static_cast<double>(sweeps_) * std::min(kBatchSeconds / quickest, 16.0));
    }
    return rate;
  }

  // Where another program holds a processor, waking the pool takes longer than a batch: it must not count.
  void wait_for_all(std::atomic<std::size_t>& arrived) const {
    ++arrived;
    // With a limit, as one thread may have to run all parts one after the other.
    const auto limit = Clock::now() + std::chrono::milliseconds(20);
    while (arrived.load() < slices_.size() && Clock::now() < limit) std::this_thread::yield();
  }

  struct Span {
    Clock::time_point begin;
    Clock::time_point end;
    double seconds() const { return Seconds(end - begin).count(); }
  };

  const std::vector<std::unique_ptr<Slice>>& slices_;
  const Kernel& kernel_;
  std::vector<Span> spans_{slices_.size()};
  double bytes_per_sweep_ = 0;
  std::int64_t sweeps_ = 1;
};

}  // namespace

std::vector<Bandwidth> measure_bandwidth(std::int64_t working_set_bytes, std::chrono::duration<double> budget) {
  const auto threads = static_cast<std::size_t>(std::max(1, at::get_num_threads()));
  const std::size_t slice_bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, working_set_bytes)) / threads;

  std::vector<std::unique_ptr<Slice>> slices(threads);
  on_each_torch_thread(
      [&](int index) { slices[static_cast<std::size_t>(index)] = std::make_unique<Slice>(slice_bytes); });

  std::vector<Bandwidth> results;
  for (const Kernel& kernel : kernels(loops_of_this_cpu())) {
    results.push_back(Measurement(slices, kernel).run(budget / 3));
  }
  std::ranges::sort(results, std::greater{}, &Bandwidth::bytes_per_second);
  return results;
}

bool bandwidth_loops_are_optimised() {
#ifdef __OPTIMIZE__
  return true;
#else
  return false;
#endif
}

}  // namespace roofprof
