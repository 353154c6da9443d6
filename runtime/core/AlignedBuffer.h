//===- AlignedBuffer.h - Memory that kernels read ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Zero-filled memory, aligned as kernels ask for. Large buffers come straight
// from the kernel in huge pages where it has them: weights are streamed once
// per token, and page walks cost read bandwidth.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_ALIGNEDBUFFER_H
#define KF_RUNTIME_CORE_ALIGNEDBUFFER_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kf {

/// Owns its memory; movable, not copyable.
class AlignedBuffer {
public:
  /// Of data(), in bytes.
  static constexpr uint64_t alignment = 64;

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer &&other) noexcept { swap(other); }
  AlignedBuffer &operator=(AlignedBuffer &&other) noexcept {
    AlignedBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~AlignedBuffer();

  /// `bytes` zero bytes; an error when there is no such memory.
  static Result<AlignedBuffer> allocate(uint64_t bytes);

  /// Null when empty.
  std::byte *data() { return base; }
  const std::byte *data() const { return base; }
  uint64_t size() const { return bytes; }
  std::span<std::byte> span() { return {base, static_cast<size_t>(bytes)}; }
  std::span<const std::byte> span() const {
    return {base, static_cast<size_t>(bytes)};
  }

private:
  void swap(AlignedBuffer &other) {
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
    std::swap(mapping, other.mapping);
    std::swap(mappingBytes, other.mappingBytes);
  }

  std::byte *base = nullptr;
  uint64_t bytes = 0;
  void *mapping = nullptr; ///< what munmap takes; null for small buffers
  size_t mappingBytes = 0;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_ALIGNEDBUFFER_H
