//===- KVCacheTest.cpp - Caches that programs share -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/KVCache.h"

#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/FakeDevice.h"

#include <gtest/gtest.h>

using namespace kf;
using kf::test::FakeDevice;

namespace {

TEST(KVCache, SharesByIndex) {
  FakeDevice device;
  KVCache cache(device, 2, 128);
  CacheSpec spec;
  spec.layers = spec.kvHeads = 1;
  spec.headDim = 4;
  spec.keyBlock = 16;
  EXPECT_EQ(cache.bytes(), 0u);
  auto first = cache.get(0, spec);
  ASSERT_TRUE(first.ok()) << first.message();
  EXPECT_EQ(*first, *cache.get(0, spec));
  EXPECT_EQ(cache.bytes(), 2u * 2 * 64 * 4 * sizeof(float));
  spec.keyBlock = 8;
  EXPECT_FALSE(cache.get(0, spec).ok());
  EXPECT_TRUE(cache.get(1, spec).ok());
  spec.keyBlock = 24;
  EXPECT_FALSE(cache.get(2, spec).ok()); // does not divide the page
}

/// A device with room for some bytes.
class SmallDevice final : public FakeDevice {
public:
  StatusCode code = StatusCode::OutOfMemory;
  uint64_t limit = 10000;

private:
  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t, MemoryKind) override {
    return Status::error("no room", code);
  }
  Result<DeviceMemory> doMemory() const override {
    return DeviceMemory{10000, 5000, limit};
  }
};

TEST(KVCache, SaysForHowMuchThereIsRoom) {
  SmallDevice device;
  KVCache cache(device, 3, 192);
  CacheSpec spec;
  spec.layers = spec.kvHeads = 1;
  spec.headDim = 4; // a page has 2048 bytes
  Status status = cache.get(0, spec).status();
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_EQ(status.message(),
            "the KV cache of 192 positions, 6144 bytes: no room; there is room "
            "for a context of 128 positions in all");
  // Too few pages for one position in all groups of layers.
  EXPECT_EQ(KVCache(device, 3, 0).get(0, spec).status().message(),
            "the KV cache of 0 positions, 6144 bytes: no room; there is room "
            "for a context of 0 positions in all");
  // Those of four ranks, each with a quarter of a text.
  EXPECT_EQ(KVCache(device, 3, 768).get(0, spec).status().message(),
            "the KV cache of 768 positions, 6144 bytes: no room; there is room "
            "for a context of 512 positions in all");
  device.limit = 2500; // at once
  EXPECT_EQ(cache.get(0, spec).status().message(),
            "the KV cache of 192 positions, 6144 bytes: no room; there is room "
            "for a context of 64 positions in all");
  device.code = StatusCode::Invalid;
  EXPECT_EQ(cache.get(0, spec).status().message(),
            "the KV cache of 192 positions, 6144 bytes: no room");
}

/// As the devices in the host's memory say it.
TEST(KVCache, SaysForHowMuchTheHostHasRoom) {
  const std::unique_ptr<Device> device = createReferenceDevice();
  KVCache cache(*device, int64_t(1) << 31, int64_t(1) << 37);
  CacheSpec spec;
  spec.layers = spec.kvHeads = 32;
  spec.headDim = 128;
  const Status status = cache.get(0, spec).status();
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_NE(status.message().find("; there is room for a context of "),
            std::string::npos)
      << status.message();
}

} // namespace
