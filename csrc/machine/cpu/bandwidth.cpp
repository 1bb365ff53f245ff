#include "machine/cpu/bandwidth.h"

#include <ATen/Parallel.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "machine/cpu/environment.h"

namespace roofprof {
namespace {

constexpr std::size_t kStepBytes = std::size_t{8} * 64;  // what the loops do at a time with the widest registers

// Keeps the compiler from turning a loop that moves words into a call of memcpy, which chooses its stores itself.
#define ROOFPROF_NO_IDIOM asm volatile("")

#define ROOFPROF_LOOPS loops_plain
#define ROOFPROF_LOOPS_TARGET
#define ROOFPROF_LOOPS_WIDTH 16
#if defined(__x86_64__)
#define ROOFPROF_LOOPS_STREAM(to, words) \
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(words))
#else
#define ROOFPROF_LOOPS_STREAM(to, words) *(to) = (words)
#endif
#include "machine/cpu/bandwidth_loops.inl"
#if defined(__x86_64__)
#define ROOFPROF_LOOPS loops_avx2
#define ROOFPROF_LOOPS_TARGET __attribute__((target("avx2,fma")))
#define ROOFPROF_LOOPS_WIDTH 32
#define ROOFPROF_LOOPS_STREAM(to, words) \
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(words))
#include "machine/cpu/bandwidth_loops.inl"
#define ROOFPROF_LOOPS loops_avx512
#define ROOFPROF_LOOPS_TARGET __attribute__((target("avx512f")))
#define ROOFPROF_LOOPS_WIDTH 64
#define ROOFPROF_LOOPS_STREAM(to, words) \
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(words))
#include "machine/cpu/bandwidth_loops.inl"
#endif

// Two loops of a kind: with ordinary stores, and with stores past the caches.
struct Loops {
  std::uint64_t (*read)(const std::byte*, std::size_t);
  void (*update)(std::byte*, std::size_t);
  std::array<void (*)(std::byte*, std::size_t), 2> fill;
  std::array<void (*)(std::byte*, const std::byte*, std::size_t), 2> copy;
  std::array<void (*)(std::byte*, const std::byte*, const std::byte*, std::size_t), 2> triad;
};

#define ROOFPROF_LOOPS_OF(set)                                                                          \
  {                                                                                                     \
    set::read, set::update, {set::fill<false>, set::fill<true>}, {set::copy<false>, set::copy<true>}, { \
      set::triad<false>, set::triad<true>                                                               \
    }                                                                                                   \
  }

Loops loops_of_this_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return ROOFPROF_LOOPS_OF(loops_avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return ROOFPROF_LOOPS_OF(loops_avx2);
#endif
  return ROOFPROF_LOOPS_OF(loops_plain);
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

// One thread's memory. The starts of arrays differ in the low 12 bits: loads that look as if they followed a store to
// the same place in a page are held back by the hardware.
class Slice {
 public:
  explicit Slice(std::size_t bytes) : block_(allocate(bytes + kArrays * (kPage + kStagger))) {
    std::fill_n(reinterpret_cast<double*>(block_.get()), (bytes + kArrays * (kPage + kStagger)) / sizeof(double),
                1.0);  // first touch
  }
  static std::size_t array_bytes(std::size_t bytes, std::size_t arrays) {
    return std::max(kStepBytes, bytes / arrays / kStepBytes * kStepBytes);
  }
  std::byte* array(std::size_t index, std::size_t bytes_of_array) const {
    return block_.get() + index * (rounded_up(bytes_of_array, kPage) + kStagger);
  }

 private:
  static constexpr std::size_t kArrays = 3;
  static constexpr std::size_t kStagger = 5 * kStepBytes;
  Block block_;
};

// A sink that the optimiser must take as read.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(value) : "memory");
}

// A way to move the bytes of a working set.
struct Kernel {
  double BandwidthPoint::* rate;
  std::size_t arrays;
  std::size_t moved;                                           // bytes moved for each byte of an array
  std::function<void(const Slice&, std::size_t bytes)> sweep;  // `bytes` of each array
};

std::vector<Kernel> kernels(const Loops& loops) {
  std::vector<Kernel> all = {
      {&BandwidthPoint::read, 1, 1, [=](const Slice& s, std::size_t n) { keep(loops.read(s.array(0, n), n)); }},
      {&BandwidthPoint::update, 1, 2, [=](const Slice& s, std::size_t n) { loops.update(s.array(0, n), n); }},
  };
  for (const std::size_t streaming : {0, 1}) {
    all.push_back({&BandwidthPoint::write, 1, 1,
                   [f = loops.fill[streaming]](const Slice& s, std::size_t n) { f(s.array(0, n), n); }});
    all.push_back({&BandwidthPoint::copy, 2, 2,
                   [f = loops.copy[streaming]](const Slice& s, std::size_t n) { f(s.array(0, n), s.array(1, n), n); }});
    all.push_back({&BandwidthPoint::triad, 3, 3, [f = loops.triad[streaming]](const Slice& s, std::size_t n) {
                     f(s.array(0, n), s.array(1, n), s.array(2, n), n);
                   }});
  }
  return all;
}

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

using Slices = std::vector<std::unique_ptr<Slice>>;

// One kernel over one working set.
class Trial {
 public:
  Trial(const Kernel& kernel, std::size_t slice_bytes, std::size_t threads)
      : kernel_(kernel),
        array_bytes_(Slice::array_bytes(slice_bytes, kernel.arrays)),
        bytes_per_sweep_(static_cast<double>(threads * kernel.moved * array_bytes_)),
        spans_(threads) {}

  // Bytes per second: the best of several batches, so that repeats differ by how far the figure moves, not by how often
  // something else got the processor.
  double rate(const Slices& slices) {
    constexpr Seconds kTime{0.006};
    constexpr Seconds kLong{0.02};  // nothing of such a sweep's beginning is in a cache at its end
    const auto begin = Clock::now();
    double best = batch_rate(slices);
    if (Clock::now() - begin > kLong) return best;
    const auto end = Clock::now() + kTime;
    do best = std::max(best, batch_rate(slices));
    while (Clock::now() < end);
    return best;
  }
  double BandwidthPoint::* mix() const { return kernel_.rate; }

 private:
  // Some sweeps in one parallel region, from when all threads are there to when the last is done.
  double batch_rate(const Slices& slices) {
    std::atomic<std::size_t> arrived = 0;
    on_each_torch_thread([&](int index) {
      auto& [begin, end] = spans_[static_cast<std::size_t>(index)];
      wait_for_all(arrived);
      begin = Clock::now();
      for (std::int64_t i = 0; i < sweeps_; ++i) kernel_.sweep(*slices[static_cast<std::size_t>(index)], array_bytes_);
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

  // Waking the pool takes longer than a batch where another program holds a processor: this time must not count.
  void wait_for_all(std::atomic<std::size_t>& arrived) const {
    ++arrived;
    // The wait has a limit, as one thread may have to run all parts one after the other.
    const auto limit = Clock::now() + std::chrono::milliseconds(20);
    while (arrived.load() < spans_.size() && Clock::now() < limit) std::this_thread::yield();
  }

  struct Span {
    Clock::time_point begin;
    Clock::time_point end;
    double seconds() const { return Seconds(end - begin).count(); }
  };

  Kernel kernel_;
  std::size_t array_bytes_;
  double bytes_per_sweep_;
  std::vector<Span> spans_;
  std::int64_t sweeps_ = 1;
};

}  // namespace

struct BandwidthSweep::State {
  std::vector<std::int64_t> working_sets;
  Slices slices;
  std::vector<std::vector<Trial>> trials;  // by working set
};

BandwidthSweep::BandwidthSweep(std::int64_t largest_bytes) : state_(std::make_unique<State>()) {
  const auto threads = static_cast<std::size_t>(std::max(1, at::get_num_threads()));
  state_->working_sets = working_sets_up_to(largest_bytes);
  const auto slice_bytes = [&](std::int64_t working_set) { return static_cast<std::size_t>(working_set) / threads; };
  state_->slices.resize(threads);
  std::atomic<bool> out_of_memory = false;  // an exception must not leave a thread of the pool
  on_each_torch_thread([&](int index) {
    try {
      state_->slices[static_cast<std::size_t>(index)] =
          std::make_unique<Slice>(slice_bytes(state_->working_sets.back()));
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  });
  if (out_of_memory) throw std::bad_alloc();
  const auto all = kernels(loops_of_this_cpu());
  for (const std::int64_t bytes : state_->working_sets) {
    auto& trials = state_->trials.emplace_back();
    for (const Kernel& kernel : all) trials.emplace_back(kernel, slice_bytes(bytes), threads);
  }
}

BandwidthSweep::~BandwidthSweep() = default;

std::vector<BandwidthPoint> BandwidthSweep::round() {
  std::vector<BandwidthPoint> points;
  for (std::size_t i = 0; i < state_->trials.size(); ++i) {
    auto& point = points.emplace_back(BandwidthPoint{.working_set_bytes = state_->working_sets[i]});
    for (Trial& trial : state_->trials[i]) {
      double& rate = point.*trial.mix();
      rate = std::max(rate, trial.rate(state_->slices));
    }
  }
  return points;
}

std::vector<std::int64_t> working_sets_up_to(std::int64_t largest_bytes) {
  std::vector<std::int64_t> sizes;
  std::int64_t size = 16 << 10;
  do {
    sizes.push_back(size);
    size = std::llround((16 << 10) * std::exp2(static_cast<double>(sizes.size()) / 2));
  } while (size <= largest_bytes);
  return sizes;
}

}  // namespace roofprof
