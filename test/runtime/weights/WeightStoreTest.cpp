//===- WeightStoreTest.cpp - Weights, packed once for all -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightStore.h"

#include "test/runtime/DeviceSteps.h"
#include "test/runtime/FakeDevice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>

using namespace kf;
using kf::test::FakeDevice;
using kf::test::FakeSource;

namespace {

TEST(WeightStore, PacksEachWeightOnce) {
  for (bool shared : {true, false}) {
    FakeDevice device(shared);
    FakeSource source;
    alignas(64) float w[8] = {1, 2, 3, 4, 5, 6};
    source.tensors["w"] = {DataType::F32, {3, 2}, w, 24};
    source.tensors["within"] = {DataType::F32, {3, 2}, w + 1, 24};
    source.tensors["unaligned"] = {
        DataType::F32, {3, 2}, reinterpret_cast<char *>(w) + 2, 24};
    WeightStore store(device, &source);

    WeightSpec plain;
    plain.names = {"w"};
    plain.shape = {3, 2};
    auto first = store.get(plain);
    ASSERT_TRUE(first.ok()) << first.message();
    EXPECT_EQ(*first, *store.get(plain));
    EXPECT_EQ(device.wraps, shared ? 1 : 0); // else it is copied like others
    EXPECT_EQ(store.bytes(), 24u);

    // An element's alignment is enough.
    WeightSpec within = plain;
    within.names = {"within"};
    ASSERT_TRUE(store.get(within).ok());
    EXPECT_EQ(device.wraps, shared ? 2 : 0);
    WeightSpec unaligned = plain;
    unaligned.names = {"unaligned"};
    auto copied = store.get(unaligned);
    ASSERT_TRUE(copied.ok());
    EXPECT_NE((*copied)->hostPointer(), source.tensors["unaligned"].data);

    WeightSpec panels = plain;
    panels.layout.kind = WeightLayout::Kind::Panels;
    panels.layout.panel = 2;
    auto packed = store.get(panels);
    ASSERT_TRUE(packed.ok()) << packed.message();
    EXPECT_NE(*packed, *first);
    float values[8];
    ASSERT_TRUE(
        test::readAndWait(device, **packed, 0, values, sizeof(values)).ok());
    EXPECT_EQ(std::vector<float>(values, values + 8),
              (std::vector<float>{1, 3, 2, 4, 5, 0, 6, 0}));
    EXPECT_EQ(store.bytes(), 24u + 24 + 24 + 32);
    EXPECT_GT(store.seconds(), 0.0);
  }
}

/// Its streams lose copies, as those of GPUs may: whoever waits learns of it.
class LossyDevice : public FakeDevice {
public:
  LossyDevice() : FakeDevice(/*shared=*/false) {}
  int copiesLeft = 0; ///< before one is lost

private:
  class LossyEvent : public Event {
  public:
    Status status;

  private:
    Status doSynchronize(CancelFlag) override { return status; }
  };
  class LossyStream : public Stream {
  public:
    explicit LossyStream(LossyDevice &device) : device(device) {}

  private:
    Status doUpload(Buffer &, uint64_t, std::span<const std::byte>) override {
      return Status();
    }
    Status doDownload(Buffer &, uint64_t, std::span<std::byte>) override {
      return Status();
    }
    Status doCopy(Buffer &target, uint64_t targetOffset, Buffer &source,
                  uint64_t sourceOffset, uint64_t bytes) override {
      if (device.copiesLeft-- == 0)
        failure = Status::error("a copy is lost");
      if (failure.ok())
        std::memcpy(HostBuffer::of(target).data() + targetOffset,
                    HostBuffer::of(source).data() + sourceOffset, bytes);
      return Status();
    }
    Status doFill(Buffer &, uint64_t, uint64_t, uint32_t) override {
      return Status();
    }
    Status doRecord(Event &event) override {
      static_cast<LossyEvent &>(event).status = failure;
      return Status();
    }
    Status doWait(Event &) override { return Status(); }
    Status doEnqueue(Instance &, std::span<const int64_t>,
                     const EnqueueOptions &) override {
      return Status();
    }
    Status doSynchronize(CancelFlag) override {
      return std::exchange(failure, Status());
    }

    LossyDevice &device;
    Status failure;
  };

  Result<std::unique_ptr<Stream>> doCreateStream() override {
    return std::unique_ptr<Stream>(std::make_unique<LossyStream>(*this));
  }
  Result<std::unique_ptr<Event>> doCreateEvent() override {
    return std::unique_ptr<Event>(std::make_unique<LossyEvent>());
  }
};

/// Whether the end tells of it, or a later weight that needs its slot.
TEST(WeightStore, KeepsNothingThatMayBeLost) {
  for (const int lost : {0, 3, 7}) {
    SCOPED_TRACE(lost);
    LossyDevice device;
    FakeSource source;
    std::vector<WeightSpec> specs(8);
    std::vector<float> values(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      values[i] = static_cast<float>(i);
      specs[i].names = {"w" + std::to_string(i)};
      specs[i].shape = {1};
      source.tensors[specs[i].names[0]] = {DataType::F32, {1}, &values[i], 4};
    }
    WeightStore store(device, &source);
    device.copiesLeft = lost;
    EXPECT_EQ(store.getAll(specs).message(), "a copy is lost");
    EXPECT_EQ(store.bytes(), 0u);
    device.copiesLeft = 100;
    auto buffers = store.getAll(specs);
    ASSERT_TRUE(buffers.ok()) << buffers.message();
    for (size_t i = 0; i < specs.size(); ++i) {
      float value = -1;
      std::memcpy(&value, HostBuffer::of(*(*buffers)[i]).data(), sizeof(value));
      EXPECT_EQ(value, values[i]);
    }
  }
}

TEST(WeightStore, SaysHowMuchIsPacked) {
  FakeDevice device;
  FakeSource source;
  alignas(64) float w[8] = {1, 2, 3, 4, 5, 6};
  source.tensors["w"] = {DataType::F32, {3, 2}, w, 24};
  source.tensors["v"] = {DataType::F32, {1, 2}, w + 6, 8};
  WeightStore store(device, &source);
  using Calls = std::vector<std::pair<uint64_t, uint64_t>>;
  Calls calls;
  store.onProgress(
      [&](uint64_t done, uint64_t all) { calls.emplace_back(done, all); });

  WeightSpec plain, panels, other, wrong;
  plain.names = {"w"};
  plain.shape = {3, 2};
  panels = plain;
  panels.layout.kind = WeightLayout::Kind::Panels;
  panels.layout.panel = 2; // 4 rows
  other.names = {"v"};
  other.shape = {1, 2};
  wrong.names = {"none"};
  wrong.shape = {2, 2};
  auto first = store.getAll(std::vector{plain, panels, plain});
  ASSERT_TRUE(first.ok()) << first.message();
  EXPECT_EQ(*first,
            (std::vector<Buffer *>{*store.get(plain), *store.get(panels),
                                   *store.get(plain)}));
  EXPECT_EQ(calls, (Calls{{0, 56}, {24, 56}, {56, 56}}));

  // What is there takes no time.
  calls.clear();
  ASSERT_TRUE(store.getAll(std::vector{panels, plain}).ok());
  EXPECT_EQ(calls, Calls());
  // A size that cannot be counted is an error before anything is made.
  WeightSpec huge = plain;
  huge.shape = {INT64_MAX, 2};
  const uint64_t before = store.bytes();
  EXPECT_EQ(store.getAll(std::vector{other, huge}).message(),
            store.get(huge).message());
  EXPECT_FALSE(store.get(huge).ok());
  EXPECT_EQ(store.bytes(), before);
  EXPECT_EQ(calls, Calls());
  // An error ends it, too, and what it left open is made another time.
  for (int round = 0; round < 2; ++round) {
    calls.clear();
    ASSERT_FALSE(store.getAll(std::vector{plain, wrong, other}).ok());
    EXPECT_EQ(calls, (Calls{{0, 24}, {24, 24}}));
  }
}

TEST(WeightStore, ReleasesWhatItCopied) {
  for (bool shared : {true, false}) {
    FakeDevice device(shared);
    FakeSource source;
    alignas(64) float w[8] = {1, 2, 3, 4, 5, 6};
    source.tensors["w"] = {DataType::F32, {3, 2}, w, 24};
    source.tensors["v"] = {DataType::F32, {1, 2}, w + 6, 8};
    WeightStore store(device, &source);

    WeightSpec joined;
    joined.names = {"w", "v"};
    joined.shape = {4, 2};
    ASSERT_TRUE(store.get(joined).ok());
    EXPECT_EQ(source.releases["w"], 1);
    EXPECT_EQ(source.releases["v"], 1);

    // A tensor that a buffer refers to stays, whatever else is made of it.
    WeightSpec plain;
    plain.names = {"w"};
    plain.shape = {3, 2};
    ASSERT_TRUE(store.get(plain).ok());
    EXPECT_EQ(source.releases["w"], shared ? 1 : 2);
    joined.layout.kind = WeightLayout::Kind::Panels;
    joined.layout.panel = 2;
    ASSERT_TRUE(store.get(joined).ok());
    EXPECT_EQ(source.releases["w"], shared ? 1 : 3);
    EXPECT_EQ(source.releases["v"], 2);
  }
}

/// Its tensors are NaN once they are released. As a file's, each may be
/// released by another thread.
class PoisonedSource : public WeightSource {
public:
  explicit PoisonedSource(size_t count) : tensors(count) {}

  Result<TensorView> find(const std::string &name) const override {
    const std::vector<float> &values = at(name).values;
    return TensorView{DataType::F32,
                      {static_cast<int64_t>(values.size())},
                      values.data(),
                      values.size() * sizeof(float)};
  }
  void release(const std::string &name) const override {
    Tensor &tensor = at(name);
    std::ranges::fill(tensor.values, std::numeric_limits<float>::quiet_NaN());
    ++tensor.releases;
    ++released;
  }
  std::vector<std::string> names() const override { return {}; }

  struct Tensor {
    std::vector<float> values;
    int releases = 0;
  };
  mutable std::vector<Tensor> tensors; ///< "0", "1" ...
  mutable std::atomic<int> released = 0;

private:
  Tensor &at(const std::string &name) const {
    return tensors[std::stoul(name)];
  }
};

/// As many tensors as have the bytes that are released at a time, whatever they
/// take when they are packed, and the rest at the end.
TEST(WeightStore, ReleasesWhatItPackedMeanwhile) {
  constexpr size_t count = 8;
  for (const int threads : {0, 1, 2, 4})
    for (const uint64_t atATime : {uint64_t(1), uint64_t(2500), UINT64_MAX}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " +
                   std::to_string(atATime) + " bytes");
      std::unique_ptr<ThreadPool> pool;
      if (threads > 0) {
        auto made = ThreadPool::create(threads);
        ASSERT_TRUE(made.ok()) << made.message();
        pool = made.take();
      }
      PoisonedSource source(2 * count);
      std::vector<WeightSpec> specs(count);
      for (size_t i = 0; i < count; ++i) {
        // Two tensors of 500 bytes each are 500 when they are packed.
        specs[i].names = {std::to_string(2 * i), std::to_string(2 * i + 1)};
        specs[i].shape = {250};
        specs[i].type = DataType::BF16;
        for (size_t half : {2 * i, 2 * i + 1})
          source.tensors[half].values.assign(125, static_cast<float>(half));
      }
      // A weight of the same tensors adds none, unless they are released by
      // then.
      specs.insert(specs.begin() + 1, specs.front());
      specs[1].type = DataType::F16;

      FakeDevice device;
      WeightStore store(device, &source,
                        {.pool = pool.get(), .releasedBytes = atATime});
      std::vector<int> released;
      store.onProgress(
          [&](uint64_t, uint64_t) { released.push_back(source.released); });
      auto buffers = store.getAll(specs);
      ASSERT_TRUE(buffers.ok()) << buffers.message();
      if (atATime == 2500)
        EXPECT_EQ(released, (std::vector{0, 0, 0, 0, 6, 6, 6, 12, 12, 12}));
      else if (atATime == UINT64_MAX)
        EXPECT_EQ(released, std::vector<int>(count + 2, 0));
      for (size_t i = 0; i < source.tensors.size(); ++i)
        EXPECT_EQ(source.tensors[i].releases, i < 2 && atATime == 1 ? 2 : 1);
      for (size_t i = 2; i < specs.size(); ++i) {
        std::vector<uint16_t> bits(250);
        ASSERT_TRUE(
            test::readAndWait(device, *(*buffers)[i], 0, bits.data(), 500)
                .ok());
        std::vector<float> values(250);
        ASSERT_TRUE(
            convertToFloat(DataType::BF16, bits.data(), 250, values.data())
                .ok());
        for (size_t at = 0; at < 250; ++at)
          EXPECT_EQ(values[at], static_cast<float>(2 * (i - 1) + at / 125));
      }
    }
}

TEST(WeightStore, BindsBlocksAtAnyByte) {
  FakeDevice device;
  FakeSource source;
  alignas(64) char bytes[64] = {};
  source.tensors["w"] = {DataType::Q4_0, {2, 32}, bytes + 1, 36};
  WeightStore store(device, &source);
  WeightSpec spec;
  spec.names = {"w"};
  spec.type = DataType::Q4_0;
  spec.shape = {2, 32};
  auto buffer = store.get(spec);
  ASSERT_TRUE(buffer.ok()) << buffer.message();
  EXPECT_EQ((*buffer)->hostPointer(), bytes + 1);
  EXPECT_EQ(source.releases.count("w"), 0u);
}

/// What is packed lies one behind the other, and is wrapped there.
TEST(WeightStore, PacksSideBySide) {
  for (bool shared : {true, false}) {
    FakeDevice device(shared);
    FakeSource source;
    std::vector<float> values(1 << 18);
    std::vector<WeightSpec> specs(3);
    for (size_t i = 0; i < specs.size(); ++i) {
      const int64_t rows = 1000 + static_cast<int64_t>(i);
      specs[i].names = {"w" + std::to_string(i)};
      specs[i].shape = {rows, 31};
      specs[i].layout.kind = WeightLayout::Kind::Panels;
      specs[i].layout.panel = 2;
      for (int64_t at = 0; at < rows * 31; ++at)
        values[at] = static_cast<float>(at);
      source.tensors[specs[i].names[0]] = {DataType::F32,
                                           {rows, 31},
                                           values.data(),
                                           static_cast<uint64_t>(rows) * 124};
    }
    WeightStore store(device, &source);
    auto all = store.getAll(std::span(specs).first(2));
    ASSERT_TRUE(all.ok()) << all.message();
    // A missing tensor takes no room, and what comes later has room of its own.
    WeightSpec missing = specs[2];
    missing.names = {"none"};
    EXPECT_FALSE(store.get(missing).ok());
    auto last = store.get(specs[2]);
    ASSERT_TRUE(last.ok()) << last.message();
    for (Buffer *buffer : {(*all)[0], (*all)[1], *last}) {
      float first[4];
      ASSERT_TRUE(
          test::readAndWait(device, *buffer, 0, first, sizeof(first)).ok());
      EXPECT_EQ(std::vector<float>(first, first + 4),
                (std::vector<float>{0, 31, 1, 32}));
    }
    if (!shared)
      continue;
    auto *begin = static_cast<std::byte *>((*all)[0]->hostPointer());
    auto *next = static_cast<std::byte *>((*all)[1]->hostPointer());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % KF_BUFFER_ALIGNMENT, 0u);
    EXPECT_EQ(next - begin, 124032); // 124000, aligned
  }
}

/// Memory for copies is no more than what there is to copy.
TEST(WeightStore, PinsLittleForSmallWeights) {
  for (const int64_t count : {1, 5, 40}) {
    FakeDevice device(/*shared=*/false);
    FakeSource source;
    std::vector<float> values(1 << 18);
    std::vector<WeightSpec> specs(count);
    for (int64_t i = 0; i < count; ++i) {
      specs[i].names = {"w" + std::to_string(i)};
      specs[i].shape = {1 << 18};
      source.tensors[specs[i].names[0]] = {
          DataType::F32, {1 << 18}, values.data(), values.size() * 4};
    }
    WeightStore store(device, &source);
    ASSERT_TRUE(store.getAll(specs).ok());
    EXPECT_GT(device.pinnedBytes, 0u);
    EXPECT_LE(device.pinnedBytes,
              std::min<uint64_t>(store.bytes(), 96 << 20) + (3 << 20));
  }
}

} // namespace
