#include "observe/memory/stable_places.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace roofprof::observe {
namespace {

using Kind = Operand::Kind;
using Impl = c10::intrusive_ptr<c10::StorageImpl>;

Impl storage(std::size_t bytes) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, c10::GetCPUAllocator(),
                                               true);
}
Impl at_address(void* memory, std::size_t bytes) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               c10::DataPtr(memory, c10::kCPU), nullptr, false);
}

std::uintptr_t address(const Impl& of) { return reinterpret_cast<std::uintptr_t>(of->data()); }

// Where the storage is for an op that reads all of it.
TouchedMemory place_of(StablePlaces& places, const Impl& of, std::int32_t device = 0) {
  const auto begin = address(of);
  const auto bytes = static_cast<std::int64_t>(of->nbytes());
  std::array operands = {Operand{{begin, begin + of->nbytes(), bytes}, device, Kind::input, of.get(), begin}};
  places.place(operands);
  EXPECT_EQ(operands[0].origin, operands[0].memory.begin);
  EXPECT_EQ(operands[0].memory.end - operands[0].memory.begin, of->nbytes());
  EXPECT_EQ(operands[0].memory.bytes, bytes);
  return operands[0].memory;
}
std::uintptr_t begin_of(StablePlaces& places, const Impl& of) { return place_of(places, of).begin; }

TEST(StablePlaces, AStorageKeepsItsPlaceAndNoOtherHasIt) {
  StablePlaces places;
  const auto one = storage(1000), two = storage(1000);
  const auto first = place_of(places, one), second = place_of(places, two);
  EXPECT_TRUE(first.end <= second.begin || second.end <= first.begin);
  EXPECT_EQ(begin_of(places, one), first.begin);
  EXPECT_EQ(begin_of(places, two), second.begin);
}

TEST(StablePlaces, ANewStorageTakesThePlaceOfOneThatIsGone) {
  StablePlaces places;
  auto one = storage(1000), two = storage(1000);
  const auto first = begin_of(places, one), second = begin_of(places, two);
  one.reset();
  const auto next = storage(900);
  EXPECT_EQ(begin_of(places, next), first) << "nearly as large";
  two.reset();
  const auto small = storage(100);
  EXPECT_NE(begin_of(places, small), second) << "far smaller";
  const auto same = storage(1000);
  EXPECT_EQ(begin_of(places, same), second);
}

// Whatever the process allocated and freed meanwhile.
TEST(StablePlaces, PlacesFollowFromTheProgramAlone) {
  std::vector<std::vector<std::uintptr_t>> seen;
  std::vector<Impl> others;
  for (std::size_t run = 0; run < 8; ++run) {
    StablePlaces places;
    std::vector<std::uintptr_t> begins;
    std::vector<Impl> kept;
    Impl value = storage(4096);
    for (std::size_t op = 0; op < 600; ++op) {  // so many that all are looked at
      for (std::size_t i = 0; i < (run * 7 + op) % 5; ++i) others.push_back(storage(512 * (1 + (run + op + i) % 9)));
      if (others.size() > 50) others.erase(others.begin(), others.begin() + 25);
      auto next = storage(512 * (1 + op % 9));
      begins.push_back(begin_of(places, value));
      begins.push_back(begin_of(places, next));
      if (op % 3 == 0) kept.push_back(value);
      if (op % 200 == 199) kept.clear();
      value = std::move(next);
    }
    seen.push_back(std::move(begins));
  }
  for (const auto& begins : seen) EXPECT_EQ(begins, seen.front());
}

TEST(StablePlaces, StoragesInTheSameMemoryAreInTheSamePlace) {
  StablePlaces places;
  std::array<char, 1024> memory{};
  const auto whole = at_address(memory.data(), memory.size());
  const auto begin = begin_of(places, whole);
  const auto again = at_address(memory.data(), memory.size());
  const auto part = at_address(memory.data() + 256, 100);
  EXPECT_EQ(begin_of(places, again), begin);
  EXPECT_EQ(begin_of(places, part), begin + 256);
}

}  // namespace
}  // namespace roofprof::observe
