//===- AlignedBuffer.cpp - Memory that kernels read -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/AlignedBuffer.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>

namespace kf {
namespace {

constexpr uint64_t kHugePage = uint64_t(2) << 20;

} // namespace

AlignedBuffer::~AlignedBuffer() {
  if (mapping)
    ::munmap(mapping, mappingBytes);
  else
    std::free(base);
}

Result<AlignedBuffer> AlignedBuffer::allocate(uint64_t bytes) {
  AlignedBuffer buffer;
  auto outOfMemory = [&] {
    return Status::error("no memory for a buffer of " + std::to_string(bytes) +
                             " bytes",
                         StatusCode::OutOfMemory);
  };
  if (bytes > uint64_t(PTRDIFF_MAX) - 2 * kHugePage)
    return outOfMemory();
  buffer.bytes = bytes;
  if (bytes < kHugePage) {
    // aligned_alloc wants a multiple of the alignment, and something to give.
    uint64_t rounded = (bytes / alignment + 1) * alignment;
    buffer.base =
        static_cast<std::byte *>(std::aligned_alloc(alignment, rounded));
    if (!buffer.base)
      return outOfMemory();
    std::memset(buffer.base, 0, rounded);
    return buffer;
  }
  // One huge page more than needed, so that the buffer can start on one.
  size_t length = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  void *mapping = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return outOfMemory();
  buffer.mapping = mapping;
  buffer.mappingBytes = length;
  uintptr_t start = reinterpret_cast<uintptr_t>(mapping);
  start = (start + kHugePage - 1) / kHugePage * kHugePage;
  buffer.base = reinterpret_cast<std::byte *>(start);
#ifdef MADV_HUGEPAGE
  // Only a wish: kernels without huge pages say no.
  (void)::madvise(buffer.base, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return buffer;
}

} // namespace kf
