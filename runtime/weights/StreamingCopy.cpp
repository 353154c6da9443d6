//===- StreamingCopy.cpp - Copies that go past the caches -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/StreamingCopy.h"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace kf {

void streamingCopy(std::byte *dst, const std::byte *src, size_t bytes) {
  typedef uint64_t Vector __attribute__((vector_size(16)));
  if (reinterpret_cast<uintptr_t>(dst) % sizeof(Vector) != 0) {
    std::memcpy(dst, src, bytes);
    return;
  }
  size_t at = 0;
  for (; at + sizeof(Vector) <= bytes; at += sizeof(Vector)) {
    Vector vector;
    std::memcpy(&vector, src + at, sizeof(Vector));
#if defined(__clang__)
    __builtin_nontemporal_store(vector, reinterpret_cast<Vector *>(dst + at));
#else
    std::memcpy(dst + at, &vector, sizeof(Vector));
#endif
  }
  std::memcpy(dst + at, src + at, bytes - at);
}

void endStreaming() {
  // A full fence: weaker ones do not wait for stores of this kind on x86.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

} // namespace kf
