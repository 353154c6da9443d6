//===- CudaStaging.cpp - Pinned memory for transfers ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaStaging.h"

#include <algorithm>
#include <bit>

using namespace kf;

namespace {

/// Sizes of chunks, and how much memory a stream has in them before it waits
/// for some of it.
constexpr uint64_t smallestChunk = 64u << 10, largestChunk = 16u << 20;
constexpr uint64_t mostMemory = 64u << 20;
constexpr uint64_t alignment = 64;

} // namespace

CudaStaging::~CudaStaging() {
  for (std::unique_ptr<Chunk> &chunk : chunks) {
    (void)context.cu.cuMemFreeHost(chunk->memory);
    if (chunk->passed)
      (void)context.cu.cuEventDestroy(chunk->passed);
  }
}

Result<CudaStaging::Piece> CudaStaging::take(uint64_t bytes) {
  if (!current || current->bytes - current->used < bytes) {
    KF_RETURN_IF_ERROR(retireCurrent());
    KF_ASSIGN_OR_RETURN(current, acquire(std::min(bytes, largestChunk)));
    current->used = 0;
  }
  const Piece piece = {current->memory + current->used,
                       std::min(bytes, current->bytes - current->used)};
  current->used =
      std::min(current->bytes, current->used + (piece.bytes + alignment - 1) /
                                                   alignment * alignment);
  return piece;
}

void CudaStaging::reset() {
  for (std::unique_ptr<Chunk> &chunk : chunks) {
    chunk->used = 0;
    chunk->isBusy = false;
  }
}

/// No more pieces are taken of the current chunk before the stream has passed.
Status CudaStaging::retireCurrent() {
  if (!current)
    return {};
  if (!current->passed)
    KF_RETURN_IF_ERROR(context.check(
        context.cu.cuEventCreate(&current->passed, CU_EVENT_DISABLE_TIMING),
        "cuEventCreate"));
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuEventRecord(current->passed, stream), "cuEventRecord"));
  current->isBusy = true;
  current->turn = ++turns;
  current = nullptr;
  return {};
}

Result<bool> CudaStaging::isFree(Chunk &chunk) {
  if (chunk.isBusy) {
    const CUresult result = context.cu.cuEventQuery(chunk.passed);
    if (result == CUDA_ERROR_NOT_READY)
      return false;
    KF_RETURN_IF_ERROR(context.checkWait(result, "cuEventQuery"));
    chunk.isBusy = false;
  }
  return true;
}

/// A chunk of `bytes`, or of fewer where there is no memory, that nothing uses.
Result<CudaStaging::Chunk *> CudaStaging::acquire(uint64_t bytes) {
  uint64_t total = 0;
  for (std::unique_ptr<Chunk> &chunk : chunks)
    total += chunk->bytes;
  for (uint64_t size = std::max(smallestChunk, std::bit_ceil(bytes));;
       size /= 2) {
    Chunk *oldest = nullptr;
    for (std::unique_ptr<Chunk> &chunk : chunks) {
      if (chunk->bytes < size)
        continue;
      KF_ASSIGN_OR_RETURN(bool free, isFree(*chunk));
      if (free)
        return chunk.get();
      if (!oldest || chunk->turn < oldest->turn)
        oldest = chunk.get();
    }
    if (!oldest || total < mostMemory) {
      Result<Chunk *> made = allocate(size);
      if (made)
        return *made;
      if (!oldest && size == smallestChunk)
        return made.status();
    }
    if (!oldest)
      continue;
    KF_RETURN_IF_ERROR(context.synchronize(oldest->passed));
    oldest->isBusy = false;
    return oldest;
  }
}

Result<CudaStaging::Chunk *> CudaStaging::allocate(uint64_t bytes) {
  auto chunk = std::make_unique<Chunk>();
  chunks.reserve(chunks.size() + 1);
  void *memory = nullptr;
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE),
      "cuMemHostAlloc"));
  chunk->memory = static_cast<std::byte *>(memory);
  chunk->bytes = bytes;
  chunks.push_back(std::move(chunk));
  return chunks.back().get();
}
