//===- CudaStream.h - Work of a GPU in order --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Streams and events of the CUDA device: the driver's own. Host memory is
// copied to and from pinned memory, by the caller on the way to the device and
// by the driver's thread, in the stream's order, on the way back.
//
// Errors of the driver's calls are the call's, which has no effect then. Where
// a part of it was done already, the rest of the stream's work is dropped, and
// the error is synchronize()'s. Errors of kernels end the context.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDASTREAM_H
#define KF_RUNTIME_DEVICES_CUDA_CUDASTREAM_H

#include "runtime/devices/Cuda/CudaStaging.h"

#include <atomic>
#include <deque>

namespace kf {

class CudaInstance;

class CudaEvent final : public Event {
public:
  static Result<std::unique_ptr<CudaEvent>> create(CudaContext &context);
  ~CudaEvent() override;

private:
  friend class CudaStream;
  CudaEvent(CudaContext &context, CUevent event)
      : context(context), event(event) {}
  Status doSynchronize(CancelFlag cancelled) override;

  CudaContext &context;
  CUevent event;
  bool isRecorded = false;
  Status failure; ///< why work before it was dropped
};

/// `context` outlives it.
class CudaStream final : public Stream {
public:
  static Result<std::unique_ptr<CudaStream>> create(CudaContext &context);
  ~CudaStream() override;

  /// Copies host memory to a buffer, which may be read-only, and waits.
  Status transfer(CudaBuffer &target, std::span<const std::byte> source);

private:
  /// A copy of the host's that is a part of the stream's work.
  struct HostCopy {
    const std::byte *from;
    std::byte *to;
    uint64_t bytes;
    std::atomic<bool> isDone{false}; ///< set by the driver's thread
  };
  /// A run whose dispatches are measured.
  struct TimedRun {
    CudaContext &context;
    const CudaInstance &instance;
    DispatchTimes *times;
    std::vector<CUevent> events; ///< before each dispatch, and behind the last

    ~TimedRun();
    Status read() const;
  };

  CudaStream(CudaContext &context, CUstream stream)
      : context(context), stream(stream), staging(context, stream) {}

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

  bool isFailing() const { return !failure.ok(); }
  /// Moves `bytes` bytes in pieces of staging memory, each by move(piece,
  /// done), which has no effect where it fails. An error before the first is
  /// returned; a later one is the stream's.
  Status moveAll(uint64_t bytes, const auto &move);
  Status uploadTo(CudaBuffer &target, uint64_t offset,
                  std::span<const std::byte> source);
  Status writeScalars(CudaInstance &instance, std::span<const int64_t> scalars);
  Status run(CudaInstance &instance, std::span<const int64_t> scalars,
             DispatchTimes *times);
  Status runTimed(CudaInstance &instance, std::span<const int64_t> scalars,
                  DispatchTimes *times);
  Status copyOnHost(std::byte *to, const std::byte *from, uint64_t bytes);
  /// Waits for everything, and forgets what belonged to it. The timed runs are
  /// read if all went well.
  Status finish();

  CudaContext &context;
  CUstream stream;
  CudaStaging staging;
  std::deque<std::unique_ptr<HostCopy>> copies; ///< the oldest first
  std::vector<std::unique_ptr<TimedRun>> timed;
  Status failure;             ///< why work is dropped until synchronize()
  bool hasRankedRuns = false; ///< since synchronize(), of several ranks
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDASTREAM_H
