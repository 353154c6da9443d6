//===- VulkanStream.cpp - Submissions and transfers -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanStream.h"

#include "runtime/core/Exceptions.h"
#include "runtime/devices/Vulkan/VulkanBoundProgram.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace kf;

namespace {

/// Stands for the submission that comes next.
constexpr uint64_t notSubmitted = UINT64_MAX;

/// Sizes of staging chunks, and how much memory a stream has in them in each
/// direction before it waits for some of it.
constexpr uint64_t smallestChunk = 64u << 10, largestChunk = 16u << 20;
constexpr uint64_t mostStaging = 64u << 20;

} // namespace

//===----------------------------------------------------------------------===//
// Completions and events
//===----------------------------------------------------------------------===//

void VulkanCompletions::add(std::function<Status()> finish) {
  entries.push_back({notSubmitted, std::move(finish)});
}

void VulkanCompletions::assign(uint64_t number) {
  for (auto entry = entries.rbegin();
       entry != entries.rend() && entry->submission == notSubmitted; ++entry)
    entry->submission = number;
}

void VulkanCompletions::finish(uint64_t ended) {
  while (!entries.empty() && entries.front().submission <= ended) {
    Entry entry = std::move(entries.front());
    entries.pop_front();
    Status status = catchExceptions([&] { return entry.finish(); });
    if (failure.ok())
      failure = std::move(status);
  }
}

Status VulkanEvent::doSynchronize(CancelFlag /*cancelled*/) {
  if (!completions)
    return {};
  Status status = context.waitFor(submission);
  if (status) {
    completions->finish(submission);
    status = completions->failure;
  }
  return context.finish(std::move(status));
}

//===----------------------------------------------------------------------===//
// Submission
//===----------------------------------------------------------------------===//

VulkanStream::~VulkanStream() {
  (void)catchExceptions([&] { return waitForAll(); });
  completions->drop();
  for (Chunks *chunks : {&uploads, &downloads})
    for (std::unique_ptr<Chunk> &chunk : *chunks)
      context.release(chunk->memory);
  if (!context.idle())
    return;
  if (open)
    context.freeCommands(open);
  for (Commands &used : closed)
    context.freeCommands(used.commands);
}

Result<VkCommandBuffer> VulkanStream::transfers() {
  if (open)
    return open;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  if (!closed.empty() && closed.front().use <= context.ended()) {
    commands = closed.front().commands;
    closed.pop_front();
  } else {
    KF_ASSIGN_OR_RETURN(commands, context.allocateCommands());
  }
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  Status status =
      vulkanStatus(context.vk.vkBeginCommandBuffer(commands, &begin),
                   "vkBeginCommandBuffer");
  if (!status) {
    context.freeCommands(commands);
    return status;
  }
  context.orderAll(commands);
  return open = commands;
}

Status VulkanStream::flush(VkCommandBuffer commands) {
  std::vector<VkCommandBuffer> batch;
  if (open) {
    VkCommandBuffer ended = std::exchange(open, nullptr);
    Status status = vulkanStatus(context.vk.vkEndCommandBuffer(ended),
                                 "vkEndCommandBuffer");
    if (!status) {
      context.freeCommands(ended);
      return lose(status);
    }
    closed.push_back({ended, notSubmitted});
    batch.push_back(ended);
  }
  if (commands)
    batch.push_back(commands);
  if (batch.empty())
    return {};
  Result<uint64_t> submitted = context.submit(batch);
  if (!submitted)
    return lose(submitted.status());
  last = *submitted;
  for (Commands &used : closed)
    used.use = std::min(used.use, last);
  for (Chunks *chunks : {&uploads, &downloads})
    for (std::unique_ptr<Chunk> &chunk : *chunks)
      chunk->use = std::min(chunk->use, last);
  completions->assign(last);
  return {};
}

/// Work that was accepted is not done: synchronize() says so, too.
Status VulkanStream::lose(Status status) {
  completions->drop();
  if (completions->failure.ok())
    completions->failure = status;
  return status;
}

bool VulkanStream::isIdle() { return !open && last <= context.ended(); }

Status VulkanStream::waitForAll() {
  Status status = flush();
  if (status)
    status = context.waitFor(last);
  if (!status) {
    completions->drop();
    completions->failure = Status();
    return status;
  }
  completions->finish(last);
  return std::exchange(completions->failure, Status());
}

Status VulkanStream::doSynchronize(CancelFlag /*cancelled*/) {
  // What is submitted cannot be taken back.
  return context.finish(waitForAll());
}

Status VulkanStream::doRecord(Event &event) {
  KF_RETURN_IF_ERROR(context.finish(flush()));
  auto &mine = static_cast<VulkanEvent &>(event);
  mine.submission = last;
  mine.completions = completions;
  return {};
}

Status VulkanStream::doWait(Event &event) {
  // The queue sees to the order of what is submitted, this to that of what the
  // host does by itself.
  last = std::max(last, static_cast<VulkanEvent &>(event).submission);
  return {};
}

Status VulkanStream::doEnqueue(Instance &instance,
                               std::span<const int64_t> scalars,
                               const EnqueueOptions &options) {
  return context.finish(run(instance, scalars, options));
}

Status VulkanStream::run(Instance &instance, std::span<const int64_t> scalars,
                         const EnqueueOptions &options) {
  auto &bound = static_cast<VulkanBoundProgram &>(instance);
  std::shared_ptr<VulkanRecording> timed;
  VulkanRecording *recording = nullptr;
  if (options.times) {
    KF_ASSIGN_OR_RETURN(timed, bound.recordTimed(scalars));
    recording = timed.get();
  } else {
    KF_ASSIGN_OR_RETURN(recording, bound.recordingFor(scalars));
  }
  if (!bound.hasScalars(scalars)) {
    KF_ASSIGN_OR_RETURN(VkCommandBuffer commands, transfers());
    context.vk.vkCmdUpdateBuffer(commands, bound.scalarBuffer(), 0,
                                 scalars.size_bytes(), scalars.data());
    context.orderAll(commands);
    bound.setScalars(scalars);
  }
  if (timed)
    completions->add([timed, times = options.times, &bound] {
      return bound.readTimes(*timed, *times);
    });
  KF_RETURN_IF_ERROR(flush(recording->commands));
  recording->use = last;
  return {};
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Result<VulkanStream::Chunk *>
VulkanStream::acquire(Chunks &chunks, VulkanContext::MemoryUse use,
                      uint64_t bytes) {
  const uint64_t ended = context.ended();
  completions->finish(ended);
  Chunk *oldest = nullptr;
  uint64_t total = 0;
  for (std::unique_ptr<Chunk> &chunk : chunks) {
    total += chunk->memory.bytes;
    if (chunk->memory.bytes < bytes)
      continue;
    if (chunk->use <= ended)
      return chunk.get();
    if (!oldest || chunk->use < oldest->use)
      oldest = chunk.get();
  }
  if (!oldest || total < mostStaging) {
    auto chunk = std::make_unique<Chunk>();
    KF_ASSIGN_OR_RETURN(
        chunk->memory,
        context.allocate(std::max(smallestChunk, std::bit_ceil(bytes)), use));
    chunks.push_back(std::move(chunk));
    return chunks.back().get();
  }
  if (oldest->use == notSubmitted)
    KF_RETURN_IF_ERROR(flush());
  KF_RETURN_IF_ERROR(context.waitFor(oldest->use));
  completions->finish(oldest->use);
  return oldest;
}

Status VulkanStream::addCopy(VkBuffer source, uint64_t sourceOffset,
                             VkBuffer target, uint64_t targetOffset,
                             uint64_t bytes) {
  KF_ASSIGN_OR_RETURN(VkCommandBuffer commands, transfers());
  VkBufferCopy region{sourceOffset, targetOffset, bytes};
  context.vk.vkCmdCopyBuffer(commands, source, target, 1, &region);
  context.orderAll(commands);
  return {};
}

Status VulkanStream::transfer(VulkanBuffer &target, uint64_t offset,
                              std::span<const std::byte> source) {
  KF_RETURN_IF_ERROR(uploadAll(target, offset, source));
  return waitForAll();
}

Status VulkanStream::uploadAll(VulkanBuffer &target, uint64_t offset,
                               std::span<const std::byte> source) {
  if (target.memory.mapped && isIdle()) {
    std::memcpy(static_cast<std::byte *>(target.memory.mapped) + offset,
                source.data(), source.size());
    return {};
  }
  while (!source.empty()) {
    const uint64_t bytes = std::min<uint64_t>(largestChunk, source.size());
    KF_ASSIGN_OR_RETURN(
        Chunk * chunk,
        acquire(uploads, VulkanContext::MemoryUse::Upload, bytes));
    std::memcpy(chunk->memory.mapped, source.data(), bytes);
    KF_RETURN_IF_ERROR(
        addCopy(chunk->memory.buffer, 0, target.memory.buffer, offset, bytes));
    chunk->use = notSubmitted;
    source = source.subspan(bytes);
    offset += bytes;
  }
  return {};
}

Status VulkanStream::downloadAll(VulkanBuffer &source, uint64_t offset,
                                 std::span<std::byte> target) {
  if (const void *memory = source.hostPointer(); memory && isIdle()) {
    std::memcpy(target.data(), static_cast<const std::byte *>(memory) + offset,
                target.size());
    return {};
  }
  while (!target.empty()) {
    const uint64_t bytes = std::min<uint64_t>(largestChunk, target.size());
    KF_ASSIGN_OR_RETURN(
        Chunk * chunk,
        acquire(downloads, VulkanContext::MemoryUse::Download, bytes));
    KF_RETURN_IF_ERROR(
        addCopy(source.memory.buffer, offset, chunk->memory.buffer, 0, bytes));
    chunk->use = notSubmitted;
    completions->add([from = chunk->memory.mapped, to = target.data(), bytes] {
      std::memcpy(to, from, bytes);
      return Status();
    });
    target = target.subspan(bytes);
    offset += bytes;
  }
  return {};
}

Status VulkanStream::doUpload(Buffer &target, uint64_t offset,
                              std::span<const std::byte> source) {
  return context.finish(uploadAll(VulkanBuffer::of(target), offset, source));
}

Status VulkanStream::doDownload(Buffer &source, uint64_t offset,
                                std::span<std::byte> target) {
  return context.finish(downloadAll(VulkanBuffer::of(source), offset, target));
}

Status VulkanStream::doCopy(Buffer &target, uint64_t targetOffset,
                            Buffer &source, uint64_t sourceOffset,
                            uint64_t bytes) {
  return context.finish(
      addCopy(VulkanBuffer::of(source).memory.buffer, sourceOffset,
              VulkanBuffer::of(target).memory.buffer, targetOffset, bytes));
}

Status VulkanStream::doFill(Buffer &target, uint64_t offset, uint64_t bytes,
                            uint32_t pattern) {
  Result<VkCommandBuffer> commands = transfers();
  if (commands) {
    context.vk.vkCmdFillBuffer(*commands,
                               VulkanBuffer::of(target).memory.buffer, offset,
                               bytes, pattern);
    context.orderAll(*commands);
  }
  return context.finish(commands.status());
}
