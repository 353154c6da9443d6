//===- CudaStream.cpp - Work of a GPU in order ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaStream.h"

#include "runtime/core/Exceptions.h"
#include "runtime/devices/Cuda/CudaInstance.h"
#include "runtime/devices/Cuda/NcclRank.h"

#include <cstring>

using namespace kf;

namespace {

/// A download of so many bytes from a stream that has nothing to do is made at
/// once, which takes less time than a call by the driver's thread.
constexpr uint64_t mostAtOnce = 64u << 10;

} // namespace

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CudaEvent>> CudaEvent::create(CudaContext &context) {
  KF_RETURN_IF_ERROR(context.enter());
  CUevent event = nullptr;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
                    "cuEventCreate"));
  return std::unique_ptr<CudaEvent>(new CudaEvent(context, event));
}

CudaEvent::~CudaEvent() {
  (void)context.enter();
  (void)context.cu.cuEventDestroy(event);
}

Status CudaEvent::doSynchronize(CancelFlag /*cancelled*/) {
  if (!isRecorded)
    return {};
  KF_RETURN_IF_ERROR(context.enter());
  KF_RETURN_IF_ERROR(context.synchronize(event));
  KF_RETURN_IF_ERROR(failure);
  return context.rank() ? context.rank()->failure() : Status();
}

Status CudaStream::doRecord(Event &target) {
  auto &event = static_cast<CudaEvent &>(target);
  KF_RETURN_IF_ERROR(context.enter());
  Status known = failure;
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuEventRecord(event.event, stream), "cuEventRecord"));
  event.isRecorded = true;
  event.failure = std::move(known);
  return {};
}

Status CudaStream::doWait(Event &awaited) {
  const auto &event = static_cast<CudaEvent &>(awaited);
  if (!event.isRecorded || isFailing())
    return {};
  KF_RETURN_IF_ERROR(context.enter());
  Status known = event.failure;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuStreamWaitEvent(stream, event.event, 0),
                    "cuStreamWaitEvent"));
  failure = std::move(known);
  return {};
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CudaStream>> CudaStream::create(CudaContext &context) {
  KF_RETURN_IF_ERROR(context.enter());
  CUstream stream = nullptr;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate"));
  return std::unique_ptr<CudaStream>(new CudaStream(context, stream));
}

CudaStream::~CudaStream() {
  (void)catchExceptions([&] { return finish(); });
  (void)context.cu.cuStreamDestroy(stream);
}

Status CudaStream::finish() {
  // Whatever has failed, memory may be gone when this returns.
  const Status entered = context.enter();
  Status status = context.synchronize(stream);
  NcclRank *const rank = context.rank();
  if (rank && !(entered && status))
    rank->abort(entered ? status : entered);
  const std::vector<std::unique_ptr<TimedRun>> runs = std::move(timed);
  timed.clear();
  if (!status) // copies stay: the driver may know of them
    return entered ? status : entered;
  staging.reset();
  copies.clear();
  status = entered;
  if (std::exchange(hasRankedRuns, false) && rank && status)
    status = rank->failure();
  for (const std::unique_ptr<TimedRun> &run : runs)
    if (status && !isFailing())
      status = run->read();
  return status;
}

Status CudaStream::doSynchronize(CancelFlag /*cancelled*/) {
  // What the device was given cannot be taken back.
  Status status = finish();
  Status first = std::exchange(failure, Status());
  return first ? status : first;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Status CudaStream::moveAll(uint64_t bytes, const auto &move) {
  for (uint64_t done = 0; done < bytes;) {
    Status status = catchExceptions([&]() -> Status {
      KF_ASSIGN_OR_RETURN(CudaStaging::Piece piece, staging.take(bytes - done));
      KF_RETURN_IF_ERROR(move(piece, done));
      done += piece.bytes;
      return {};
    });
    if (status)
      continue;
    if (done == 0)
      return status;
    failure = std::move(status);
    return {};
  }
  return {};
}

Status CudaStream::uploadTo(CudaBuffer &target, uint64_t offset,
                            std::span<const std::byte> source) {
  auto *host = static_cast<std::byte *>(target.hostPointer());
  return moveAll(
      source.size(),
      [&](const CudaStaging::Piece &piece, uint64_t done) -> Status {
        std::memcpy(piece.memory, source.data() + done, piece.bytes);
        if (host)
          return copyOnHost(host + offset + done, piece.memory, piece.bytes);
        return context.check(
            context.cu.cuMemcpyHtoDAsync(target.address() + offset + done,
                                         piece.memory, piece.bytes, stream),
            "cuMemcpyHtoDAsync");
      });
}

Status CudaStream::transfer(CudaBuffer &target,
                            std::span<const std::byte> source) {
  KF_RETURN_IF_ERROR(context.enter());
  KF_RETURN_IF_ERROR(uploadTo(target, 0, source));
  return doSynchronize(nullptr);
}

Status CudaStream::doUpload(Buffer &target, uint64_t offset,
                            std::span<const std::byte> source) {
  KF_RETURN_IF_ERROR(context.enter());
  if (isFailing())
    return {};
  return uploadTo(CudaBuffer::of(target), offset, source);
}

Status CudaStream::copyOnHost(std::byte *to, const std::byte *from,
                              uint64_t bytes) {
  while (!copies.empty() && copies.front()->isDone)
    copies.pop_front();
  copies.push_back(std::unique_ptr<HostCopy>(new HostCopy{from, to, bytes}));
  Status status =
      context.check(context.cu.cuLaunchHostFunc(
                        stream,
                        [](void *user) {
                          auto *copy = static_cast<HostCopy *>(user);
                          std::memcpy(copy->to, copy->from, copy->bytes);
                          copy->isDone = true;
                        },
                        copies.back().get()),
                    "cuLaunchHostFunc");
  if (!status)
    copies.pop_back();
  return status;
}

Status CudaStream::doDownload(Buffer &source, uint64_t offset,
                              std::span<std::byte> target) {
  KF_RETURN_IF_ERROR(context.enter());
  if (isFailing())
    return {};
  if (auto *from = static_cast<const std::byte *>(source.hostPointer()))
    return copyOnHost(target.data(), from + offset, target.size());
  const CUdeviceptr address = CudaBuffer::of(source).address() + offset;
  bool isIdle = false;
  if (target.size() <= mostAtOnce) {
    const CUresult state = context.cu.cuStreamQuery(stream);
    isIdle = state == CUDA_SUCCESS;
    if (state != CUDA_ERROR_NOT_READY)
      KF_RETURN_IF_ERROR(context.checkWait(state, "cuStreamQuery"));
  }
  return moveAll(
      target.size(),
      [&](const CudaStaging::Piece &piece, uint64_t done) -> Status {
        KF_RETURN_IF_ERROR(context.check(
            context.cu.cuMemcpyDtoHAsync(piece.memory, address + done,
                                         piece.bytes, stream),
            "cuMemcpyDtoHAsync"));
        if (!isIdle)
          return copyOnHost(target.data() + done, piece.memory, piece.bytes);
        KF_RETURN_IF_ERROR(context.checkWait(
            context.cu.cuStreamSynchronize(stream), "cuStreamSynchronize"));
        std::memcpy(target.data() + done, piece.memory, piece.bytes);
        return {};
      });
}

Status CudaStream::doCopy(Buffer &target, uint64_t targetOffset, Buffer &source,
                          uint64_t sourceOffset, uint64_t bytes) {
  KF_RETURN_IF_ERROR(context.enter());
  if (isFailing())
    return {};
  auto *to = static_cast<std::byte *>(target.hostPointer());
  auto *from = static_cast<const std::byte *>(source.hostPointer());
  if (to && from) // which the driver would wait for
    return copyOnHost(to + targetOffset, from + sourceOffset, bytes);
  return context.check(
      context.cu.cuMemcpyAsync(CudaBuffer::of(target).address() + targetOffset,
                               CudaBuffer::of(source).address() + sourceOffset,
                               bytes, stream),
      "cuMemcpyAsync");
}

Status CudaStream::doFill(Buffer &target, uint64_t offset, uint64_t bytes,
                          uint32_t pattern) {
  KF_RETURN_IF_ERROR(context.enter());
  if (isFailing())
    return {};
  return context.check(
      context.cu.cuMemsetD32Async(CudaBuffer::of(target).address() + offset,
                                  pattern, bytes / sizeof(pattern), stream),
      "cuMemsetD32Async");
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

CudaStream::TimedRun::~TimedRun() {
  for (CUevent event : events)
    (void)context.cu.cuEventDestroy(event);
}

Status CudaStream::TimedRun::read() const {
  const Executable &program = instance.program();
  DispatchTimes measured;
  uint64_t begin = 0;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    float milliseconds = 0;
    KF_RETURN_IF_ERROR(context.check(
        context.cu.cuEventElapsedTime(&milliseconds, events[i], events[i + 1]),
        "cuEventElapsedTime"));
    const uint64_t nanoseconds = static_cast<uint64_t>(milliseconds * 1e6);
    measured.push_back(
        {program.nameOf(program.dispatches[i]), nanoseconds, begin});
    begin += nanoseconds;
  }
  *times = std::move(measured);
  return {};
}

/// The scalars that the instance's kernels read from then on.
Status CudaStream::writeScalars(CudaInstance &instance,
                                std::span<const int64_t> scalars) {
  if (instance.hasScalars(scalars))
    return {};
  const std::span<const std::byte> bytes = std::as_bytes(scalars);
  KF_ASSIGN_OR_RETURN(CudaStaging::Piece piece, staging.take(bytes.size()));
  std::memcpy(piece.memory, bytes.data(), bytes.size());
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuMemcpyHtoDAsync(instance.scalarAddress(), piece.memory,
                                   bytes.size(), stream),
      "cuMemcpyHtoDAsync"));
  instance.setScalars(scalars);
  return {};
}

Status CudaStream::runTimed(CudaInstance &instance,
                            std::span<const int64_t> scalars,
                            DispatchTimes *times) {
  std::unique_ptr<TimedRun> run(new TimedRun{context, instance, times, {}});
  const size_t count = instance.program().dispatches.size();
  run->events.reserve(count + 1);
  timed.reserve(timed.size() + 1);
  for (size_t i = 0; i <= count; ++i) {
    CUevent event = nullptr;
    KF_RETURN_IF_ERROR(context.check(
        context.cu.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate"));
    run->events.push_back(event);
  }
  KF_RETURN_IF_ERROR(writeScalars(instance, scalars));
  bool hasBegun = false;
  Status status = instance.launchEach(stream, scalars, [&](size_t dispatch) {
    hasBegun |= dispatch > 0;
    return context.check(
        context.cu.cuEventRecord(run->events[dispatch], stream),
        "cuEventRecord");
  });
  if (status)
    timed.push_back(std::move(run));
  else if (hasBegun)
    failure = std::exchange(status, Status());
  return status;
}

Status CudaStream::doEnqueue(Instance &target, std::span<const int64_t> scalars,
                             const EnqueueOptions &options) {
  auto &instance = static_cast<CudaInstance &>(target);
  KF_RETURN_IF_ERROR(context.enter());
  NcclRank *const rank =
      instance.program().ranks > 1 ? context.rank() : nullptr;
  if (isFailing()) {
    if (rank) // which do not drop it
      rank->abort(failure);
    return {};
  }
  if (!rank)
    return run(instance, scalars, options.times);
  KF_RETURN_IF_ERROR(rank->groupFailure());
  KF_RETURN_IF_ERROR(run(instance, scalars, options.times));
  hasRankedRuns = true;
  if (!isFailing())
    failure = rank->watch(stream);
  if (isFailing())
    rank->abort(failure);
  return {};
}

Status CudaStream::run(CudaInstance &instance, std::span<const int64_t> scalars,
                       DispatchTimes *times) {
  if (times)
    return runTimed(instance, scalars, times);
  KF_ASSIGN_OR_RETURN(CUgraphExec graph, instance.graphFor(scalars));
  KF_RETURN_IF_ERROR(writeScalars(instance, scalars));
  if (!graph) // nothing to do with these sizes
    return {};
  return context.check(context.cu.cuGraphLaunch(graph, stream),
                       "cuGraphLaunch");
}
