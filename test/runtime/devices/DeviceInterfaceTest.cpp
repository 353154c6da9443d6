//===- DeviceInterfaceTest.cpp - What every device has to do --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The promises of runtime/devices/Device.h, on every device. All have the same
// program, z = a * (a * x) by two dispatches through the arena. Vulkan runs
// with validation, where a message is a failure, and CUDA's driver also as a
// fake one, that knows what a driver would not survive.
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/ThreadGroup.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/devices/Vulkan/VulkanDevice.h"
#include "test/runtime/CudaRequirement.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/VulkanRequirement.h"
#include "test/runtime/devices/Cuda/FakeCuda.h"
#include "test/runtime/devices/ScalePrograms.h"
#include "test/runtime/devices/Vulkan/SpirvTestModules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>

using namespace kf;
using namespace kf::test;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The kernel of test::scaleTwice() for a device's target.
std::string scaleCode(const std::string &target) {
  if (target == "cpu")
    return readFile(testFile(KF_TEST_KERNELS));
  if (target == "vulkan")
    return lengthPrefixed(readSpirv("scale"));
  if (target == "cuda")
    return scaleImage();
  return referenceScaleCode();
}

Executable scaleTwice(const std::string &target) {
  return test::scaleTwice(target, scaleCode(target));
}

std::vector<float> counting(float factor, int64_t count = maxTokens) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = factor * static_cast<float>(i);
  return values;
}

/// `count` values, then -1.
std::vector<float> countingThenUnset(float factor, int64_t count) {
  std::vector<float> values = counting(factor, count);
  values.resize(maxTokens, -1.0f);
  return values;
}

constexpr uint32_t minusOne = 0xbf800000; // as bits of a float

/// cpu, cpu2 (two threads), reference, vulkan, vulkan_staging (as on a GPU
/// whose memory the host cannot address), cuda, or cuda_fake.
class DeviceInterfaceTest : public testing::TestWithParam<const char *> {
protected:
  /// The program with buffers of its own; a is 3.
  struct Bound {
    std::unique_ptr<Buffer> x, a, arena, z;
    std::unique_ptr<Instance> instance;
  };

  void SetUp() override {
    if (isVulkan())
      KF_REQUIRE_VULKAN();
    if (std::string_view(GetParam()) == "cuda")
      KF_REQUIRE_CUDA();
    if (std::string_view(GetParam()) == "cuda_fake")
      fake = std::make_unique<FakeCuda>();
    device = open();
    ASSERT_NE(device, nullptr);
    auto loaded = device->load(scaleTwice(device->name()));
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    program = loaded.take();
    stream = device->createStream().take();
    other = device->createStream().take();
    event = device->createEvent().take();
  }

  void TearDown() override {
    stream.reset();
    other.reset();
    event.reset();
    program.reset();
    device.reset();
    EXPECT_EQ(messages, std::vector<std::string>());
    if (fake) {
      EXPECT_EQ(fake->violations, std::vector<std::string>());
      EXPECT_EQ(fake->leftOver(), std::vector<std::string>());
    }
  }

  bool isVulkan() const {
    return std::string_view(GetParam()).starts_with("vulkan");
  }
  /// Whose work cannot be taken back.
  bool isGpu() const {
    return isVulkan() || std::string_view(GetParam()).starts_with("cuda");
  }

  std::unique_ptr<Device> open() {
    const std::string_view name = GetParam();
    Result<std::unique_ptr<Device>> opened = Status::error("unknown");
    VulkanDeviceOptions vulkan;
    vulkan.validation = testsValidateVulkan();
    vulkan.mapBuffers = name == "vulkan";
    vulkan.onMessage = [this](std::string_view message) {
      messages.emplace_back(message);
    };
    if (name == "reference")
      opened = createReferenceDevice();
    else if (isVulkan())
      opened = createVulkanDevice(vulkan);
    else if (isGpu())
      opened = createCudaDevice(
          {.device = {}, .driver = fake ? &fake->functions() : nullptr});
    else
      opened = createCpuDevice({.threads = name == "cpu2" ? 2 : 1});
    EXPECT_TRUE(opened.ok()) << opened.message();
    return opened.ok() ? opened.take() : nullptr;
  }

  std::unique_ptr<Buffer> allocate(uint64_t bytes,
                                   MemoryKind kind = MemoryKind::Device) {
    Result<std::unique_ptr<Buffer>> buffer = device->allocate(bytes, kind);
    EXPECT_TRUE(buffer.ok()) << buffer.message();
    return buffer.ok() ? buffer.take() : nullptr;
  }

  Bound bind() {
    Bound bound;
    bound.x = allocate(rowBytes);
    bound.arena = allocate(256 + rowBytes);
    bound.z = allocate(rowBytes);
    bound.a = device->wrap(&three, sizeof(three)).take();
    auto instance = program->bind({bound.arena.get(),
                                   {bound.a.get()},
                                   {},
                                   {bound.x.get()},
                                   {bound.z.get()}});
    EXPECT_TRUE(instance.ok()) << instance.message();
    bound.instance = instance.take();
    return bound;
  }

  static Status put(Stream &stream, Buffer &target,
                    std::span<const float> values) {
    return stream.upload(target, 0, std::as_bytes(values));
  }

  /// The first `count` floats, by a stream of its own.
  std::vector<float> get(Buffer &source, size_t count = maxTokens) {
    std::vector<float> values(count);
    std::unique_ptr<Stream> reader = device->createStream().take();
    EXPECT_TRUE(succeeds(reader->download(
        source, 0, std::as_writable_bytes(std::span(values)))));
    EXPECT_TRUE(succeeds(reader->synchronize()));
    return values;
  }

  static constexpr float three = 3;  ///< what wrapped buffers refer to
  std::vector<std::string> messages; ///< of Vulkan's validation
  std::unique_ptr<FakeCuda> fake;    ///< null but for cuda_fake
  std::unique_ptr<Device> device;
  std::unique_ptr<LoadedProgram> program;
  std::unique_ptr<Stream> stream, other;
  std::unique_ptr<Event> event;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST_P(DeviceInterfaceTest, FreshMemoryIsZero) {
  for (MemoryKind kind : {MemoryKind::Device, MemoryKind::HostPinned})
    for (uint64_t bytes : {uint64_t(13), uint64_t(4096), uint64_t(3) << 20})
      for (int round = 0; round < 3; ++round) {
        std::vector<std::byte> content(bytes, std::byte(0xa5));
        std::unique_ptr<Buffer> buffer = allocate(bytes, kind);
        ASSERT_NE(buffer, nullptr);
        EXPECT_EQ(buffer->size(), bytes);
        EXPECT_EQ(buffer->kind(), kind);
        ASSERT_TRUE(succeeds(stream->download(*buffer, 0, content)));
        ASSERT_TRUE(succeeds(stream->synchronize()));
        ASSERT_EQ(std::ranges::count(content, std::byte(0)), bytes);
        // The next round may be given the same memory.
        std::ranges::fill(content, std::byte(0xa5));
        ASSERT_TRUE(succeeds(stream->upload(*buffer, 0, content)));
        ASSERT_TRUE(succeeds(stream->synchronize()));
      }
  EXPECT_EQ(allocate(0)->size(), 0u);
}

TEST_P(DeviceInterfaceTest, TellsAboutItsMemory) {
  Result<DeviceMemory> memory = device->memory();
  ASSERT_TRUE(memory.ok()) << memory.message();
  EXPECT_GT(memory->total, uint64_t(1) << 20);
  EXPECT_GT(memory->free, 0u);
  EXPECT_LE(memory->free, memory->total);
  EXPECT_GT(memory->largestBuffer, uint64_t(1) << 20);
  for (uint64_t bytes : {memory->largestBuffer + 1, uint64_t(1) << 62,
                         UINT64_MAX - 1, UINT64_MAX})
    EXPECT_EQ(device->allocate(bytes).status().code(), StatusCode::OutOfMemory)
        << bytes;
}

TEST_P(DeviceInterfaceTest, PinnedMemoryIsTheHosts) {
  Bound bound = bind();
  std::unique_ptr<Buffer> in = allocate(rowBytes, MemoryKind::HostPinned);
  std::unique_ptr<Buffer> out = allocate(rowBytes, MemoryKind::HostPinned);
  auto *to = static_cast<float *>(in->hostPointer());
  const auto *from = static_cast<const float *>(out->hostPointer());
  ASSERT_NE(to, nullptr);
  ASSERT_NE(from, nullptr);
  for (float factor : {1.0f, 2.0f}) {
    std::ranges::copy(counting(factor), to);
    ASSERT_TRUE(succeeds(stream->copy(*bound.x, 0, *in, 0, maxTokens * 4)));
    ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(10))));
    ASSERT_TRUE(succeeds(stream->copy(*out, 0, *bound.z, 0, maxTokens * 4)));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    for (int i = 0; i < 10; ++i)
      ASSERT_EQ(from[i], factor * 9 * static_cast<float>(i));
  }
  // Kernels read and write it, too.
  auto instance = program->bind(
      {bound.arena.get(), {bound.a.get()}, {}, {in.get()}, {out.get()}});
  ASSERT_TRUE(instance.ok()) << instance.message();
  ASSERT_TRUE(succeeds(stream->enqueue(**instance, scalarsFor(maxTokens))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_TRUE(std::ranges::equal(counting(18), std::span(from, maxTokens)));
}

TEST_P(DeviceInterfaceTest, WrappedMemoryIsReadOnly) {
  EXPECT_TRUE(failsWith(device->wrap(nullptr, 4).status(), "null pointer"));
  std::vector<float> values = counting(2);
  std::unique_ptr<Buffer> wrapped = device->wrap(values.data(), 4000).take();
  EXPECT_TRUE(wrapped->isReadOnly());
  EXPECT_EQ(get(*wrapped), values);
  const char *message = "cannot be written to";
  EXPECT_TRUE(failsWith(put(*stream, *wrapped, counting(1, 1)), message));
  EXPECT_TRUE(failsWith(stream->fill(*wrapped, 0, 4, 0), message));
  EXPECT_TRUE(failsWith(stream->copy(*wrapped, 0, *wrapped, 8, 4), message));
  Bound bound = bind();
  EXPECT_TRUE(succeeds(stream->copy(*bound.x, 0, *wrapped, 0, 4000)));
  EXPECT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*bound.x), values);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

TEST_P(DeviceInterfaceTest, ChecksRanges) {
  std::unique_ptr<Buffer> buffer = allocate(12), second = allocate(12);
  std::byte bytes[16] = {};
  std::span all(bytes);
  const char *message = "past the end of a buffer of 12";
  EXPECT_TRUE(succeeds(stream->upload(*buffer, 12, {})));
  EXPECT_TRUE(succeeds(stream->upload(*buffer, 4, all.first(8))));
  EXPECT_TRUE(failsWith(stream->upload(*buffer, 4, all.first(9)), message));
  EXPECT_TRUE(failsWith(stream->upload(*buffer, UINT64_MAX, all), message));
  EXPECT_TRUE(failsWith(stream->download(*buffer, 13, {}), message));
  EXPECT_TRUE(failsWith(stream->download(*buffer, 1, all.first(12)), message));
  EXPECT_TRUE(succeeds(stream->copy(*second, 2, *buffer, 0, 10)));
  EXPECT_TRUE(failsWith(stream->copy(*second, 3, *buffer, 0, 10), message));
  EXPECT_TRUE(failsWith(stream->copy(*second, 0, *buffer, 3, 10), message));
  EXPECT_TRUE(
      failsWith(stream->copy(*second, 1, *buffer, 1, UINT64_MAX), message));
  EXPECT_TRUE(succeeds(stream->copy(*buffer, 6, *buffer, 0, 6)));
  EXPECT_TRUE(
      failsWith(stream->copy(*buffer, 5, *buffer, 0, 6), "overlaps itself"));
  EXPECT_TRUE(failsWith(stream->fill(*buffer, 8, 8, 0), message));
  EXPECT_TRUE(failsWith(stream->fill(*buffer, 2, 4, 0), "multiples of 4"));
  EXPECT_TRUE(failsWith(stream->fill(*buffer, 0, 6, 0), "multiples of 4"));
  EXPECT_TRUE(succeeds(stream->fill(*buffer, 12, 0, 0)));
  // Refused calls leave nothing behind.
  EXPECT_TRUE(succeeds(stream->synchronize()));
}

TEST_P(DeviceInterfaceTest, MovesAnyBytes) {
  std::unique_ptr<Buffer> buffer = allocate(100), second = allocate(100);
  std::vector<std::byte> bytes(37), back(100);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(i + 1);
  ASSERT_TRUE(succeeds(stream->fill(*second, 4, 92, 0x04030201)));
  ASSERT_TRUE(succeeds(stream->upload(*buffer, 3, bytes)));
  ASSERT_TRUE(succeeds(stream->copy(*second, 51, *buffer, 5, 33)));
  ASSERT_TRUE(
      succeeds(stream->download(*second, 1, std::span(back).first(99))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  for (int i = 1; i < 100; ++i) {
    int expected = i < 4 || i >= 96 ? 0 : (i - 4) % 4 + 1;
    if (i >= 51 && i < 84)
      expected = i - 51 + 3;
    ASSERT_EQ(static_cast<int>(back[i - 1]), expected) << "byte " << i;
  }
}

/// Small ones can be given away at once; large ones are too large for a staging
/// buffer, behind work that has to come first.
TEST_P(DeviceInterfaceTest, UploadsSmallAndLarge) {
  std::unique_ptr<Buffer> small = allocate(Stream::smallUpload);
  std::vector<std::byte> bytes(Stream::smallUpload, std::byte(7));
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, small->size(), 0)));
  ASSERT_TRUE(succeeds(stream->upload(*small, 0, bytes)));
  std::ranges::fill(bytes, std::byte(8));
  ASSERT_TRUE(succeeds(stream->download(*small, 0, bytes)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(std::ranges::count(bytes, std::byte(7)), bytes.size());

  const uint64_t size = (81u << 20) + 13;
  std::vector<std::byte> source(size), back(size - 5);
  for (uint64_t i = 0; i < size; ++i)
    source[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  std::unique_ptr<Buffer> large = allocate(size);
  ASSERT_TRUE(succeeds(stream->fill(*large, 0, 1 << 20, 0)));
  ASSERT_TRUE(succeeds(stream->upload(*large, 0, source)));
  ASSERT_TRUE(succeeds(stream->download(*large, 5, back)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_TRUE(std::equal(back.begin(), back.end(), source.begin() + 5));
}

TEST_P(DeviceInterfaceTest, RefusesForeignThings) {
  std::unique_ptr<Device> foreign = open();
  ASSERT_NE(foreign, nullptr);
  std::unique_ptr<Buffer> buffer = foreign->allocate(rowBytes).take();
  std::unique_ptr<Event> mark = foreign->createEvent().take();
  std::unique_ptr<Stream> abroad = foreign->createStream().take();
  std::byte bytes[4] = {};
  const char *message = "belongs to another device";
  EXPECT_TRUE(failsWith(stream->upload(*buffer, 0, bytes), message));
  EXPECT_TRUE(failsWith(stream->download(*buffer, 0, bytes), message));
  EXPECT_TRUE(failsWith(stream->record(*mark), message));
  EXPECT_TRUE(failsWith(stream->wait(*mark), message));
  Bound bound = bind();
  EXPECT_TRUE(failsWith(abroad->enqueue(*bound.instance, scalarsFor(1)),
                        "loaded by another device"));
  BindingTable table = bound.instance->buffers();
  table.inputs[0] = buffer.get();
  EXPECT_TRUE(failsWith(program->bind(table).status(), message));
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST_P(DeviceInterfaceTest, ChecksPrograms) {
  Executable executable = scaleTwice("none");
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "compiled for 'none', not for '" + device->name()));
  executable = scaleTwice(device->name());
  executable.dispatches[0].kernel = 1;
  EXPECT_TRUE(failsWith(device->load(executable).status(), "no kernel 1"));
  EXPECT_TRUE(program->program().binary.empty());
  EXPECT_EQ(program->program().dispatches.size(), 2u);
}

TEST_P(DeviceInterfaceTest, ChecksBuffersOfPrograms) {
  Bound bound = bind();
  const BindingTable right = bound.instance->buffers();
  auto errorOf = [&](auto change) {
    BindingTable table = right;
    change(table);
    return program->bind(table).status();
  };
  std::unique_ptr<Buffer> small = allocate(64), tiny = allocate(3);
  EXPECT_TRUE(failsWith(errorOf([](auto &t) { t.arena = nullptr; }),
                        "the arena: no buffer is bound"));
  EXPECT_TRUE(failsWith(errorOf([&](auto &t) { t.arena = small.get(); }),
                        "the arena: its buffer has 64 bytes where 4352 are"));
  EXPECT_TRUE(failsWith(errorOf([](auto &t) { t.outputs.clear(); }),
                        "0 output buffers are bound where the program has 1"));
  EXPECT_TRUE(failsWith(errorOf([](auto &t) { t.inputs[0] = nullptr; }),
                        "input 0: no buffer is bound"));
  EXPECT_TRUE(failsWith(errorOf([&](auto &t) { t.weights[0] = tiny.get(); }),
                        "weight 0: its buffer has 3 bytes where 4 are needed"));
  EXPECT_TRUE(
      failsWith(errorOf([&](auto &t) { t.outputs[0] = bound.a.get(); }),
                "output 0: it is written to, but its buffer wraps memory"));
  // Inputs and outputs need room for the tokens of a run.
  BindingTable table = right;
  table.outputs[0] = small.get();
  std::unique_ptr<Instance> instance = program->bind(table).take();
  EXPECT_TRUE(succeeds(stream->enqueue(*instance, scalarsFor(16))));
  EXPECT_TRUE(failsWith(stream->enqueue(*instance, scalarsFor(17)),
                        "output 0 needs 68 bytes for 17 tokens"));
  EXPECT_TRUE(succeeds(stream->synchronize()));
}

TEST_P(DeviceInterfaceTest, ChecksScalars) {
  Bound bound = bind();
  EXPECT_TRUE(failsWith(stream->enqueue(*bound.instance, {}), "8 scalars"));
  for (int64_t tokens : {int64_t(-1), int64_t(0), maxTokens + 1,
                         int64_t(1) << 32, INT64_MAX, INT64_MIN})
    EXPECT_TRUE(failsWith(stream->enqueue(*bound.instance, scalarsFor(tokens)),
                          "the program takes 1 to 1000"))
        << tokens;
  EXPECT_TRUE(
      succeeds(stream->enqueue(*bound.instance, scalarsFor(maxTokens))));
  EXPECT_TRUE(succeeds(stream->synchronize()));
}

TEST_P(DeviceInterfaceTest, SeveralInstancesOfAProgram) {
  Bound first = bind(), second = bind();
  ASSERT_TRUE(succeeds(put(*stream, *first.x, counting(1))));
  ASSERT_TRUE(succeeds(put(*stream, *second.x, counting(2))));
  for (Bound *bound : {&first, &second, &first}) {
    ASSERT_TRUE(succeeds(stream->fill(*bound->z, 0, rowBytes, minusOne)));
    ASSERT_TRUE(succeeds(stream->enqueue(*bound->instance, scalarsFor(70))));
  }
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*first.z), countingThenUnset(9, 70));
  EXPECT_EQ(get(*second.z), countingThenUnset(18, 70));
  first.instance.reset();
  ASSERT_TRUE(succeeds(stream->enqueue(*second.instance, scalarsFor(71))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*second.z), countingThenUnset(18, 71));
}

TEST_P(DeviceInterfaceTest, MeasuresDispatches) {
  Bound bound = bind();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  DispatchTimes first, second = {{"stale", 1}, {}, {}};
  for (DispatchTimes *times : {&first, &second}) {
    ASSERT_TRUE(succeeds(put(*stream, *bound.x, counting(1))));
    ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(maxTokens),
                                         {.times = times})));
  }
  ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(1))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  const uint64_t all = std::chrono::nanoseconds(Clock::now() - begin).count();
  uint64_t sum = 0;
  for (const DispatchTimes &times : {first, second}) {
    ASSERT_EQ(times.size(), 2u);
    uint64_t end = 0;
    for (const DispatchTime &time : times) {
      EXPECT_EQ(time.kernel, "scale");
      sum += time.nanoseconds;
      // One after the other, but for what clocks round.
      EXPECT_GE(time.begin + 2, end);
      end = time.begin + time.nanoseconds;
      int64_t workgroups = 0;
      for (const WorkerTime &worker : time.workers) {
        EXPECT_GE(worker.begin, time.begin);
        EXPECT_LE(worker.begin + worker.nanoseconds, end);
        EXPECT_GT(worker.workgroups, 0u);
        workgroups += static_cast<int64_t>(worker.workgroups);
      }
      EXPECT_EQ(workgroups,
                device->name() == "cpu" ? (maxTokens + 63) / 64 : 0);
    }
  }
  EXPECT_GT(sum, 0u);
  EXPECT_LE(sum, all);
  EXPECT_EQ(get(*bound.z), counting(9));
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Each step needs the one before, and the host waits for none of them.
TEST_P(DeviceInterfaceTest, AStreamsWorkIsInOrder) {
  Bound bound = bind();
  std::vector<std::unique_ptr<Buffer>> results;
  const int64_t sizes[] = {7, 3, 1000, 64, 65, 1, 500, 501, 502, 7, 999, 2, 3};
  for (int64_t tokens : sizes) {
    results.push_back(allocate(rowBytes));
    ASSERT_TRUE(succeeds(put(*stream, *bound.x, counting(1))));
    ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
    ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(tokens))));
    ASSERT_TRUE(
        succeeds(stream->copy(*bound.x, 0, *bound.z, 0, maxTokens * 4)));
    ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
    ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(tokens))));
    ASSERT_TRUE(
        succeeds(stream->copy(*results.back(), 0, *bound.z, 0, rowBytes)));
  }
  std::vector<float> last(maxTokens);
  ASSERT_TRUE(succeeds(
      stream->download(*bound.z, 0, std::as_writable_bytes(std::span(last)))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(get(*results[i]), countingThenUnset(81, sizes[i]))
        << sizes[i] << " tokens";
  EXPECT_EQ(last, countingThenUnset(81, 3));
}

/// Two streams in turn on the same buffers, and a third that only the events of
/// both order.
TEST_P(DeviceInterfaceTest, EventsOrderStreams) {
  Bound bound = bind();
  std::unique_ptr<Buffer> history = allocate(20 * sizeof(float));
  std::unique_ptr<Stream> reader = device->createStream().take();
  std::unique_ptr<Event> taken = device->createEvent().take();
  const float one = 1;
  ASSERT_TRUE(succeeds(put(*stream, *bound.x, {&one, 1})));
  ASSERT_TRUE(succeeds(stream->record(*event)));
  for (int round = 0; round < 20; ++round) {
    Stream &current = round % 2 ? *stream : *other;
    ASSERT_TRUE(succeeds(current.wait(*event)));
    // x *= 9, but no further than to 9^2, which a float has room for.
    ASSERT_TRUE(succeeds(current.enqueue(*bound.instance, scalarsFor(1))));
    ASSERT_TRUE(succeeds(current.wait(*taken)));
    if (round % 3 == 2)
      ASSERT_TRUE(succeeds(put(current, *bound.x, {&one, 1})));
    else
      ASSERT_TRUE(succeeds(current.copy(*bound.x, 0, *bound.z, 0, 4)));
    ASSERT_TRUE(succeeds(current.record(*event)));
    ASSERT_TRUE(succeeds(reader->wait(*event)));
    ASSERT_TRUE(succeeds(
        reader->copy(*history, round * sizeof(float), *bound.z, 0, 4)));
    ASSERT_TRUE(succeeds(reader->record(*taken)));
    ASSERT_TRUE(succeeds(current.wait(*taken)));
    ASSERT_TRUE(succeeds(current.record(*event)));
  }
  ASSERT_TRUE(succeeds(reader->synchronize()));
  std::vector<float> got = get(*history, 20);
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(got[round], (std::vector<float>{9, 81, 729})[round % 3])
        << "round " << round;
  EXPECT_TRUE(succeeds(stream->synchronize()));
  EXPECT_TRUE(succeeds(other->synchronize()));
}

TEST_P(DeviceInterfaceTest, EventsAreReached) {
  Bound bound = bind();
  // Never recorded.
  EXPECT_TRUE(succeeds(event->synchronize()));
  ASSERT_TRUE(succeeds(stream->wait(*event)));
  EXPECT_TRUE(succeeds(stream->synchronize()));
  // Recorded where there is nothing before.
  ASSERT_TRUE(succeeds(stream->record(*event)));
  EXPECT_TRUE(succeeds(event->synchronize()));
  // What is before the event is done when the host has waited for it.
  std::vector<float> got(maxTokens);
  std::span bytes = std::as_writable_bytes(std::span(got));
  ASSERT_TRUE(succeeds(put(*stream, *bound.x, counting(1))));
  ASSERT_TRUE(
      succeeds(stream->enqueue(*bound.instance, scalarsFor(maxTokens))));
  ASSERT_TRUE(succeeds(stream->download(*bound.z, 0, bytes)));
  ASSERT_TRUE(succeeds(stream->record(*event)));
  ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
  ASSERT_TRUE(succeeds(event->synchronize()));
  EXPECT_EQ(got, counting(9));
  ASSERT_TRUE(succeeds(stream->download(*bound.z, 0, bytes)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(got, countingThenUnset(0, 0));
}

/// A wait is for what was recorded before it: the streams do not wait for one
/// another in a circle.
TEST_P(DeviceInterfaceTest, WaitsAreForEarlierRecords) {
  std::unique_ptr<Buffer> buffer = allocate(4);
  std::unique_ptr<Event> second = device->createEvent().take();
  ASSERT_TRUE(succeeds(stream->wait(*event)));
  ASSERT_TRUE(succeeds(stream->fill(*buffer, 0, 4, 1)));
  ASSERT_TRUE(succeeds(stream->record(*second)));
  ASSERT_TRUE(succeeds(stream->wait(*second))); // its own
  ASSERT_TRUE(succeeds(other->wait(*second)));
  ASSERT_TRUE(succeeds(other->fill(*buffer, 0, 4, 0x40000000)));
  ASSERT_TRUE(succeeds(other->record(*event)));
  // Another record of the same event changes nothing for who waits already.
  ASSERT_TRUE(succeeds(other->record(*second)));
  ASSERT_TRUE(succeeds(stream->wait(*event)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*buffer, 1), std::vector<float>{2});
  EXPECT_TRUE(succeeds(other->synchronize()));
}

/// Whoever waits for a download, through whatever events and streams, finds
/// that it has come when he is synchronized, and that none comes again.
TEST_P(DeviceInterfaceTest, WaitsBringDownloads) {
  std::unique_ptr<Buffer> buffer = allocate(4);
  std::unique_ptr<Stream> third = device->createStream().take();
  std::unique_ptr<Event> second = device->createEvent().take();
  const std::function<Status()> waits[] = {
      [&] { return stream->synchronize(); },
      [&] { return event->synchronize(); },
      [&] { return other->synchronize(); },
      [&] { return second->synchronize(); },
      [&] { return third->synchronize(); },
      // The waiting streams may be gone, and the one with the download.
      [&] {
        other.reset();
        return third->synchronize();
      },
      [&] {
        stream.reset();
        return event->synchronize();
      }};
  for (size_t i = 0; i < std::size(waits); ++i) {
    float got = 0;
    ASSERT_TRUE(succeeds(stream->fill(*buffer, 0, 4, minusOne)));
    ASSERT_TRUE(succeeds(stream->download(
        *buffer, 0, std::as_writable_bytes(std::span(&got, 1)))));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    if (!other)
      other = device->createStream().take();
    ASSERT_TRUE(succeeds(other->wait(*event)));
    ASSERT_TRUE(succeeds(other->record(*second)));
    ASSERT_TRUE(succeeds(third->wait(*second)));
    ASSERT_TRUE(succeeds(waits[i]()));
    EXPECT_EQ(got, -1) << "wait " << i;
    got = 7;
    for (Stream *each : {third.get(), other.get(), stream.get()})
      if (each)
        ASSERT_TRUE(succeeds(each->synchronize()));
    EXPECT_EQ(got, 7) << "wait " << i;
  }
}

/// To the same memory of the host, even where the second can be done in place
/// as soon as it is asked for.
TEST_P(DeviceInterfaceTest, DownloadsAreInOrder) {
  std::unique_ptr<Buffer> one = allocate(4), two = allocate(4);
  std::unique_ptr<Stream> third = device->createStream().take();
  ASSERT_TRUE(succeeds(third->fill(*two, 0, 4, 0x40000000)));
  ASSERT_TRUE(succeeds(third->synchronize()));
  for (Stream *first : {stream.get(), other.get()}) {
    float got = 0;
    std::span bytes = std::as_writable_bytes(std::span(&got, 1));
    ASSERT_TRUE(succeeds(first->fill(*one, 0, 4, minusOne)));
    ASSERT_TRUE(succeeds(first->download(*one, 0, bytes)));
    ASSERT_TRUE(succeeds(first->record(*event)));
    ASSERT_TRUE(succeeds(stream->wait(*event)));
    // A device that works by itself has done all of that by now.
    ASSERT_TRUE(succeeds(third->fill(*one, 0, 4, 0)));
    ASSERT_TRUE(succeeds(third->synchronize()));
    ASSERT_TRUE(succeeds(stream->download(*two, 0, bytes)));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(got, 2);
    ASSERT_TRUE(succeeds(first->synchronize()));
    EXPECT_EQ(got, 2);
  }
}

TEST_P(DeviceInterfaceTest, DestroyedStreamsFinishTheirWork) {
  Bound bound = bind();
  ASSERT_TRUE(succeeds(put(*other, *bound.x, counting(1))));
  ASSERT_TRUE(succeeds(other->enqueue(*bound.instance, scalarsFor(maxTokens))));
  std::vector<float> got(maxTokens);
  ASSERT_TRUE(succeeds(
      other->download(*bound.z, 0, std::as_writable_bytes(std::span(got)))));
  ASSERT_TRUE(succeeds(other->record(*event)));
  ASSERT_TRUE(succeeds(stream->wait(*event)));
  ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, 4, minusOne)));
  other.reset();
  EXPECT_EQ(got, counting(9));
  EXPECT_TRUE(succeeds(event->synchronize()));
  EXPECT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*bound.z, 1), std::vector<float>{-1});
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_P(DeviceInterfaceTest, RefusedRunsHaveNoEffect) {
  Bound bound = bind();
  ASSERT_TRUE(succeeds(put(*stream, *bound.x, counting(1))));
  ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
  EXPECT_FALSE(stream->enqueue(*bound.instance, scalarsFor(0)).ok());
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*bound.z), countingThenUnset(0, 0));
  ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(5))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(get(*bound.z), countingThenUnset(9, 5));
}

/// Devices without collectives say so before anything is loaded; one that meets
/// the others at once, that one of them is gone, or what it lacks.
TEST_P(DeviceInterfaceTest, JoinsAGroupIfItHasCollectives) {
  auto groups = createThreadGroup(2);
  ASSERT_TRUE(groups.ok()) << groups.message();
  const bool meets = device->name() == "cuda";
  if (meets)
    groups->back().reset();
  const Status status = device->join(*groups->front());
  if (device->name() == "cpu" || device->name() == "reference") {
    EXPECT_EQ(status.message(), "");
    EXPECT_EQ(device->group(), groups->front().get());
    return;
  }
  EXPECT_EQ(device->group(), nullptr);
  if (meets) {
    EXPECT_EQ(status.code(), StatusCode::Unavailable) << status.message();
    return;
  }
  EXPECT_EQ(status.message(), "a model cannot be run by several ranks on '" +
                                  device->name() +
                                  "' yet; use cpu, cuda or reference");
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
}

/// A device may drop what has not begun, and then all that comes after it, but
/// nothing that is enqueued later.
TEST_P(DeviceInterfaceTest, CancelledWork) {
  Bound bound = bind();
  std::atomic<bool> cancelled{true};
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
    ASSERT_TRUE(succeeds(put(*stream, *bound.x, counting(1))));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(5))));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    ASSERT_TRUE(succeeds(other->wait(*event)));
    ASSERT_TRUE(succeeds(other->fill(*bound.z, 0, 4, minusOne)));
    const Status status = stream->synchronize(&cancelled);
    EXPECT_EQ(status.isCancelled(), !isGpu()) << status.message();
    EXPECT_EQ(status.ok(), isGpu()) << status.message();
    // The other stream's work depends on what was dropped.
    EXPECT_EQ(other->synchronize().isCancelled(), !isGpu());
    EXPECT_EQ(event->synchronize().isCancelled(), !isGpu());
    if (!isGpu())
      EXPECT_EQ(get(*bound.z), countingThenUnset(0, 0));
    cancelled = round == 1;
    ASSERT_TRUE(succeeds(stream->enqueue(*bound.instance, scalarsFor(6))));
    ASSERT_EQ(stream->synchronize(&cancelled).isCancelled(),
              cancelled && !isGpu());
    if (!cancelled)
      EXPECT_EQ(get(*bound.z), countingThenUnset(9, 6));
    cancelled = true;
  }
}

/// A run may end between two dispatches if it is told to: here by its first,
/// which writes the flag. Then nothing behind it happens, either.
TEST_P(DeviceInterfaceTest, CancelsBetweenDispatches) {
  static_assert(sizeof(std::atomic<bool>) == 1);
  Bound bound = bind();
  const float one = 1, flagged = std::bit_cast<float>(0x3f800001);
  std::unique_ptr<Buffer> a = device->wrap(&one, sizeof(one)).take();
  std::unique_ptr<Buffer> arena =
      allocate(256 + rowBytes, MemoryKind::HostPinned);
  auto *cancelled = new (static_cast<std::byte *>(arena->hostPointer()) + 256)
      std::atomic<bool>(false);
  std::unique_ptr<Instance> instance =
      program
          ->bind({arena.get(), {a.get()}, {}, {bound.x.get()}, {bound.z.get()}})
          .take();
  for (bool byEvent : {false, true}) {
    float got = 0;
    ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
    ASSERT_TRUE(succeeds(put(*stream, *bound.x, {&flagged, 1})));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    *cancelled = false;
    ASSERT_TRUE(succeeds(stream->enqueue(*instance, scalarsFor(1))));
    ASSERT_TRUE(succeeds(stream->download(
        *bound.z, 0, std::as_writable_bytes(std::span(&got, 1)))));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    ASSERT_TRUE(succeeds(other->wait(*event)));
    ASSERT_TRUE(succeeds(other->fill(*bound.x, 0, 4, 0)));
    const Status status = byEvent ? event->synchronize(cancelled)
                                  : stream->synchronize(cancelled);
    EXPECT_TRUE(*cancelled);
    EXPECT_EQ(status.isCancelled(), !isGpu()) << status.message();
    EXPECT_EQ(other->synchronize().isCancelled(), !isGpu());
    if (byEvent) // which does not make the stream forget
      EXPECT_EQ(stream->synchronize().isCancelled(), !isGpu());
    EXPECT_EQ(got, isGpu() ? flagged : 0);
    EXPECT_EQ(get(*bound.z, 1)[0], isGpu() ? flagged : -1);
    EXPECT_EQ(get(*bound.x, 1)[0], isGpu() ? 0 : flagged);
    // Both take work again.
    ASSERT_TRUE(succeeds(other->enqueue(*bound.instance, scalarsFor(1))));
    ASSERT_TRUE(succeeds(other->synchronize()));
    ASSERT_TRUE(succeeds(stream->enqueue(*instance, scalarsFor(1))));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(get(*bound.z, 1)[0], isGpu() ? 0 : flagged);
  }
}

/// The devices whose kernels can fail while they run.
class FailingKernelTest : public DeviceInterfaceTest {};

/// Here a slice of 3 rows, of fewer.
TEST_P(FailingKernelTest, ALateErrorEndsWhatIsBehindIt) {
  Executable executable = scaleTwice(device->name());
  executable.binary = R"([
      {"name": "scale",
       "arguments": [{"tensor": "f32", "shape": [-1, 1]},
                     {"tensor": "f32", "shape": [1, 1]}],
       "ops": [{"name": "tensor.extract_slice", "operands": [0],
                "results": [{"id": 2,
                             "type": {"tensor": "f32", "shape": [3, 1]}}],
                "attributes": {"static_offsets": [0, 0],
                               "static_sizes": [3, 1],
                               "static_strides": [1, 1]}}],
       "results": [2]}])";
  auto failing = device->load(executable);
  ASSERT_TRUE(failing.ok()) << failing.message();
  Bound bound = bind();
  auto instance = (*failing)->bind(bound.instance->buffers());
  ASSERT_TRUE(instance.ok()) << instance.message();
  const char *message = "are not in dimension 0 of";
  std::unique_ptr<Event> before = device->createEvent().take();
  for (int order = 0; order < 4; ++order) {
    std::vector<float> first(3), second(3, 7);
    ASSERT_TRUE(succeeds(put(*stream, *bound.x, counting(1))));
    ASSERT_TRUE(succeeds(stream->enqueue(**instance, scalarsFor(3))));
    ASSERT_TRUE(succeeds(stream->download(
        *bound.z, 0, std::as_writable_bytes(std::span(first)))));
    ASSERT_TRUE(succeeds(stream->record(*before)));
    ASSERT_TRUE(succeeds(stream->enqueue(**instance, scalarsFor(2))));
    ASSERT_TRUE(succeeds(stream->fill(*bound.z, 0, rowBytes, minusOne)));
    ASSERT_TRUE(succeeds(stream->download(
        *bound.z, 0, std::as_writable_bytes(std::span(second)))));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    ASSERT_TRUE(succeeds(other->wait(*event)));
    ASSERT_TRUE(succeeds(other->fill(*bound.z, 0, rowBytes, minusOne)));
    if (order == 0)
      EXPECT_TRUE(succeeds(before->synchronize()));
    if (order == 1)
      EXPECT_TRUE(failsWith(other->synchronize(), message));
    if (order == 2)
      EXPECT_TRUE(failsWith(event->synchronize(), message));
    EXPECT_TRUE(failsWith(stream->synchronize(), message));
    EXPECT_TRUE(failsWith(event->synchronize(), message));
    EXPECT_EQ(other->synchronize().ok(), order == 1);
    EXPECT_TRUE(succeeds(before->synchronize()));
    EXPECT_EQ(first, counting(1, 3));
    EXPECT_EQ(second, std::vector<float>(3, 7));
    EXPECT_EQ(get(*bound.z, 3), counting(1, 3));
    EXPECT_TRUE(succeeds(stream->synchronize()));
    EXPECT_TRUE(succeeds(other->synchronize()));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, FailingKernelTest,
                         testing::Values("reference"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           return std::string(info.param);
                         });

INSTANTIATE_TEST_SUITE_P(Devices, DeviceInterfaceTest,
                         testing::Values("cpu", "cpu2", "reference", "vulkan",
                                         "vulkan_staging", "cuda", "cuda_fake"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           return std::string(info.param);
                         });

} // namespace
