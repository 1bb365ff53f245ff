#include "observe/memory/memory_ledger.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

namespace roofprof::observe {
namespace {

at::Tensor tensor_of(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

WeakStorage storage_of(const at::Tensor& tensor) { return tensor.storage().getWeakStorageImpl(); }

TEST(StorageWatch, WhatIsMadeCountsUntilNobodyHoldsIt) {
  StorageWatch watch;
  auto tensor = tensor_of(100);
  watch.was_given(storage_of(tensor));
  const auto view = tensor.slice(0, 10, 20);
  watch.was_given(storage_of(view));
  EXPECT_EQ(watch.ledger().live(), 100);
  tensor.reset();
  watch.look();
  EXPECT_EQ(watch.ledger().live(), 100);  // the view holds it
  EXPECT_EQ(watch.devices(), std::set<std::string>{"cpu"});
}

TEST(StorageWatch, ItHoldsNoMemoryItself) {
  StorageWatch watch;
  bool freed = false;
  {
    auto data = c10::InefficientStdFunctionContext::makeDataPtr(
        new char[8],
        [&freed](void* block) {
          delete[] static_cast<char*>(block);
          freed = true;
        },
        at::kCPU);
    const c10::Storage storage(c10::Storage::use_byte_size_t(), 8, std::move(data), nullptr, false);
    watch.was_given(storage.getWeakStorageImpl());
    EXPECT_EQ(watch.ledger().live(), 8);
  }
  EXPECT_TRUE(freed);
  watch.look();
  EXPECT_EQ(watch.ledger().live(), 0);
  EXPECT_EQ(watch.ledger().result().peak_bytes, 8);
}

TEST(StorageWatch, WhatWasReadFirstWasThereBefore) {
  StorageWatch watch;
  const auto parameter = tensor_of(100), result = tensor_of(30);
  watch.was_read(storage_of(parameter));
  watch.was_given(storage_of(parameter));  // written in place
  watch.was_given(storage_of(result));
  watch.was_read(storage_of(result));
  EXPECT_EQ(watch.ledger().live(), 30);
}

TEST(StorageWatch, AStorageThatGrows) {
  StorageWatch watch;
  const auto tensor = tensor_of(100);
  watch.was_given(storage_of(tensor));
  tensor.resize_({250});
  watch.was_given(storage_of(tensor));
  EXPECT_EQ(watch.ledger().live(), 250);
}

TEST(StorageWatch, AnEmptyOneTakesNothing) {
  StorageWatch watch;
  const auto tensor = tensor_of(0);
  watch.was_given(storage_of(tensor));
  EXPECT_EQ(watch.ledger().live(), 0);
  EXPECT_FALSE(watch.unknown());
}

}  // namespace
}  // namespace roofprof::observe
