//===- ProgramRunnerTest.cpp - One program, its inputs and weights --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ProgramRunner.h"

#include "FakeModel.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/DeviceSteps.h"

#include <gtest/gtest.h>

using namespace kf;
using kf::test::FakeDevice;
using kf::test::FakeSource;

namespace {

/// y = x + x w^T for x [?, 2], w [2, 2], in the reference's kernel code.
Executable addMatmul() {
  Executable executable;
  executable.target = "reference";
  executable.programName = "f";
  executable.maxTokens = 4;
  executable.arenaBytes = 64;
  executable.kernels = {{"matmul", 0, {1, 1, 1}}, {"add", 0, {1, 1, 1}}};
  WeightSpec weight;
  weight.names = {"w"};
  weight.shape = {2, 2};
  executable.weights = {weight};
  executable.inputs = executable.outputs = {{DataType::F32, {-1, 2}}};
  DispatchSpec matmul, add;
  matmul.bindings = {{KF_BINDING_INPUT, 0, 0},
                     {KF_BINDING_WEIGHT, 0, 0},
                     {KF_BINDING_ARENA, 0, 0}};
  add.kernel = 1;
  add.bindings = {{KF_BINDING_INPUT, 0, 0},
                  {KF_BINDING_ARENA, 0, 0},
                  {KF_BINDING_OUTPUT, 0, 0}};
  executable.dispatches = {matmul, add};
  executable.binary = R"([
    {"name": "matmul",
     "arguments": [{"tensor": "f32", "shape": [-1, 2]},
                   {"tensor": "f32", "shape": [2, 2]}],
     "ops": [{"name": "kf.matmul", "operands": [0, 1],
              "results": [{"id": 2,
                           "type": {"tensor": "f32", "shape": [-1, 2]}}],
              "attributes": {}}],
     "results": [2]},
    {"name": "add",
     "arguments": [{"tensor": "f32", "shape": [-1, 2]},
                   {"tensor": "f32", "shape": [-1, 2]}],
     "ops": [{"name": "arith.addf", "operands": [0, 1],
              "results": [{"id": 2,
                           "type": {"tensor": "f32", "shape": [-1, 2]}}],
              "attributes": {}}],
     "results": [2]}])";
  return executable;
}

HostTensor floats(std::vector<int64_t> shape, std::vector<float> values) {
  HostTensor tensor = *HostTensor::zeros(DataType::F32, std::move(shape));
  EXPECT_EQ(tensor.elementCount(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

std::vector<float> valuesOf(const HostTensor &tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elementCount()};
}

/// addMatmul() on the reference device, w being [[1, 2], [3, 4]].
struct Fixture {
  Fixture() : device(createReferenceDevice()) {
    source.tensors["w"] = {DataType::F32, {2, 2}, w, sizeof(w)};
    weights = std::make_unique<WeightStore>(*device, &source);
    cache = std::make_unique<KVCache>(*device, 1);
    auto made = ProgramRunner::create(addMatmul(), *device, *weights, *cache);
    EXPECT_TRUE(made.ok()) << made.message();
    if (made.ok())
      runner = made.take();
  }

  /// The error for one input.
  std::string errorOf(const HostTensor &input,
                      std::optional<int64_t> nTokens = {}) {
    auto result = runner->run({&input, 1}, nTokens);
    EXPECT_FALSE(result.ok());
    return result.message();
  }

  alignas(64) float w[4] = {1, 2, 3, 4};
  std::unique_ptr<Device> device;
  FakeSource source;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<KVCache> cache;
  std::unique_ptr<ProgramRunner> runner;
};

TEST(ProgramRunner, Runs) {
  Fixture fixture;
  for (int round = 0; round < 2; ++round) {
    HostTensor x = floats({2, 2}, {1, 0, 1, 1});
    auto y = fixture.runner->run({&x, 1});
    ASSERT_TRUE(y.ok()) << y.message();
    ASSERT_EQ(y->size(), 1u);
    EXPECT_EQ((*y)[0].shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(valuesOf((*y)[0]), (std::vector<float>{2, 3, 4, 8}));
  }
  EXPECT_EQ(fixture.runner->arenaBytes(), 64u);
  EXPECT_EQ(fixture.runner->ioBytes(), 2u * 64);
}

TEST(ProgramRunner, WrongInputs) {
  Fixture fixture;
  EXPECT_EQ(fixture.runner->run({}).message(),
            "0 inputs are given, but the program takes 1: ?x2xf32");
  EXPECT_EQ(fixture.errorOf(floats({2, 3}, {1, 2, 3, 4, 5, 6})),
            "input 0 is 2x3xf32, but the program takes ?x2xf32");
  EXPECT_EQ(fixture.errorOf(floats({2}, {1, 2})),
            "input 0 is 2xf32, but the program takes ?x2xf32");
  EXPECT_EQ(fixture.errorOf(*HostTensor::zeros(DataType::F16, {2, 2})),
            "input 0 is 2x2xf16, but the program takes ?x2xf32");
  EXPECT_EQ(fixture.errorOf(floats({5, 2}, std::vector<float>(10))),
            "program 'f': a step of 5 tokens; the program takes 1 to 4");
  EXPECT_EQ(fixture.errorOf(floats({0, 2}, {})),
            "program 'f': a step of 0 tokens; the program takes 1 to 4");
  EXPECT_EQ(fixture.errorOf(floats({1, 2}, {1, 2}), 2),
            "input 0 has 1 rows where 2 are expected");
  HostTensor torn = floats({2, 2}, {1, 2, 3, 4});
  torn.bytes.pop_back();
  EXPECT_EQ(fixture.errorOf(torn),
            "input 0 has 15 bytes for the shape 2x2xf32");
}

TEST(ProgramRunner, WrongExecutables) {
  Fixture fixture;
  auto errorOf = [&](auto change) {
    Executable executable = addMatmul();
    change(executable);
    auto made = ProgramRunner::create(std::move(executable), *fixture.device,
                                      *fixture.weights, *fixture.cache);
    EXPECT_FALSE(made.ok());
    return made.message();
  };
  EXPECT_EQ(errorOf([](Executable &e) { e.weights[0].names = {"v"}; }),
            "program 'f': there is no tensor 'v'");
  EXPECT_NE(errorOf([](Executable &e) {
              e.dispatches[0].kernel = 9;
            }).find("program 'f': dispatch 0"),
            std::string::npos);
  EXPECT_NE(errorOf([](Executable &e) { e.target = "cpu"; }).find("cpu"),
            std::string::npos);
  WeightStore none(*fixture.device, nullptr);
  auto made =
      ProgramRunner::create(addMatmul(), *fixture.device, none, *fixture.cache);
  EXPECT_EQ(made.message(), "program 'f': the program needs weight 'w', but "
                            "there is no checkpoint");
}

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
    ASSERT_TRUE(store.get(unaligned).ok());
    EXPECT_EQ(device.wraps, shared ? 2 : 0);

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

/// Part by part, through fewer slots than there are parts.
TEST(WeightUploader, UploadsWhatPackingGives) {
  FakeDevice device(/*shared=*/false);
  FakeSource source;
  std::vector<float> w(100 * 64), v(10 * 64);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>(i);
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = -static_cast<float>(i);
  source.tensors["w"] = {DataType::F32, {100, 64}, w.data(), w.size() * 4};
  source.tensors["v"] = {DataType::F32, {10, 64}, v.data(), v.size() * 4};
  WeightSpec rows, panels, transposed;
  rows.names = panels.names = {"w", "v"};
  rows.shape = panels.shape = {110, 64};
  rows.type = DataType::BF16;
  panels.layout = {WeightLayout::Kind::Panels, 8, 0};
  transposed.names = {"w"};
  transposed.shape = {64, 100};
  transposed.transposed = true;
  for (const int64_t partBytes : {1, 3000, 1 << 20}) {
    std::unique_ptr<WeightUploader> uploader =
        WeightUploader::create(device, partBytes).take();
    std::vector<std::unique_ptr<Buffer>> buffers;
    for (const WeightSpec &spec : {rows, panels, transposed}) {
      buffers.push_back(device.allocate(*spec.packedBytes()).take());
      const Status status = uploader->upload(spec, source, *buffers.back(), {});
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(uploader->finish().ok());
    for (size_t i = 0; const WeightSpec &spec : {rows, panels, transposed}) {
      const AlignedBuffer expected = packWeight(spec, source).take();
      std::vector<std::byte> found(expected.size());
      ASSERT_TRUE(test::readAndWait(device, *buffers[i++], 0, found.data(),
                                    found.size())
                      .ok());
      EXPECT_TRUE(std::ranges::equal(found, expected.span()));
    }
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

TEST(KVCache, SharesByIndex) {
  FakeDevice device;
  KVCache cache(device, 2);
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

private:
  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t, MemoryKind) override {
    return Status::error("no room", code);
  }
  Result<DeviceMemory> doMemory() const override {
    return DeviceMemory{10000, 5000, 10000};
  }
};

TEST(KVCache, SaysForHowMuchThereIsRoom) {
  SmallDevice device;
  KVCache cache(device, 3);
  CacheSpec spec;
  spec.layers = spec.kvHeads = 1;
  spec.headDim = 4; // a page has 2048 bytes
  Status status = cache.get(0, spec).status();
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_EQ(status.message(),
            "the KV cache of 192 positions, 6144 bytes: no room; there is room "
            "for a context of 128 positions in all");
  device.code = StatusCode::Failed;
  EXPECT_EQ(cache.get(0, spec).status().message(),
            "the KV cache of 192 positions, 6144 bytes: no room");
}

} // namespace
