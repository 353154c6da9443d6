//===- VulkanStreamTest.cpp - Streams of a device that fails --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of Vulkan are made to fail, one at a time: each error is either the
// call's, which has no effect then, or ends what is behind it, and is told by
// synchronize(). All with validation.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanStream.h"

#include "SpirvTestModules.h"
#include "runtime/devices/Vulkan/VulkanBoundProgram.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/VulkanRequirement.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <optional>

using namespace kf;
using namespace kf::test;

namespace {

/// What a call returns instead of being made; nothing: it is made.
using Answer = std::optional<VkResult>;

/// As long as it lives, `answer` is asked before each call of a function.
template <auto member> class Fault;
template <typename... Args, VkResult (*VulkanDeviceFunctions::*member)(Args...)>
class Fault<member> {
public:
  Fault(VulkanContext &context, std::function<Answer(Args...)> wanted)
      : context(context) {
    made = std::exchange(context.vk.*member, call);
    answer = std::move(wanted);
  }
  Fault(const Fault &) = delete;
  Fault &operator=(const Fault &) = delete;
  ~Fault() { context.vk.*member = made; }

private:
  static VkResult call(Args... args) {
    Answer given = answer(args...);
    return given ? *given : made(args...);
  }

  VulkanContext &context;
  static inline VkResult (*made)(Args...);
  static inline std::function<Answer(Args...)> answer;
};

using FailingAllocate = Fault<&VulkanDeviceFunctions::vkAllocateMemory>;
using FailingBegin = Fault<&VulkanDeviceFunctions::vkBeginCommandBuffer>;
using FailingEnd = Fault<&VulkanDeviceFunctions::vkEndCommandBuffer>;
using FailingQueries = Fault<&VulkanDeviceFunctions::vkGetQueryPoolResults>;
using FailingCounter =
    Fault<&VulkanDeviceFunctions::vkGetSemaphoreCounterValue>;
using FailingWait = Fault<&VulkanDeviceFunctions::vkWaitSemaphores>;
using FaultySubmit = Fault<&VulkanDeviceFunctions::vkQueueSubmit>;

Answer noMemory() { return VK_ERROR_OUT_OF_DEVICE_MEMORY; }
constexpr uint64_t kibibyte = 1024, mebibyte = 1024 * kibibyte;
class VulkanStreamTest : public testing::Test {
protected:
  /// Without mapped memory, everything goes through staging memory.
  void open(VulkanDeviceOptions options) {
    KF_REQUIRE_VULKAN();
    options.validation = true;
    options.onMessage = [this](std::string_view message) {
      messages.emplace_back(message);
    };
    auto created = VulkanContext::create(options);
    ASSERT_TRUE(created.ok()) << created.message();
    context = created.take();
    stream = std::make_unique<VulkanStream>(*context);
    other = std::make_unique<VulkanStream>(*context);
    event = std::make_unique<VulkanEvent>(*context);
    small = allocate(64);
  }

  void SetUp() override {
    VulkanDeviceOptions options;
    options.mapBuffers = false;
    open(options);
  }

  void TearDown() override {
    stream.reset();
    other.reset();
    small.reset();
    context.reset();
    EXPECT_EQ(messages, std::vector<std::string>());
  }

  /// Zeros.
  std::unique_ptr<Buffer> allocate(uint64_t bytes) {
    auto memory = context->allocate(bytes, VulkanContext::MemoryUse::Device);
    EXPECT_TRUE(memory.ok()) << memory.message();
    EXPECT_TRUE(succeeds(context->clear(*memory)));
    return std::make_unique<VulkanBuffer>(*context, memory.take(), bytes);
  }

  std::vector<std::byte> contentOf(Buffer &buffer) {
    std::vector<std::byte> content(buffer.size());
    VulkanStream reader(*context);
    EXPECT_TRUE(succeeds(reader.download(buffer, 0, content)));
    EXPECT_TRUE(succeeds(reader.synchronize()));
    return content;
  }

  /// Every word of `small`; fails the test where they differ.
  uint32_t word() {
    std::vector<std::byte> content = contentOf(*small);
    std::vector<uint32_t> words(content.size() / 4);
    std::memcpy(words.data(), content.data(), content.size());
    EXPECT_EQ(std::ranges::count(words, words[0]), words.size());
    return words[0];
  }

  /// While it lives, staging memory of at most `bytes` at once can be had, and
  /// so many times.
  auto limitMemory(uint64_t bytes, int64_t times) {
    return std::make_unique<FailingAllocate>(
        *context,
        [bytes, left = times](VkDevice, const VkMemoryAllocateInfo *info,
                              auto...) mutable {
          return info->allocationSize > bytes || left-- <= 0 ? noMemory()
                                                             : Answer();
        });
  }

  std::vector<std::string> messages;
  std::unique_ptr<VulkanContext> context;
  std::unique_ptr<Stream> stream, other;
  std::unique_ptr<Event> event;
  std::unique_ptr<Buffer> small; ///< 64 bytes
};

/// The driver's codes are told apart.
TEST_F(VulkanStreamTest, SaysWhatKindOfErrorItIs) {
  auto allocated = [&] {
    return context->allocate(64, VulkanContext::MemoryUse::Device)
        .status()
        .code();
  };
  const std::pair<VkResult, StatusCode> results[] = {
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::OutOfMemory},
      {VK_ERROR_OUT_OF_HOST_MEMORY, StatusCode::OutOfMemory},
      {VK_ERROR_TOO_MANY_OBJECTS, StatusCode::OutOfMemory},
      {VK_ERROR_DEVICE_LOST, StatusCode::Unavailable},
      {VK_ERROR_FEATURE_NOT_PRESENT, StatusCode::Unsupported},
      {VK_ERROR_UNKNOWN, StatusCode::Internal}};
  for (const auto &[result, code] : results) {
    FailingAllocate fault(*context,
                          [result](auto...) { return Answer(result); });
    EXPECT_EQ(allocated(), code);
  }
}

//===----------------------------------------------------------------------===//
// Staging memory
//===----------------------------------------------------------------------===//

/// One piece of staging memory, or one that is smaller than what is asked for,
/// is enough.
TEST_F(VulkanStreamTest, WaitsForStagingMemory) {
  const std::vector<std::byte> source = noise(40 * mebibyte + 13);
  for (uint64_t most : {16 * mebibyte, mebibyte}) {
    std::unique_ptr<Buffer> buffer = allocate(source.size());
    std::vector<std::byte> back(source.size());
    auto limit = limitMemory(most, 1);
    ASSERT_TRUE(succeeds(stream->upload(*buffer, 0, source)));
    limit.reset();
    limit = limitMemory(most, 1);
    ASSERT_TRUE(succeeds(stream->download(*buffer, 0, back)));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    limit.reset();
    EXPECT_EQ(back, source);
    stream = std::make_unique<VulkanStream>(*context);
  }
}

TEST_F(VulkanStreamTest, WithoutStagingMemoryTransfersHaveNoEffect) {
  std::vector<std::byte> bytes(64, std::byte(7));
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 1)));
  auto limit = limitMemory(0, 0);
  EXPECT_TRUE(
      failsWith(stream->upload(*small, 0, bytes), "OUT_OF_DEVICE_MEMORY"));
  EXPECT_TRUE(
      failsWith(stream->download(*small, 0, bytes), "OUT_OF_DEVICE_MEMORY"));
  EXPECT_TRUE(succeeds(stream->synchronize()));
  limit.reset();
  EXPECT_EQ(bytes, std::vector<std::byte>(64, std::byte(7)));
  EXPECT_EQ(word(), 1u);
}

/// The first pieces were accepted by then: it is too late for an error of the
/// call.
TEST_F(VulkanStreamTest, TransfersThatFailHalfwayAreLateErrors) {
  std::unique_ptr<Buffer> large = allocate(mebibyte);
  for (bool isUpload : {true, false}) {
    std::vector<std::byte> bytes(mebibyte, std::byte(7)), late(64, bytes[0]);
    ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 1)));
    {
      auto limit = limitMemory(64 * kibibyte, 1);
      FailingBegin fault(*context, [calls = 0](auto...) mutable {
        return calls++ == 3 ? noMemory() : Answer();
      });
      ASSERT_TRUE(succeeds(isUpload ? stream->upload(*large, 0, bytes)
                                    : stream->download(*large, 0, bytes)));
    }
    // Nothing of this happens.
    ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 2)));
    ASSERT_TRUE(succeeds(stream->download(*small, 0, late)));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    ASSERT_TRUE(succeeds(other->wait(*event)));
    ASSERT_TRUE(succeeds(other->fill(*small, 0, 64, 3)));
    ASSERT_TRUE(succeeds(other->download(*small, 0, late)));
    EXPECT_TRUE(failsWith(event->synchronize(), "vkBeginCommandBuffer"));
    EXPECT_TRUE(failsWith(other->synchronize(), "vkBeginCommandBuffer"));
    EXPECT_TRUE(failsWith(stream->synchronize(), "vkBeginCommandBuffer"));
    EXPECT_EQ(late, std::vector<std::byte>(64, std::byte(7)));
    EXPECT_EQ(word(), 1u);
    if (!isUpload)
      EXPECT_EQ(bytes.back(), std::byte(7));
    // Now both take work again.
    ASSERT_TRUE(succeeds(stream->upload(*large, 0, noise(mebibyte))));
    ASSERT_TRUE(succeeds(stream->download(*large, 0, bytes)));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(bytes, noise(mebibyte));
    EXPECT_TRUE(succeeds(other->synchronize()));
    stream = std::make_unique<VulkanStream>(*context);
  }
}

//===----------------------------------------------------------------------===//
// Submission
//===----------------------------------------------------------------------===//

TEST_F(VulkanStreamTest, CommandsThatCannotBeMadeHaveNoEffect) {
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 1)));
  ASSERT_TRUE(succeeds(stream->record(*event)));
  for (int round = 0; round < 3; ++round) {
    FailingBegin fault(*context, [](auto...) { return noMemory(); });
    EXPECT_TRUE(
        failsWith(stream->fill(*small, 0, 64, 2), "vkBeginCommandBuffer"));
  }
  EXPECT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(word(), 1u);
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 3)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(word(), 3u);
}

/// Earlier submissions are done, what was to be submitted is not.
TEST_F(VulkanStreamTest, WorkThatCannotBeSubmittedIsALateError) {
  std::vector<std::byte> early(64, std::byte(7)), late(64, std::byte(7));
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 0x01010101)));
  ASSERT_TRUE(succeeds(stream->download(*small, 0, early)));
  ASSERT_TRUE(succeeds(stream->record(*event)));
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 2)));
  ASSERT_TRUE(succeeds(stream->download(*small, 0, late)));
  {
    FailingEnd fault(*context, [](auto...) { return noMemory(); });
    ASSERT_TRUE(succeeds(stream->record(*event)));
  }
  ASSERT_TRUE(succeeds(stream->download(*small, 0, late)));
  EXPECT_TRUE(failsWith(event->synchronize(), "vkEndCommandBuffer"));
  EXPECT_TRUE(failsWith(stream->synchronize(), "vkEndCommandBuffer"));
  // Remembered for those that ask later.
  EXPECT_TRUE(failsWith(event->synchronize(), "vkEndCommandBuffer"));
  ASSERT_TRUE(succeeds(other->wait(*event)));
  ASSERT_TRUE(succeeds(other->fill(*small, 0, 64, 2)));
  EXPECT_TRUE(failsWith(other->synchronize(), "vkEndCommandBuffer"));
  EXPECT_EQ(early, std::vector<std::byte>(64, std::byte(1)));
  EXPECT_EQ(late, std::vector<std::byte>(64, std::byte(7)));
  EXPECT_EQ(word(), 0x01010101u);
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 3)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(word(), 3u);
}

/// For want of memory, that is, after which more may be had.
TEST_F(VulkanStreamTest, AFailedSubmissionDoesNotEndTheDevice) {
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 1)));
  {
    FaultySubmit fault(*context, [](auto...) { return noMemory(); });
    EXPECT_TRUE(failsWith(stream->synchronize(), "vkQueueSubmit"));
  }
  EXPECT_EQ(word(), 0u);
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 2)));
  EXPECT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(word(), 2u);
}

/// With a program, on a device whose memory the host can address.
class VulkanRunTest : public VulkanStreamTest {
protected:
  void SetUp() override {
    open({});
    if (!context)
      return;
    x = allocate(maxTokens * 4);
    a = allocate(4);
    z = allocate(maxTokens * 4);
    auto loaded = VulkanProgram::create(
        *context, scaleOnce("vulkan", lengthPrefixed(readSpirv("scale"))));
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    program = loaded.take();
    auto bound = program->bind({nullptr, {a.get()}, {}, {x.get()}, {z.get()}});
    ASSERT_TRUE(bound.ok()) << bound.message();
    instance = bound.take();
    const float three = 3;
    std::vector<float> ones(maxTokens, 1);
    ASSERT_TRUE(
        succeeds(stream->upload(*a, 0, std::as_bytes(std::span(&three, 1)))));
    ASSERT_TRUE(
        succeeds(stream->upload(*x, 0, std::as_bytes(std::span(ones)))));
    ASSERT_TRUE(succeeds(stream->synchronize()));
  }

  void TearDown() override {
    stream.reset();
    instance.reset();
    program.reset();
    x.reset();
    a.reset();
    z.reset();
    VulkanStreamTest::TearDown();
  }

  Status enqueue(int64_t tokens, const EnqueueOptions &options = {}) {
    std::vector<int64_t> scalars(KF_SCALAR_COUNT, 0);
    scalars[KF_SCALAR_N_TOKENS] = tokens;
    return stream->enqueue(*instance, scalars, options);
  }

  /// How many rows of z are 3, none being known to be otherwise.
  int64_t rowsDone() {
    std::vector<float> values(maxTokens);
    std::vector<std::byte> content = contentOf(*z);
    std::memcpy(values.data(), content.data(), content.size());
    return std::ranges::count(values, 3.0f);
  }

  std::unique_ptr<Buffer> x, a, z;
  std::unique_ptr<LoadedProgram> program;
  std::unique_ptr<Instance> instance;
};

/// The scalars that a lost run was to have are not taken for written.
TEST_F(VulkanRunTest, ALostRunLeavesNothingBehind) {
  ASSERT_TRUE(succeeds(enqueue(590)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  {
    FailingEnd fault(*context, [](auto...) { return noMemory(); });
    // Has to be recorded, unlike as many workgroups as before.
    EXPECT_TRUE(failsWith(enqueue(1000), "vkEndCommandBuffer"));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    ASSERT_TRUE(succeeds(enqueue(600)));
  }
  EXPECT_TRUE(failsWith(stream->synchronize(), "vkEndCommandBuffer"));
  EXPECT_EQ(rowsDone(), 590);
  ASSERT_TRUE(succeeds(enqueue(600)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(rowsDone(), 600);
}

/// Kernels with a workgroup a row: steps of 1 to 64 rows, in any order, are
/// each recorded once.
TEST_F(VulkanRunTest, KeepsTheRecordingsOfLate) {
  Executable executable =
      scaleOnce("vulkan", lengthPrefixed(readSpirv("scale")));
  executable.dispatches[0].grid[0].value = 1;
  instance.reset();
  program = VulkanProgram::create(*context, executable).take();
  instance =
      program->bind({nullptr, {a.get()}, {}, {x.get()}, {z.get()}}).take();
  auto &recorded = static_cast<VulkanBoundProgram &>(*instance);
  int made = 0;
  FailingBegin count(*context, [&](auto...) {
    ++made;
    return Answer();
  });
  for (int64_t i = 0; i < 10 * 64; ++i)
    ASSERT_TRUE(succeeds(
        recorded.recordingFor(scalarsFor(1 + (i * 37 + i / 64 * 11) % 64))
            .status()));
  EXPECT_EQ(made, 64);
  ASSERT_TRUE(succeeds(recorded.recordingFor(scalarsFor(65)).status()));
  ASSERT_TRUE(succeeds(recorded.recordingFor(scalarsFor(65)).status()));
  EXPECT_EQ(made, 65);
  ASSERT_TRUE(succeeds(enqueue(65)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(rowsDone(), 65);
}

/// The host finds the error when it asks how far the device is, and touches
/// nothing behind it.
TEST_F(VulkanRunTest, TimesThatCannotBeReadEndWhatIsBehind) {
  for (bool inPlace : {false, true}) {
    FailingQueries fault(*context, [](auto...) { return noMemory(); });
    DispatchTimes times;
    std::vector<std::byte> bytes(64, std::byte(7));
    ASSERT_TRUE(succeeds(enqueue(10, {.times = &times})));
    if (inPlace) // the stream has nothing to do when it is asked
      ASSERT_TRUE(succeeds(other->fill(*small, 0, 64, 1)));
    ASSERT_TRUE(succeeds(other->synchronize()));
    ASSERT_TRUE(succeeds(stream->upload(*small, 0, bytes)));
    ASSERT_TRUE(succeeds(stream->download(*x, 0, bytes)));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    EXPECT_TRUE(failsWith(event->synchronize(), "vkGetQueryPoolResults"));
    EXPECT_TRUE(failsWith(stream->synchronize(), "vkGetQueryPoolResults"));
    EXPECT_EQ(bytes, std::vector<std::byte>(64, std::byte(7)));
    EXPECT_EQ(times.size(), 0u);
    if (inPlace)
      EXPECT_EQ(word(), 1u);
    EXPECT_TRUE(succeeds(stream->synchronize()));
  }
}

//===----------------------------------------------------------------------===//
// Devices that hang or are lost
//===----------------------------------------------------------------------===//

/// How it is noticed.
enum class End { Hangs, LostInWait, LostInCounter, CounterAtMost };

class VulkanEndTest : public VulkanStreamTest,
                      public testing::WithParamInterface<End> {};

/// What was to be downloaded has not come, and will not.
TEST_P(VulkanEndTest, EndsAllWork) {
  const End end = GetParam();
  const char *message =
      end == End::Hangs ? "did not finish" : "VK_ERROR_DEVICE_LOST";
  VkSemaphore timeline = VK_NULL_HANDLE;
  uint64_t number = 0;
  FaultySubmit observed(
      *context, [&](VkQueue, uint32_t, const VkSubmitInfo *info, VkFence) {
        timeline = info->pSignalSemaphores[0];
        number = static_cast<const VkTimelineSemaphoreSubmitInfo *>(info->pNext)
                     ->pSignalSemaphoreValues[0];
        return Answer();
      });
  bool isOver = false;
  auto counter = std::make_unique<FailingCounter>(
      *context, [&](VkDevice, VkSemaphore, uint64_t *value) -> Answer {
        if (isOver && end == End::LostInCounter)
          return VK_ERROR_DEVICE_LOST;
        if (!isOver || end != End::CounterAtMost)
          return VK_ERROR_OUT_OF_HOST_MEMORY; // nothing is known to have ended
        *value = UINT64_MAX;
        return VK_SUCCESS;
      });
  const std::vector<std::byte> before(64, std::byte(7));
  std::vector<std::byte> first = before, second = before;
  ASSERT_TRUE(succeeds(stream->download(*small, 0, first)));
  ASSERT_TRUE(succeeds(stream->record(*event)));
  ASSERT_TRUE(succeeds(other->wait(*event)));
  ASSERT_TRUE(succeeds(other->download(*small, 0, second)));
  VulkanEvent behind(*context);
  ASSERT_TRUE(succeeds(other->record(behind)));
  // In truth all of it is done, so that what follows may destroy it.
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline;
  info.pValues = &number;
  ASSERT_EQ(context->vk.vkWaitSemaphores(context->device, &info, UINT64_MAX),
            VK_SUCCESS);
  isOver = true;
  FailingWait wait(*context, [&](auto...) -> Answer {
    return end == End::Hangs ? VK_TIMEOUT : VK_ERROR_DEVICE_LOST;
  });
  EXPECT_TRUE(failsWith(behind.synchronize(), message));
  EXPECT_TRUE(failsWith(event->synchronize(), message));
  EXPECT_TRUE(failsWith(other->synchronize(), message));
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 2)));
  EXPECT_TRUE(failsWith(stream->synchronize(), message));
  // The hanging one turns out to have been slow.
  counter.reset();
  EXPECT_EQ(stream->synchronize().ok(), end == End::Hangs);
  EXPECT_TRUE(failsWith(event->synchronize(), message));
  EXPECT_TRUE(failsWith(behind.synchronize(), message));
  EXPECT_EQ(first, before);
  EXPECT_EQ(second, before);
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 2)));
  EXPECT_TRUE(failsWith(stream->synchronize(), "failed earlier"));
  stream.reset();
  other.reset();
}

std::string nameOfEnd(const testing::TestParamInfo<End> &info) {
  constexpr const char *names[] = {"hangs", "lost_in_wait", "lost_in_counter",
                                   "counter_at_most"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Ends, VulkanEndTest,
                         testing::Values(End::Hangs, End::LostInWait,
                                         End::LostInCounter,
                                         End::CounterAtMost),
                         nameOfEnd);

} // namespace
