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
// number of a submission. Transfers are gathered in a command buffer that goes
// with the next run of a program, event or wait of the host. Host memory is
// copied to and from staging memory, or in place where it is mapped and the
// stream has nothing to do.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANSTREAM_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANSTREAM_H

#include "runtime/devices/Vulkan/VulkanBuffer.h"

#include <deque>
#include <functional>

namespace kf {

/// What the host has to do when submissions have ended: to copy from staging
/// memory, to read times.
class VulkanCompletions {
public:
  /// `finish` belongs to the next submission.
  void add(std::function<Status()> finish);
  /// What was added since the last call belongs to submission `number`.
  void assign(uint64_t number);
  /// Does what belongs to submissions up to `ended`, in order.
  void finish(uint64_t ended);
  /// Forgets what is left: work that failed leaves nothing to do, and memory of
  /// the caller may be gone.
  void drop() { entries.clear(); }

  Status failure; ///< the first error since it was last taken

private:
  struct Entry {
    uint64_t submission; ///< notSubmitted until assign()
    std::function<Status()> finish;
  };
  std::deque<Entry> entries;
};

class VulkanEvent final : public Event {
public:
  explicit VulkanEvent(VulkanContext &context) : context(context) {}

  uint64_t submission = 0;                        ///< 0: ended
  std::shared_ptr<VulkanCompletions> completions; ///< null until recorded

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
    VkCommandBuffer commands;
    uint64_t use;
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

  Status uploadAll(VulkanBuffer &target, uint64_t offset,
                   std::span<const std::byte> source);
  Status downloadAll(VulkanBuffer &source, uint64_t offset,
                     std::span<std::byte> target);
  Status run(Instance &instance, std::span<const int64_t> scalars,
             const EnqueueOptions &options);
  Status waitForAll();
  /// Forgets what was not submitted, because of `status`.
  Status lose(Status status);
  /// Whether nothing is left to do, so that the host may touch buffers.
  bool isIdle();
  /// A chunk of at least `bytes` that nothing uses; waits where they are all in
  /// use and many.
  Result<Chunk *> acquire(Chunks &chunks, VulkanContext::MemoryUse use,
                          uint64_t bytes);
  /// Adds the copy that goes with the next submission.
  Status addCopy(VkBuffer source, uint64_t sourceOffset, VkBuffer target,
                 uint64_t targetOffset, uint64_t bytes);
  /// The command buffer that transfers go to.
  Result<VkCommandBuffer> transfers();
  /// Submits the transfers so far, then `commands` if there are any.
  Status flush(VkCommandBuffer commands = VK_NULL_HANDLE);

  VulkanContext &context;
  std::shared_ptr<VulkanCompletions> completions =
      std::make_shared<VulkanCompletions>();
  VkCommandBuffer open = VK_NULL_HANDLE; ///< being recorded
  std::deque<Commands> closed;           ///< to use again, oldest first
  Chunks uploads, downloads;
  uint64_t last = 0; ///< submission that the stream's work ends with
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANSTREAM_H
