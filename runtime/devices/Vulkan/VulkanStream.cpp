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
#include <array>
#include <bit>
#include <cassert>
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

Status VulkanMark::reach() {
  if (!isPassed)
    completions->finish(submission, this);
  assert(isPassed && "what is ahead of a mark was submitted before it");
  return status;
}

void VulkanCompletions::add(std::function<Status()> finish) {
  entries.push_back({notSubmitted, std::move(finish), nullptr});
}

void VulkanCompletions::wait(std::shared_ptr<VulkanMark> mark) {
  const bool fails = mark->isPassed ? !mark->status.ok() : mark->fails;
  add([mark = std::move(mark)] { return mark->reach(); });
  failing |= fails;
}

void VulkanCompletions::fail(Status status) noexcept {
  failing = true;
  try {
    add([status] { return status; });
  } catch (...) { // no memory: what is ahead of it is not done, either
    if (failure.ok())
      failure = std::move(status);
  }
}

void VulkanCompletions::assign(uint64_t number) {
  for (auto entry = entries.rbegin();
       entry != entries.rend() && entry->submission == notSubmitted; ++entry)
    entry->submission = number;
}

void VulkanCompletions::forget() {
  while (!entries.empty() && entries.back().submission == notSubmitted)
    entries.pop_back();
}

std::shared_ptr<VulkanMark> VulkanCompletions::mark(uint64_t last) {
  auto mark = std::make_shared<VulkanMark>();
  mark->completions = this;
  mark->submission = last;
  mark->fails = failing;
  entries.push_back({last, nullptr, mark});
  return mark;
}

void VulkanCompletions::finish(uint64_t ended, const VulkanMark *until) {
  while (!entries.empty() && entries.front().submission <= ended &&
         !(until && until->isPassed)) {
    Entry entry = std::move(entries.front());
    entries.pop_front();
    if (entry.mark) {
      entry.mark->isPassed = true;
      entry.mark->status = catchExceptions([&] { return failure; });
    } else if (failure.ok()) {
      failure = catchExceptions([&] { return entry.finish(); });
      failing |= !failure.ok();
    }
  }
}

void VulkanCompletions::drop(const Status &status) {
  failing = true;
  if (failure.ok())
    failure = catchExceptions([&] { return status; });
  finish(notSubmitted); // passes the marks
}

Status VulkanCompletions::take() {
  failing = false;
  return std::exchange(failure, Status());
}

Status VulkanEvent::doSynchronize(CancelFlag /*cancelled*/) {
  if (!mark)
    return {};
  Status status;
  if (!mark->isPassed)
    status = context.waitFor(mark->submission);
  if (status)
    status = mark->reach();
  return context.finish(std::move(status));
}

//===----------------------------------------------------------------------===//
// Submission
//===----------------------------------------------------------------------===//

VulkanStream::~VulkanStream() {
  (void)waitForAll();
  for (Chunks *chunks : {&uploads, &downloads})
    for (std::unique_ptr<Chunk> &chunk : *chunks)
      context.release(chunk->memory);
  if (!context.idle())
    return;
  for (Commands &used : commandBuffers)
    if (used.commands)
      context.freeCommands(used.commands);
}

Result<VkCommandBuffer> VulkanStream::transfers() {
  if (open)
    return open;
  if (commandBuffers.empty() || commandBuffers.front().use > context.ended())
    commandBuffers.push_front({});
  commandBuffers.push_back(commandBuffers.front());
  commandBuffers.pop_front();
  Commands &next = commandBuffers.back();
  if (!next.commands) {
    Result<VkCommandBuffer> made = context.allocateCommands();
    if (!made) {
      commandBuffers.pop_back();
      return made.status();
    }
    next.commands = *made;
  }
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VkResult begun = context.vk.vkBeginCommandBuffer(next.commands, &begin);
  if (begun != VK_SUCCESS) {
    context.freeCommands(next.commands);
    commandBuffers.pop_back();
    return vulkanStatus(begun, "vkBeginCommandBuffer");
  }
  context.orderAll(next.commands);
  next.use = notSubmitted;
  return open = next.commands;
}

bool VulkanStream::flush(VkCommandBuffer commands) noexcept {
  Status status = catchExceptions([&] { return submit(commands); });
  if (status)
    return true;
  lose(std::move(status));
  return false;
}

Status VulkanStream::submit(VkCommandBuffer commands) {
  std::array<VkCommandBuffer, 2> batch;
  size_t count = 0;
  if (open) {
    VkCommandBuffer finished = std::exchange(open, nullptr);
    VkResult result = context.vk.vkEndCommandBuffer(finished);
    if (result != VK_SUCCESS) {
      context.freeCommands(finished);
      commandBuffers.pop_back();
      return vulkanStatus(result, "vkEndCommandBuffer");
    }
    batch[count++] = finished;
  }
  if (commands)
    batch[count++] = commands;
  if (count == 0)
    return {};
  KF_ASSIGN_OR_RETURN(last, context.submit({batch.data(), count}));
  for (Commands &used : commandBuffers)
    used.use = std::min(used.use, last);
  for (Chunks *chunks : {&uploads, &downloads})
    for (std::unique_ptr<Chunk> &chunk : *chunks)
      chunk->use = std::min(chunk->use, last);
  completions.assign(last);
  return {};
}

/// Work that was accepted is not done: synchronize() says so.
void VulkanStream::lose(Status status) noexcept {
  completions.forget();
  completions.fail(std::move(status));
  completions.assign(last);
  for (Commands &used : commandBuffers)
    used.use = std::min(used.use, last);
  for (Chunks *chunks : {&uploads, &downloads})
    for (std::unique_ptr<Chunk> &chunk : *chunks)
      chunk->use = std::min(chunk->use, last);
}

bool VulkanStream::isIdle() {
  if (open || last > context.ended())
    return false;
  completions.finish(last);
  return true;
}

Status VulkanStream::waitForAll() {
  flush();
  Status status = catchExceptions([&] { return context.waitFor(last); });
  completions.finish(context.ended());
  if (!status)
    completions.drop(status);
  return completions.take();
}

Status VulkanStream::doSynchronize(CancelFlag /*cancelled*/) {
  // What is submitted cannot be taken back.
  return context.finish(waitForAll());
}

Status VulkanStream::doRecord(Event &event) {
  flush();
  completions.finish(context.ended()); // so that they do not pile up
  static_cast<VulkanEvent &>(event).mark = completions.mark(last);
  return context.finish(Status());
}

Status VulkanStream::doWait(Event &event) {
  const std::shared_ptr<VulkanMark> &mark =
      static_cast<VulkanEvent &>(event).mark;
  if (!mark || completions.isFailing())
    return {};
  completions.finish(context.ended());
  completions.wait(mark);
  // The queue sees to the order of what is submitted, this to that of what the
  // host does by itself.
  last = std::max(last, mark->submission);
  if (!open)
    completions.assign(last);
  return {};
}

Status VulkanStream::doEnqueue(Instance &instance,
                               std::span<const int64_t> scalars,
                               const EnqueueOptions &options) {
  return context.finish(run(instance, scalars, options));
}

Status VulkanStream::run(Instance &instance, std::span<const int64_t> scalars,
                         const EnqueueOptions &options) {
  if (completions.isFailing())
    return {};
  auto &bound = static_cast<VulkanBoundProgram &>(instance);
  std::shared_ptr<VulkanRecording> timed;
  VulkanRecording *recording = nullptr;
  if (options.times) {
    KF_ASSIGN_OR_RETURN(timed, bound.recordTimed(scalars));
    recording = timed.get();
  } else {
    KF_ASSIGN_OR_RETURN(recording, bound.recordingFor(scalars));
  }
  // What can fail comes first.
  const bool isStale = !bound.hasScalars(scalars);
  if (isStale)
    KF_RETURN_IF_ERROR(transfers().status());
  if (timed)
    completions.add([timed, times = options.times, &bound] {
      return bound.readTimes(*timed, *times);
    });
  if (isStale) {
    bound.forgetScalars();
    context.vk.vkCmdUpdateBuffer(open, bound.scalarBuffer(), 0,
                                 scalars.size_bytes(), scalars.data());
    context.orderAll(open);
  }
  if (!flush(recording->commands))
    return {};
  recording->use = last;
  bound.setScalars(scalars);
  return {};
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Result<VulkanStream::Chunk *>
VulkanStream::acquire(Chunks &chunks, VulkanContext::MemoryUse use,
                      uint64_t bytes) {
  const uint64_t ended = context.ended();
  completions.finish(ended);
  uint64_t total = 0;
  for (std::unique_ptr<Chunk> &chunk : chunks)
    total += chunk->memory.bytes;
  for (uint64_t size = std::max(smallestChunk, std::bit_ceil(bytes));;
       size /= 2) {
    Chunk *oldest = nullptr;
    for (std::unique_ptr<Chunk> &chunk : chunks)
      if (chunk->memory.bytes >= size && (!oldest || chunk->use < oldest->use))
        oldest = chunk.get();
    if (oldest && oldest->use <= ended)
      return oldest;
    if (!oldest || total < mostStaging) {
      auto chunk = std::make_unique<Chunk>();
      chunks.reserve(chunks.size() + 1);
      Result<VulkanMemory> memory = context.allocate(size, use);
      if (memory) {
        chunk->memory = memory.take();
        chunks.push_back(std::move(chunk));
        return chunks.back().get();
      }
      if (!oldest && size == smallestChunk)
        return memory.status();
    }
    if (!oldest)
      continue;
    if (oldest->use == notSubmitted)
      flush();
    KF_RETURN_IF_ERROR(context.waitFor(oldest->use));
    completions.finish(oldest->use);
    return oldest;
  }
}

Status VulkanStream::addTransfer(const auto &record) {
  if (completions.isFailing())
    return {};
  KF_ASSIGN_OR_RETURN(VkCommandBuffer commands, transfers());
  record(commands);
  context.orderAll(commands);
  return {};
}

Status VulkanStream::addPieces(Chunks &chunks, VulkanContext::MemoryUse use,
                               uint64_t bytes, const auto &record) {
  for (uint64_t done = 0; done < bytes && !completions.isFailing();) {
    Status status = catchExceptions([&]() -> Status {
      KF_ASSIGN_OR_RETURN(
          Chunk * chunk,
          acquire(chunks, use, std::min(largestChunk, bytes - done)));
      const uint64_t count = std::min(chunk->memory.bytes, bytes - done);
      return addTransfer([&](VkCommandBuffer commands) {
        record(commands, chunk->memory, done, count);
        chunk->use = notSubmitted;
        done += count;
      });
    });
    if (status || completions.isFailing())
      continue;
    if (done == 0)
      return status;
    completions.fail(std::move(status));
    if (!open)
      completions.assign(last);
  }
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
    if (!completions.isFailing())
      std::memcpy(static_cast<std::byte *>(target.memory.mapped) + offset,
                  source.data(), source.size());
    return {};
  }
  return addPieces(uploads, VulkanContext::MemoryUse::Upload, source.size(),
                   [&](VkCommandBuffer commands, const VulkanMemory &chunk,
                       uint64_t done, uint64_t count) {
                     std::memcpy(chunk.mapped, source.data() + done, count);
                     VkBufferCopy region{0, offset + done, count};
                     context.vk.vkCmdCopyBuffer(commands, chunk.buffer,
                                                target.memory.buffer, 1,
                                                &region);
                   });
}

Status VulkanStream::downloadAll(VulkanBuffer &source, uint64_t offset,
                                 std::span<std::byte> target) {
  if (const void *memory = source.hostPointer(); memory && isIdle()) {
    if (!completions.isFailing())
      std::memcpy(target.data(),
                  static_cast<const std::byte *>(memory) + offset,
                  target.size());
    return {};
  }
  return addPieces(downloads, VulkanContext::MemoryUse::Download, target.size(),
                   [&](VkCommandBuffer commands, const VulkanMemory &chunk,
                       uint64_t done, uint64_t count) {
                     completions.add([from = chunk.mapped,
                                      to = target.data() + done, count] {
                       std::memcpy(to, from, count);
                       return Status();
                     });
                     VkBufferCopy region{offset + done, 0, count};
                     context.vk.vkCmdCopyBuffer(commands, source.memory.buffer,
                                                chunk.buffer, 1, &region);
                   });
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
  return context.finish(addTransfer([&](VkCommandBuffer commands) {
    VkBufferCopy region{sourceOffset, targetOffset, bytes};
    context.vk.vkCmdCopyBuffer(commands, VulkanBuffer::of(source).memory.buffer,
                               VulkanBuffer::of(target).memory.buffer, 1,
                               &region);
  }));
}

Status VulkanStream::doFill(Buffer &target, uint64_t offset, uint64_t bytes,
                            uint32_t pattern) {
  return context.finish(addTransfer([&](VkCommandBuffer commands) {
    context.vk.vkCmdFillBuffer(commands, VulkanBuffer::of(target).memory.buffer,
                               offset, bytes, pattern);
  }));
}
