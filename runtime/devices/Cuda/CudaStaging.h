//===- CudaStaging.h - Pinned memory for transfers --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDASTAGING_H
#define KF_RUNTIME_DEVICES_CUDA_CUDASTAGING_H

#include "runtime/devices/Cuda/CudaContext.h"

#include <vector>

namespace kf {

/// Pinned memory that one stream's transfers go through, in chunks that are
/// used again when the stream has passed. The context is entered when a member
/// is called; it outlives this, and so does the stream.
class CudaStaging {
public:
  CudaStaging(CudaContext &context, CUstream stream)
      : context(context), stream(stream) {}
  /// Nothing may be in flight.
  ~CudaStaging();
  CudaStaging(const CudaStaging &) = delete;
  CudaStaging &operator=(const CudaStaging &) = delete;

  struct Piece {
    std::byte *memory;
    uint64_t bytes;
  };
  /// Memory of `bytes` bytes, or fewer, that is the caller's until the stream
  /// has passed what he gives it next. Waits where chunks are many and all in
  /// use, or no more can be had.
  Result<Piece> take(uint64_t bytes);
  /// To be called when the stream has done everything.
  void reset();

private:
  struct Chunk {
    std::byte *memory = nullptr;
    uint64_t bytes = 0, used = 0;
    CUevent passed = nullptr; ///< recorded behind its last use if `isBusy`
    bool isBusy = false;
    uint64_t turn = 0; ///< the larger, the later it became busy
  };

  Result<Chunk *> acquire(uint64_t bytes);
  Status retireCurrent();
  Result<bool> isFree(Chunk &chunk);
  Result<Chunk *> allocate(uint64_t bytes);

  CudaContext &context;
  CUstream stream;
  std::vector<std::unique_ptr<Chunk>> chunks;
  Chunk *current = nullptr; ///< that pieces are taken of
  uint64_t turns = 0;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDASTAGING_H
