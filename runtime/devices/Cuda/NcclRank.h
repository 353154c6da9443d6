//===- NcclRank.h - A GPU that is one of several ranks ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CUDA device's end of a Group. Collectives are NCCL's, between the devices;
// the Group tells ranks of one another's ends, and what NCCL needs to begin.
//
// All ranks have some memory in a window, which NCCL's kernels of every rank
// reach at the same place. Arenas of programs whose sums gain by it lie there,
// all at its beginning: runs with collectives follow one another.
//
// A communicator that does not block is called by the rank's thread alone,
// which gives up where the group ends. What ends a communicator may wait for
// the graphs of all ranks of the process, this one's among them: that is done
// by a thread of its own.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_NCCLRANK_H
#define KF_RUNTIME_DEVICES_CUDA_NCCLRANK_H

#include "runtime/devices/Cuda/CudaContext.h"
#include "runtime/devices/Cuda/NcclLibrary.h"

#include <memory>
#include <thread>

namespace kf {

/// `context` and `group` outlive it, and it outlives graphs that have its
/// collectives. Threads: the device's.
class NcclRank {
public:
  /// Makes the communicator together with the group's other ranks, which it
  /// waits for. `library`: its functions; null: those of the machine's.
  /// Errors: no NCCL, one that is too old, what NCCL says, the group's.
  static Result<std::unique_ptr<NcclRank>>
  join(CudaContext &context, Group &group, const NcclFunctions *library);
  /// Waits for the communicator's end, but not for ever.
  ~NcclRank();
  NcclRank(const NcclRank &) = delete;
  NcclRank &operator=(const NcclRank &) = delete;

  /// Where a program's arena lies in the window; 0: not there.
  CUdeviceptr windowFor(const Executable &executable) const;
  /// Bytes of scratch that a collective of up to `rows` rows needs.
  uint64_t scratchBytes(const CollectiveSpec &collective, uint64_t rows) const;
  /// So many bytes at least, which runs share.
  Result<std::shared_ptr<CudaBuffer>> scratch(uint64_t bytes);
  /// Enqueues a collective of `rows` rows on a stream that records a graph. Of
  /// `source` and `target`, one that it has not is any.
  Status enqueue(const CollectiveSpec &collective, uint64_t rows,
                 CUdeviceptr source, CUdeviceptr target, CUdeviceptr scratch,
                 CUstream stream);
  /// A stream for such recordings.
  CUstream recorder() const { return recording; }

  /// Called behind a run's launch in `stream`: whether it has failed is looked
  /// at from then on, and it is given up after the group's end, also where
  /// nobody waits for it.
  Status watch(CUstream stream);
  /// To be called again and again by who waits for the device: gives up what is
  /// not done soon after the group has ended.
  void poll();
  /// Why work that was enqueued may have been given up; OK if none was.
  Status failure() const;
  /// Ends the group for all ranks.
  void abort(const Status &reason) { group.abort(reason.message()); }
  /// The group's failure.
  Status groupFailure() const { return group.failure(); }

private:
  struct Shared;

  NcclRank(CudaContext &context, Group &group, const NcclFunctions &nccl);
  Status begin();
  Status openWindow();
  /// Calls `function` with the communicator, and waits until it is done.
  Status call(const char *what, const auto &function);
  static void keep(const std::shared_ptr<Shared> &shared);

  CudaContext &context;
  Group &group;
  NcclFunctions nccl;
  CUstream recording = nullptr;
  std::shared_ptr<CudaBuffer> largest; ///< scratch; null: none yet
  void *windowMemory = nullptr;        ///< null: there is no window
  std::shared_ptr<Shared> shared;
  std::thread keeper;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_NCCLRANK_H
