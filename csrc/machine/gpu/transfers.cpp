#include "machine/gpu/transfers.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/add.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <string>

namespace roofprof {
namespace {

constexpr std::int64_t kWidth = 4;  // bytes of a float

at::TensorOptions floats_on(c10::Device device) { return at::TensorOptions().dtype(at::kFloat).device(device); }

double bytes_of(std::int64_t elements) { return static_cast<double>(elements * kWidth); }

}  // namespace

std::vector<Trial> dram_trials(std::int64_t array_bytes, c10::Device device) {
  const std::int64_t elements = std::max<std::int64_t>(1, array_bytes / kWidth);
  at::Tensor a = at::full({elements}, 1.0, floats_on(device));
  const at::Tensor b = at::full({elements}, 2.0, floats_on(device));
  const at::Tensor c = at::full({elements}, 3.0, floats_on(device));
  at::Tensor total = at::empty({}, floats_on(device));
  return {
      {"copy", 2 * bytes_of(elements), [=]() mutable { a.copy_(b); }},
      {"triad", 3 * bytes_of(elements), [=]() mutable { at::add_out(a, b, c, /*alpha=*/3.0); }},
      {"read", bytes_of(elements), [=]() mutable { at::sum_out(total, b, at::IntArrayRef{0}); }},
  };
}

std::vector<Trial> cache_trials(std::int64_t working_set_bytes, c10::Device device) {
  const std::int64_t elements = std::max<std::int64_t>(4096, working_set_bytes / kWidth);
  const at::Tensor set = at::full({elements}, 1.0, floats_on(device));

  // Rows of half the set that begin at different offsets of the other half: what runs at one time reads different
  // lines, so that the cache before this one has none of them. Rows begin where a vector load can.
  constexpr std::int64_t kRows = 512;
  constexpr std::int64_t kAligned = 4;
  const std::int64_t length = elements / 2;
  const std::int64_t shift = (elements - length) / kRows / kAligned * kAligned;
  const at::Tensor rows = at::as_strided(set, {kRows, length}, {shift, 1});
  at::Tensor sums = at::empty({kRows}, floats_on(device));

  // One call of _foreach_copy_ makes few kernels of many copies.
  constexpr std::size_t kCopies = 64;
  const at::Tensor from = set.narrow(0, 0, elements / 2);
  const at::Tensor into = set.narrow(0, elements - elements / 2, elements / 2);
  const std::vector<at::Tensor> sources(kCopies, from);
  const std::vector<at::Tensor> targets(kCopies, into);
  return {
      {"read", bytes_of(kRows * length), [=]() mutable { at::sum_out(sums, rows, at::IntArrayRef{1}); }},
      {"copy", 2.0 * kCopies * bytes_of(elements / 2), [=] { at::_foreach_copy_(targets, sources); }},
  };
}

std::vector<Trial> link_trials(std::int64_t bytes, c10::Device device) {
  const at::TensorOptions plain = at::TensorOptions().dtype(at::kByte).device(at::kCPU);
  const std::int64_t count = std::max<std::int64_t>(1, bytes);
  const auto work = static_cast<double>(count);
  const at::Tensor there = at::full({count}, 1, plain.device(device));
  const at::Tensor pageable = at::full({count}, 2, plain);
  std::vector<Trial> trials;
  if (!device.is_cpu()) {
    const at::Tensor pinned = at::empty({count}, plain.pinned_memory(true));
    pinned.fill_(2);
    trials = {{"pinned to device", work, [=] { there.copy_(pinned, /*non_blocking=*/true); }},
              {"device to pinned", work, [=] { pinned.copy_(there, /*non_blocking=*/true); }}};
  }
  trials.push_back({"pageable to device", work, [=] { there.copy_(pageable); }});
  trials.push_back({"device to pageable", work, [=] { pageable.copy_(there); }});
  return trials;
}

}  // namespace roofprof
