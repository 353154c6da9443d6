//===- NcclRank.cpp - A GPU that is one of several ranks ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/NcclRank.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

using namespace kf;

namespace {

/// How often work that nobody waits for is looked at.
constexpr std::chrono::milliseconds lookEvery(20);
/// How long work goes on when the group has ended: a rank that ends has done
/// its part of runs that others are at still.
constexpr std::chrono::milliseconds afterEnd(20);
/// How long a device's end waits for its communicator's, which is over at once
/// unless a GPU has failed or another rank of this process goes on.
constexpr std::chrono::seconds patience(5);

/// Of the window: what arenas of steps of 256 rows of large models need.
constexpr uint64_t windowBytes = uint64_t(32) << 20;
/// Bytes of sums that take less time in the window, up to the one and from the
/// other on: those between take more (docs/GPU.md).
constexpr uint64_t mostFewBytes = 32 << 10, leastManyBytes = 2 << 20;

ncclDataType_t ncclTypeOf(DataType type) {
  return type == DataType::F16    ? ncclFloat16
         : type == DataType::BF16 ? ncclBfloat16
                                  : ncclFloat32;
}

void *pointerTo(CUdeviceptr address) {
  return reinterpret_cast<void *>(address); // NOLINT(performance-no-int-to-ptr)
}

} // namespace

/// What the rank's thread and the keeper have in common. The keeper may be
/// there longer than the rank, but looks at its group no more then.
struct NcclRank::Shared {
  enum class Wish { GoOn, Destroy, Abort };

  CudaContext *context; ///< valid while Wish::GoOn
  Group *group;         ///< valid while Wish::GoOn
  CudaFunctions cu;
  NcclFunctions nccl;

  std::mutex guard; ///< of all that follows
  std::condition_variable changed;
  ncclComm_t communicator = nullptr;
  ncclWindow_t window = nullptr; ///< of `communicator`; null: none
  CUevent last = nullptr;        ///< behind the last run
  bool isRecorded = false;
  /// When the group's end was seen.
  std::optional<std::chrono::steady_clock::time_point> endSeen;
  Wish wish = Wish::GoOn;
  bool isOver = false; ///< the keeper has done as it should

  // All of these under `guard`.

  /// What the last call has come to; ncclInProgress: it is not done yet.
  ncclResult_t state() const {
    ncclResult_t result = ncclSuccess;
    const ncclResult_t asked =
        nccl.ncclCommGetAsyncError(communicator, &result);
    return asked == ncclSuccess ? result : asked;
  }

  /// Tells the group of what NCCL has found out.
  void checkState() {
    const ncclResult_t result = state();
    if (result != ncclSuccess && result != ncclInProgress)
      group->abort(ncclStatus(nccl, result, "NCCL").message());
  }

  /// Whether what is not done by now is to be given up.
  bool isLate() {
    if (wish != Wish::GoOn)
      return true;
    if (group->failure().ok())
      return false;
    const auto now = std::chrono::steady_clock::now();
    return now - endSeen.emplace(endSeen.value_or(now)) >= afterEnd;
  }

  /// Has the keeper abort the communicator: kernels that wait for other ranks
  /// end.
  void giveUp() {
    if (wish == Wish::GoOn)
      wish = Wish::Abort;
    changed.notify_all();
  }

  /// Tells the group of work that has failed, and gives up what nobody waits
  /// for.
  void look() {
    const CUresult run = isRecorded ? cu.cuEventQuery(last) : CUDA_SUCCESS;
    if (!group->failure().ok()) {
      if (isLate() && run == CUDA_ERROR_NOT_READY)
        giveUp();
      return;
    }
    if (run != CUDA_SUCCESS && run != CUDA_ERROR_NOT_READY)
      group->abort(cudaStatus(cu, run, "a run").message());
    else if (communicator)
      checkState();
  }
};

NcclRank::NcclRank(CudaContext &context, Group &group,
                   const NcclFunctions &nccl)
    : context(context), group(group), nccl(nccl),
      shared(std::make_shared<Shared>()) {
  shared->context = &context;
  shared->group = &group;
  shared->cu = context.cu;
  shared->nccl = nccl;
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<NcclRank>> NcclRank::join(CudaContext &context,
                                                 Group &group,
                                                 const NcclFunctions *library) {
  KF_ASSIGN_OR_RETURN(const NcclFunctions nccl, startNccl(library));
  KF_RETURN_IF_ERROR(context.enter());
  std::unique_ptr<NcclRank> self(new NcclRank(context, group, nccl));
  KF_RETURN_IF_ERROR(self->begin());
  context.setRank(self.get());
  return self;
}

Status NcclRank::begin() {
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuStreamCreate(&recording, CU_STREAM_NON_BLOCKING),
      "cuStreamCreate"));
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuEventCreate(&shared->last, CU_EVENT_DISABLE_TIMING),
      "cuEventCreate"));
  try {
    keeper = std::thread(keep, shared);
  } catch (const std::system_error &error) {
    return Status::error(std::string("cannot start a thread: ") + error.what(),
                         StatusCode::Unavailable);
  }
  // The first rank's is that of all.
  ncclUniqueId id;
  if (group.rank() == 0)
    KF_RETURN_IF_ERROR(
        ncclStatus(nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId"));
  std::vector<ncclUniqueId> all(static_cast<size_t>(group.size()));
  KF_RETURN_IF_ERROR(group.allGather(&id, all.data(), sizeof(id)));
  ncclConfig_t config;
  config.blocking = 0;
  KF_RETURN_IF_ERROR(
      call("ncclCommInitRankConfig", [&](ncclComm_t &communicator) {
        return nccl.ncclCommInitRankConfig(
            &communicator, static_cast<int>(group.size()), all.front(),
            static_cast<int>(group.rank()), &config);
      }));
  return openWindow();
}

/// On all ranks or on none: where one has no memory for it, or NCCL no way from
/// GPU to GPU, sums go without.
Status NcclRank::openWindow() {
  if (nccl.ncclMemAlloc(&windowMemory, windowBytes) != ncclSuccess)
    windowMemory = nullptr;
  const char own = windowMemory != nullptr;
  std::vector<char> all(static_cast<size_t>(group.size()));
  Status status = group.allGather(&own, all.data(), sizeof(own));
  if (status && std::ranges::find(all, 0) == all.end())
    status = call("ncclCommWindowRegister", [&](ncclComm_t communicator) {
      return nccl.ncclCommWindowRegister(communicator, windowMemory,
                                         windowBytes, &shared->window,
                                         NCCL_WIN_COLL_SYMMETRIC);
    });
  if (status && !shared->window && windowMemory)
    (void)nccl.ncclMemFree(std::exchange(windowMemory, nullptr));
  return status;
}

/// A thread's whole life: looks at the rank's work, then ends its communicator.
void NcclRank::keep(const std::shared_ptr<Shared> &shared) {
  (void)shared->context->enterThread();
  std::unique_lock<std::mutex> lock(shared->guard);
  while (shared->wish == Shared::Wish::GoOn) {
    shared->changed.wait_for(lock, lookEvery);
    if (shared->wish == Shared::Wish::GoOn)
      (void)catchExceptions([&] {
        shared->look();
        return Status();
      });
  }
  const bool aborts = shared->wish == Shared::Wish::Abort;
  const ncclComm_t ended = std::exchange(shared->communicator, nullptr);
  const ncclWindow_t window = std::exchange(shared->window, nullptr);
  lock.unlock();
  if (ended && window && !aborts)
    (void)shared->nccl.ncclCommWindowDeregister(ended, window);
  if (ended)
    (void)(aborts ? shared->nccl.ncclCommAbort(ended)
                  : shared->nccl.ncclCommDestroy(ended));
  lock.lock();
  shared->isOver = true;
  shared->changed.notify_all();
}

NcclRank::~NcclRank() {
  if (context.rank() == this)
    context.setRank(nullptr);
  largest.reset();
  if (keeper.joinable()) {
    std::unique_lock<std::mutex> lock(shared->guard);
    if (shared->wish == Shared::Wish::GoOn)
      shared->wish =
          group.failure().ok() ? Shared::Wish::Destroy : Shared::Wish::Abort;
    shared->changed.notify_all();
    const bool isOver = shared->changed.wait_for(
        lock, patience, [&] { return shared->isOver; });
    lock.unlock();
    if (isOver) {
      keeper.join();
    } else {
      keeper.detach();
      windowMemory = nullptr; // the communicator's, as long as there is one
    }
  }
  (void)context.enter();
  if (windowMemory)
    (void)nccl.ncclMemFree(windowMemory);
  if (shared->last)
    (void)context.cu.cuEventDestroy(shared->last);
  if (recording)
    (void)context.cu.cuStreamDestroy(recording);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Status NcclRank::call(const char *what, const auto &function) {
  ncclResult_t result = ncclSuccess;
  {
    std::lock_guard<std::mutex> lock(shared->guard);
    if (shared->wish != Shared::Wish::GoOn)
      return group.failure();
    result = function(shared->communicator);
    // Registering a window says that it is done while it is not.
    if (result == ncclSuccess)
      result = shared->state();
  }
  while (result == ncclInProgress) {
    std::this_thread::yield();
    std::unique_lock<std::mutex> lock(shared->guard);
    if (shared->isLate()) {
      shared->giveUp();
      // A thread of NCCL's may be at the call still.
      shared->changed.wait_for(lock, lookEvery, [&] { return shared->isOver; });
      return group.failure();
    }
    result = shared->state();
  }
  if (result == ncclSuccess)
    return {};
  Status status = ncclStatus(nccl, result, what);
  abort(status);
  std::lock_guard<std::mutex> lock(shared->guard);
  shared->giveUp();
  return status;
}

Status NcclRank::watch(CUstream stream) {
  std::lock_guard<std::mutex> lock(shared->guard);
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuEventRecord(shared->last, stream), "cuEventRecord"));
  shared->isRecorded = true;
  return {};
}

void NcclRank::poll() {
  std::lock_guard<std::mutex> lock(shared->guard);
  if (shared->wish != Shared::Wish::GoOn)
    return;
  shared->checkState();
  if (shared->isLate())
    shared->giveUp();
}

Status NcclRank::failure() const {
  std::lock_guard<std::mutex> lock(shared->guard);
  return shared->wish == Shared::Wish::GoOn ? Status() : group.failure();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

CUdeviceptr NcclRank::windowFor(const Executable &executable) const {
  const auto sizes = executable.largestSizes();
  uint64_t most = 0;
  for (const DispatchSpec &dispatch : executable.dispatches) {
    const auto &collective = dispatch.collective;
    if (!collective || collective->kind != CollectiveSpec::Kind::AllReduce)
      continue;
    const int64_t rows =
        resolveShape(std::array{collective->rows}, sizes).front();
    most = std::max(most, static_cast<uint64_t>(rows * collective->columns) *
                              sizeOf(collective->type));
  }
  const bool gains =
      most > 0 && (most <= mostFewBytes || most >= leastManyBytes);
  return windowMemory && gains && executable.arenaBytes <= windowBytes
             ? reinterpret_cast<CUdeviceptr>(windowMemory)
             : 0;
}

/// Whether what NCCL gathers, one rank's rows after another's, is the result.
static bool isInPlace(const CollectiveSpec &collective, uint64_t rows,
                      int64_t ranks) {
  return rows == 1 && collective.resultColumns == ranks * collective.columns;
}

uint64_t NcclRank::scratchBytes(const CollectiveSpec &collective,
                                uint64_t rows) const {
  if (collective.kind != CollectiveSpec::Kind::AllGather ||
      isInPlace(collective, rows, group.size()))
    return 0;
  return static_cast<uint64_t>(group.size() * collective.columns) * rows *
         sizeOf(collective.type);
}

Result<std::shared_ptr<CudaBuffer>> NcclRank::scratch(uint64_t bytes) {
  if (!largest || largest->size() < bytes) {
    KF_ASSIGN_OR_RETURN(const CudaMemory memory,
                        context.allocate(bytes, MemoryKind::Device));
    largest = std::make_shared<CudaBuffer>(context, memory, bytes);
  }
  return largest;
}

Status NcclRank::enqueue(const CollectiveSpec &collective, uint64_t rows,
                         CUdeviceptr source, CUdeviceptr target,
                         CUdeviceptr scratch, CUstream stream) {
  const uint64_t columns = static_cast<uint64_t>(collective.columns);
  const ncclDataType_t type = ncclTypeOf(collective.type);
  if (collective.kind == CollectiveSpec::Kind::AllReduce)
    return call("ncclAllReduce", [&](ncclComm_t communicator) {
      return nccl.ncclAllReduce(pointerTo(source), pointerTo(target),
                                rows * columns, type, ncclSum, communicator,
                                stream);
    });
  if (collective.kind == CollectiveSpec::Kind::Send)
    return call("ncclSend", [&](ncclComm_t communicator) {
      return nccl.ncclSend(pointerTo(source), rows * columns, type,
                           static_cast<int>(group.next()), communicator,
                           stream);
    });
  if (collective.kind == CollectiveSpec::Kind::Receive)
    return call("ncclRecv", [&](ncclComm_t communicator) {
      return nccl.ncclRecv(pointerTo(target), rows * columns, type,
                           static_cast<int>(group.previous()), communicator,
                           stream);
    });
  const bool direct = isInPlace(collective, rows, group.size());
  KF_RETURN_IF_ERROR(call("ncclAllGather", [&](ncclComm_t communicator) {
    return nccl.ncclAllGather(pointerTo(source),
                              pointerTo(direct ? target : scratch),
                              rows * columns, type, communicator, stream);
  }));
  if (direct)
    return {};
  // Rows of each rank, one rank after the other, become columns.
  const uint64_t rowBytes = columns * sizeOf(collective.type);
  const uint64_t resultBytes =
      static_cast<uint64_t>(collective.resultColumns) * sizeOf(collective.type);
  if (rows == 1)
    return context.check(
        context.cu.cuMemcpyAsync(target, scratch, resultBytes, stream),
        "cuMemcpyAsync");
  for (uint64_t rank = 0; rank < static_cast<uint64_t>(group.size()); ++rank) {
    CUDA_MEMCPY2D copy;
    copy.srcDevice = scratch + rank * rows * rowBytes;
    copy.srcPitch = rowBytes;
    copy.dstDevice = target + rank * rowBytes;
    copy.dstPitch = resultBytes;
    copy.WidthInBytes = std::min(rowBytes, resultBytes - rank * rowBytes);
    copy.Height = rows;
    KF_RETURN_IF_ERROR(context.check(context.cu.cuMemcpy2DAsync(&copy, stream),
                                     "cuMemcpy2DAsync"));
  }
  return {};
}
