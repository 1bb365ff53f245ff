// The loops whose speed is a bandwidth, for one instruction set. Included once for each, with ROOFPROF_LOOPS (the
// namespace), ROOFPROF_LOOPS_TARGET (the function attribute), ROOFPROF_LOOPS_WIDTH (bytes of a register) and
// ROOFPROF_LOOPS_STREAM(to, words) (a store past the caches) defined.
//
// The vectors are explicit and eight of them are in flight, so that the loads, not the latency of an addition or what
// the optimiser makes of a loop, set the pace. `bytes` is a multiple of kStepBytes.

namespace ROOFPROF_LOOPS {

using Words = std::uint64_t __attribute__((vector_size(ROOFPROF_LOOPS_WIDTH), may_alias));
using Doubles = double __attribute__((vector_size(ROOFPROF_LOOPS_WIDTH), may_alias));

ROOFPROF_LOOPS_TARGET std::uint64_t read(const std::byte* source, std::size_t bytes) {
  const auto* from = reinterpret_cast<const Words*>(source);
  Words sum0{};
  Words sum1{};
  Words sum2{};
  Words sum3{};
  Words sum4{};
  Words sum5{};
  Words sum6{};
  Words sum7{};
  for (std::size_t i = 0; i < bytes / sizeof(Words); i += 8) {
    sum0 += from[i];
    sum1 += from[i + 1];
    sum2 += from[i + 2];
    sum3 += from[i + 3];
    sum4 += from[i + 4];
    sum5 += from[i + 5];
    sum6 += from[i + 6];
    sum7 += from[i + 7];
  }
  const Words sum = ((sum0 + sum1) + (sum2 + sum3)) + ((sum4 + sum5) + (sum6 + sum7));
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < sizeof(Words) / sizeof(std::uint64_t); ++i) total += sum[i];
  return total;
}

template <bool Streaming>
ROOFPROF_LOOPS_TARGET inline __attribute__((always_inline)) void store(Words* to, Words word) {
  if constexpr (Streaming) {
    ROOFPROF_LOOPS_STREAM(to, word);
  } else {
    *to = word;
  }
}

template <bool Streaming>
ROOFPROF_LOOPS_TARGET void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  auto* to = reinterpret_cast<Words*>(target);
  const auto* from = reinterpret_cast<const Words*>(source);
  for (std::size_t i = 0; i < bytes / sizeof(Words); i += 8) {
    const Words word0 = from[i];
    const Words word1 = from[i + 1];
    const Words word2 = from[i + 2];
    const Words word3 = from[i + 3];
    const Words word4 = from[i + 4];
    const Words word5 = from[i + 5];
    const Words word6 = from[i + 6];
    const Words word7 = from[i + 7];
    ROOFPROF_NO_IDIOM;
    store<Streaming>(to + i, word0);
    store<Streaming>(to + i + 1, word1);
    store<Streaming>(to + i + 2, word2);
    store<Streaming>(to + i + 3, word3);
    store<Streaming>(to + i + 4, word4);
    store<Streaming>(to + i + 5, word5);
    store<Streaming>(to + i + 6, word6);
    store<Streaming>(to + i + 7, word7);
  }
}

template <bool Streaming>
ROOFPROF_LOOPS_TARGET void triad(std::byte* target, const std::byte* left, const std::byte* right, std::size_t bytes) {
  auto* to = reinterpret_cast<Words*>(target);
  const auto* a = reinterpret_cast<const Doubles*>(left);
  const auto* b = reinterpret_cast<const Doubles*>(right);
  for (std::size_t i = 0; i < bytes / sizeof(Doubles); i += 8) {
    const Doubles value0 = a[i] + 0.5 * b[i];
    const Doubles value1 = a[i + 1] + 0.5 * b[i + 1];
    const Doubles value2 = a[i + 2] + 0.5 * b[i + 2];
    const Doubles value3 = a[i + 3] + 0.5 * b[i + 3];
    const Doubles value4 = a[i + 4] + 0.5 * b[i + 4];
    const Doubles value5 = a[i + 5] + 0.5 * b[i + 5];
    const Doubles value6 = a[i + 6] + 0.5 * b[i + 6];
    const Doubles value7 = a[i + 7] + 0.5 * b[i + 7];
    store<Streaming>(to + i, reinterpret_cast<Words>(value0));
    store<Streaming>(to + i + 1, reinterpret_cast<Words>(value1));
    store<Streaming>(to + i + 2, reinterpret_cast<Words>(value2));
    store<Streaming>(to + i + 3, reinterpret_cast<Words>(value3));
    store<Streaming>(to + i + 4, reinterpret_cast<Words>(value4));
    store<Streaming>(to + i + 5, reinterpret_cast<Words>(value5));
    store<Streaming>(to + i + 6, reinterpret_cast<Words>(value6));
    store<Streaming>(to + i + 7, reinterpret_cast<Words>(value7));
  }
}

template <bool Streaming>
ROOFPROF_LOOPS_TARGET void fill(std::byte* target, std::size_t bytes) {
  auto* to = reinterpret_cast<Words*>(target);
  const Words word{};
  for (std::size_t i = 0; i < bytes / sizeof(Words); i += 8) {
    ROOFPROF_NO_IDIOM;
    store<Streaming>(to + i, word);
    store<Streaming>(to + i + 1, word);
    store<Streaming>(to + i + 2, word);
    store<Streaming>(to + i + 3, word);
    store<Streaming>(to + i + 4, word);
    store<Streaming>(to + i + 5, word);
    store<Streaming>(to + i + 6, word);
    store<Streaming>(to + i + 7, word);
  }
}

// A value and its complement to one in turn: halves would end as denormal numbers, which are slow.
ROOFPROF_LOOPS_TARGET void update(std::byte* target, std::size_t bytes) {
  auto* to = reinterpret_cast<Doubles*>(target);
  for (std::size_t i = 0; i < bytes / sizeof(Doubles); i += 8) {
    const Doubles value0 = 1.0 - to[i];
    const Doubles value1 = 1.0 - to[i + 1];
    const Doubles value2 = 1.0 - to[i + 2];
    const Doubles value3 = 1.0 - to[i + 3];
    const Doubles value4 = 1.0 - to[i + 4];
    const Doubles value5 = 1.0 - to[i + 5];
    const Doubles value6 = 1.0 - to[i + 6];
    const Doubles value7 = 1.0 - to[i + 7];
    to[i] = value0;
    to[i + 1] = value1;
    to[i + 2] = value2;
    to[i + 3] = value3;
    to[i + 4] = value4;
    to[i + 5] = value5;
    to[i + 6] = value6;
    to[i + 7] = value7;
  }
}

}  // namespace ROOFPROF_LOOPS

#undef ROOFPROF_LOOPS
#undef ROOFPROF_LOOPS_TARGET
#undef ROOFPROF_LOOPS_WIDTH
#undef ROOFPROF_LOOPS_STREAM
