//===- VulkanStream.h - Submissions and transfers ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Streams of the Vulkan device. All submit to one queue, where whatever is
// submitted later comes after what was submitted earlier: an event is the
// number of a submission, and a place in what the host does when submissions
// have ended. Transfers are gathered in a command buffer that goes with the
// next run of a program, event or wait of the host. Host memory is copied to
// and from staging memory, or in place where it is mapped and the stream has
// nothing to do.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANSTREAM_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANSTREAM_H

#include "runtime/devices/Vulkan/VulkanBuffer.h"

#include <deque>
#include <functional>

namespace kf {

class VulkanCompletions;

/// Where an event was recorded last.
struct VulkanMark {
  /// Does what the host has left to do before the mark, whose submission has
  /// ended; why the work before it was not done.
  Status reach();

  VulkanCompletions *completions; ///< live until the mark is passed
  uint64_t submission;            ///< that the work before the mark ends with
  bool fails;                     ///< an error was known then
  bool isPassed = false;
  Status status; ///< once it is passed
};

/// What the host has to do when submissions of a stream have ended: to copy
/// from staging memory, to read times, to do the same for streams that this one
/// waits for.
class VulkanCompletions {
public:
  VulkanCompletions() = default;
  VulkanCompletions(const VulkanCompletions &) = delete;
  VulkanCompletions &operator=(const VulkanCompletions &) = delete;

  /// `finish` belongs to the next submission.
  void add(std::function<Status()> finish);
  /// What follows is done when `mark` is passed, and not if it is an error.
  void wait(std::shared_ptr<VulkanMark> mark);
  /// What follows is not done, for this error.
  void fail(Status status) noexcept;
  /// What was added since the last call belongs to submission `number`.
  void assign(uint64_t number);
  /// Forgets what has not been assigned.
  void forget();
  /// What was assigned so far, up to submission `last`.
  std::shared_ptr<VulkanMark> mark(uint64_t last);

  /// Does what belongs to submissions up to `ended`, in order, but nothing
  /// behind the mark `until`. Others' completions may be done on the way, and
  /// these may do some of here: but then only up to marks that were passed.
  void finish(uint64_t ended, const VulkanMark *until = nullptr);
  /// Nothing that is left is done, for this error: memory of the caller may be
  /// gone.
  void drop(const Status &status);

  /// Whether there is an error that take() has not returned, or will be.
  bool isFailing() const { return failing; }
  /// The first error, which is forgotten.
  Status take();

private:
  struct Entry {
    uint64_t submission;              ///< notSubmitted until assign()
    std::function<Status()> finish;   ///< empty for a mark
    std::shared_ptr<VulkanMark> mark; ///< null but for a mark
  };
  std::deque<Entry> entries;
  bool failing = false;
  Status failure;
};

class VulkanEvent final : public Event {
public:
  explicit VulkanEvent(VulkanContext &context) : context(context) {}

  std::shared_ptr<VulkanMark> mark; ///< null until recorded

private:
  Status doSynchronize(CancelFlag cancelled) override;

  VulkanContext &context;
};

/// `context` outlives it.
class VulkanStream final : public Stream {
public:
  explicit VulkanStream(VulkanContext &context) : context(context) {}
  ~VulkanStream() override;

  /// Copies host memory to a buffer, which may be read-only, and waits.
  Status transfer(VulkanBuffer &target, uint64_t offset,
                  std::span<const std::byte> source);

private:
  /// Staging memory, and the submission that uses it.
  struct Chunk {
    VulkanMemory memory;
    uint64_t use = 0;
  };
  struct Commands {
    VkCommandBuffer commands = VK_NULL_HANDLE; ///< null: not made yet
    uint64_t use = 0;
  };
  using Chunks = std::vector<std::unique_ptr<Chunk>>;

  Status doUpload(Buffer &target, uint64_t offset,
                  std::span<const std::byte> source) override;
  Status doDownload(Buffer &source, uint64_t offset,
                    std::span<std::byte> target) override;
  Status doCopy(Buffer &target, uint64_t targetOffset, Buffer &source,
                uint64_t sourceOffset, uint64_t bytes) override;
  Status doFill(Buffer &target, uint64_t offset, uint64_t bytes,
                uint32_t pattern) override;
  Status doRecord(Event &event) override;
  Status doWait(Event &event) override;
  Status doEnqueue(Instance &instance, std::span<const int64_t> scalars,
                   const EnqueueOptions &options) override;
  Status doSynchronize(CancelFlag cancelled) override;

  // While the stream is failing, these accept work and drop it.

  Status uploadAll(VulkanBuffer &target, uint64_t offset,
                   std::span<const std::byte> source);
  Status downloadAll(VulkanBuffer &source, uint64_t offset,
                     std::span<std::byte> target);
  Status run(Instance &instance, std::span<const int64_t> scalars,
             const EnqueueOptions &options);
  /// Adds to the transfers what record(commands) records.
  Status addTransfer(const auto &record);
  /// Moves `bytes` bytes through chunks of staging memory. Each of them is left
  /// to record(commands, chunk, done, count): `done` bytes were moved before,
  /// `count` are now; if it throws, it has recorded nothing. An error before
  /// the first is returned; a later one is the stream's.
  Status addPieces(Chunks &chunks, VulkanContext::MemoryUse use, uint64_t bytes,
                   const auto &record);

  Status waitForAll();
  /// What was not submitted is not done, because of `status`.
  void lose(Status status) noexcept;
  /// Whether nothing is left to do, so that the host may touch buffers.
  bool isIdle();
  /// A chunk that nothing uses, of `bytes`, or fewer where there is no memory.
  /// Waits where they are all in use and many, or no more can be had.
  Result<Chunk *> acquire(Chunks &chunks, VulkanContext::MemoryUse use,
                          uint64_t bytes);
  /// The command buffer that transfers go to.
  Result<VkCommandBuffer> transfers();
  /// Submits the transfers so far, then `commands` if there are any; false if
  /// they are lost, which is the stream's error then.
  bool flush(VkCommandBuffer commands = VK_NULL_HANDLE) noexcept;
  Status submit(VkCommandBuffer commands);

  VulkanContext &context;
  VulkanCompletions completions;
  VkCommandBuffer open = VK_NULL_HANDLE; ///< being recorded
  std::deque<Commands> commandBuffers;   ///< oldest use first, `open` last
  Chunks uploads, downloads;
  uint64_t last = 0; ///< submission that the stream's work ends with
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANSTREAM_H
