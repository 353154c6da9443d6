//===- FakeNccl.cpp - Collectives of GPUs that are not there --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"

#include "runtime/core/Tensor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

FakeNccl *theFake = nullptr;

/// How often an end is looked for, once in a millisecond or less.
constexpr int mostLooks = 60000;

DataType typeOf(ncclDataType_t type) {
  return type == ncclFloat16    ? DataType::F16
         : type == ncclBfloat16 ? DataType::BF16
                                : DataType::F32;
}

} // namespace

/// NCCL's functions, by their names.
struct kf::test::FakeNcclCalls {
  /// Counts a call, and says what it returns without being made.
  struct Call {
    explicit Call(const char *name) : lock(theFake->cuda.mutex) {
      ++theFake->calls[name];
      if (theFake->answer)
        result = theFake->answer(name);
    }
    std::lock_guard<std::recursive_mutex> lock;
    ncclResult_t result = ncclSuccess;
  };
#define KF_CALL(name)                                                          \
  Call call(name);                                                             \
  FakeNccl &self = *theFake;                                                   \
  if (call.result != ncclSuccess)                                              \
    return call.result;                                                        \
  (void)self

  static ncclResult_t ncclGetVersion(int *version) {
    KF_CALL("ncclGetVersion");
    *version = self.version;
    return ncclSuccess;
  }
  static const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSystemError    ? "unhandled system error"
           : result == ncclRemoteError  ? "remote process exited"
           : result == ncclInvalidUsage ? "invalid usage"
                                        : "internal error";
  }
  static const char *ncclGetLastError(ncclComm_t) {
    return theFake->lastError.c_str();
  }
  static ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    KF_CALL("ncclGetUniqueId");
    std::snprintf(id->internal, sizeof(id->internal), "clique %d",
                  static_cast<int>(++self.handles));
    return ncclSuccess;
  }
  static ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator,
                                             int ranks, ncclUniqueId id,
                                             int rank, ncclConfig_t *config) {
    KF_CALL("ncclCommInitRankConfig");
    if (config->size != 72 || config->magic != 0xcafebeef ||
        config->blocking != 0)
      return ncclInvalidArgument;
    std::shared_ptr<FakeNccl::Clique> &clique = self.cliques[id.internal];
    if (!clique) {
      clique = std::make_shared<FakeNccl::Clique>();
      clique->ranks = ranks;
      clique->begun.resize(static_cast<size_t>(ranks));
      clique->sent.resize(static_cast<size_t>(ranks));
    }
    ++clique->joined;
    *communicator =
        reinterpret_cast<ncclComm_t>(uintptr_t(0x20000 + 16 * ++self.handles));
    FakeNccl::Communicator &made = self.communicators[*communicator];
    made.clique = clique;
    made.rank = rank;
    made.progress = 2;
    return ncclInProgress;
  }
  static ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator,
                                            ncclResult_t *result) {
    KF_CALL("ncclCommGetAsyncError");
    auto found = self.communicators.find(communicator);
    if (found == self.communicators.end()) {
      self.cuda.violate("asked a communicator that has ended");
      return ncclInvalidArgument;
    }
    const bool isWhole =
        found->second.clique->joined == found->second.clique->ranks;
    if (!isWhole || found->second.progress > 0) {
      found->second.progress -= isWhole;
      *result = ncclInProgress;
    } else {
      *result = self.outcome;
    }
    return ncclSuccess;
  }
  static ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
    KF_CALL("ncclMemAlloc");
    CUdeviceptr address = 0;
    if (self.cuda.functions().cuMemAlloc(&address, bytes) != CUDA_SUCCESS)
      return ncclSystemError;
    *memory = reinterpret_cast<void *>(address);
    return ncclSuccess;
  }
  static ncclResult_t ncclMemFree(void *memory) {
    Call("ncclMemFree");
    FakeNccl &self = *theFake;
    std::lock_guard<std::recursive_mutex> lock(self.cuda.mutex);
    for (const auto &[handle, each] : self.communicators)
      if (each.window == memory)
        self.cuda.violate("freed the memory of a window");
    (void)self.cuda.functions().cuMemFree(
        reinterpret_cast<CUdeviceptr>(memory));
    return ncclSuccess;
  }
  static ncclResult_t ncclCommWindowRegister(ncclComm_t communicator,
                                             void *memory, size_t bytes,
                                             ncclWindow_t *window, int flags) {
    KF_CALL("ncclCommWindowRegister");
    *window = nullptr;
    if (!self.hasWindows)
      return ncclSuccess;
    if (flags != NCCL_WIN_COLL_SYMMETRIC)
      return ncclInvalidArgument;
    FakeNccl::Communicator &registered = self.communicators.at(communicator);
    registered.window = static_cast<std::byte *>(memory);
    registered.windowBytes = bytes;
    registered.progress = 2;
    *window = reinterpret_cast<ncclWindow_t>(
        uintptr_t(0x40000 + 16 * ++self.handles));
    return ncclSuccess; // as NCCL says, which is at work still
  }
  static ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator,
                                               ncclWindow_t window) {
    KF_CALL("ncclCommWindowDeregister");
    FakeNccl::Communicator &registered = self.communicators.at(communicator);
    if (!registered.window || !window)
      self.cuda.violate("took a window back that is none");
    registered.window = nullptr;
    return ncclSuccess;
  }
  static ncclResult_t ncclAllReduce(const void *source, void *target,
                                    size_t count, ncclDataType_t type,
                                    ncclRedOp_t op, ncclComm_t communicator,
                                    CUstream stream) {
    KF_CALL("ncclAllReduce");
    if (op != ncclSum)
      return ncclInvalidArgument;
    return self.collect(communicator,
                        {"all_reduce", source, target, count, type}, stream);
  }
  static ncclResult_t ncclAllGather(const void *source, void *target,
                                    size_t count, ncclDataType_t type,
                                    ncclComm_t communicator, CUstream stream) {
    KF_CALL("ncclAllGather");
    return self.collect(communicator,
                        {"all_gather", source, target, count, type}, stream);
  }
  static ncclResult_t ncclSend(const void *source, size_t count,
                               ncclDataType_t type, int peer,
                               ncclComm_t communicator, CUstream stream) {
    KF_CALL("ncclSend");
    return self.send(communicator, {source, count, type}, peer, stream);
  }
  static ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type,
                               int peer, ncclComm_t communicator,
                               CUstream stream) {
    KF_CALL("ncclRecv");
    return self.receive(communicator, target, {nullptr, count, type}, peer,
                        stream);
  }
  // These end a communicator in any case, so that tests can tell what was
  // forgotten from what could not be ended.
  static ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    Call("ncclCommDestroy");
    return theFake->end(communicator, /*aborts=*/false);
  }
  static ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    Call("ncclCommAbort");
    return theFake->end(communicator, /*aborts=*/true);
  }
#undef KF_CALL
};

FakeNccl::FakeNccl(FakeCuda &cuda) : cuda(cuda) {
  theFake = this;
#define KF_SET(name, result, parameters) table.name = FakeNcclCalls::name;
  KF_NCCL_FUNCTIONS(KF_SET)
#undef KF_SET
}

FakeNccl::~FakeNccl() {
  waitForEnds();
  theFake = nullptr;
}

void FakeNccl::waitForEnds() {
  for (int looks = 0;; ++looks) {
    {
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      if (ending == 0 && (communicators.empty() || looks >= mostLooks))
        return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

FakeNccl::Communicator *
FakeNccl::use(ncclComm_t handle, const std::string &kind, CUstream stream) {
  auto found = communicators.find(handle);
  if (found == communicators.end() || found->second.progress > 0) {
    cuda.violate(kind + " of a communicator that is not ready");
    return nullptr;
  }
  // All ranks do the same, and what is done is captured.
  if (!cuda.isCapturing(stream)) {
    cuda.violate(kind + " outside of a graph");
    return nullptr;
  }
  cuda.beginsEarly(stream);
  found->second.progress = 1;
  return &found->second;
}

void FakeNccl::enqueue(const Communicator &communicator, CUstream stream,
                       std::function<IsOver()> begin) {
  const auto reference = std::make_shared<int>();
  communicator.clique->references.push_back(reference);
  cuda.retain(stream, reference);
  cuda.enqueue(stream,
               [begin = std::move(begin), isAborted = communicator.isAborted] {
                 return FakeCuda::Work{nullptr, [isAborted, isOver = begin()] {
                                         return *isAborted || isOver();
                                       }};
               });
  cuda.isKernel(stream);
}

ncclResult_t FakeNccl::collect(ncclComm_t handle, Meeting::Part part,
                               CUstream stream) {
  const Communicator *const communicator = use(handle, part.kind, stream);
  if (!communicator)
    return ncclInvalidUsage;
  auto placeOf = [&](const void *address) {
    const auto *first = static_cast<const std::byte *>(address);
    const uint64_t bytes = part.count * sizeOf(typeOf(part.type));
    const bool isInside =
        communicator->window && first >= communicator->window &&
        first + bytes <= communicator->window + communicator->windowBytes;
    return isInside ? static_cast<uint64_t>(first - communicator->window)
                    : UINT64_MAX;
  };
  if (std::pair places = {placeOf(part.source), placeOf(part.target)};
      places.first != UINT64_MAX && places.second != UINT64_MAX)
    part.places = places;
  part.isAborted = communicator->isAborted;
  enqueue(*communicator, stream,
          [this, clique = communicator->clique, part,
           rank = communicator->rank]() -> IsOver {
            auto number = std::make_shared<uint64_t>(0); // 0: not at the front
            return [=, this] {
              if (*number == 0) {
                *number = ++clique->begun[static_cast<size_t>(rank)];
                Meeting &meeting = clique->meetings[*number];
                meeting.parts[rank] = part;
                // What was aborted takes no part, and its memory may be gone.
                if (meeting.parts.size() ==
                        static_cast<size_t>(clique->ranks) &&
                    std::ranges::none_of(meeting.parts, [](const auto &each) {
                      return *each.second.isAborted;
                    }))
                  meet(meeting);
              }
              return clique->meetings[*number].isOver;
            };
          });
  return ncclInProgress;
}

ncclResult_t FakeNccl::send(ncclComm_t handle, Message message, int peer,
                            CUstream stream) {
  const Communicator *const communicator = use(handle, "send", stream);
  if (!communicator)
    return ncclInvalidUsage;
  const std::shared_ptr<Clique> clique = communicator->clique;
  const int rank = communicator->rank;
  if (peer != (rank + 1) % clique->ranks)
    cuda.violate("sends to another rank than the next one");
  message.isAborted = communicator->isAborted;
  enqueue(*communicator, stream, [clique, message, rank]() -> IsOver {
    auto sent = std::make_shared<std::shared_ptr<Message>>();
    return [=] {
      if (!*sent) {
        *sent = std::make_shared<Message>(message);
        clique->sent[static_cast<size_t>(rank)].push_back(*sent);
      }
      return (*sent)->isTaken;
    };
  });
  return ncclInProgress;
}

ncclResult_t FakeNccl::receive(ncclComm_t handle, void *target,
                               const Message &message, int peer,
                               CUstream stream) {
  const Communicator *const communicator = use(handle, "receive", stream);
  if (!communicator)
    return ncclInvalidUsage;
  const std::shared_ptr<Clique> clique = communicator->clique;
  if ((peer + 1) % clique->ranks != communicator->rank)
    cuda.violate("receives from another rank than the one before");
  enqueue(*communicator, stream,
          [this, clique, message, target, peer]() -> IsOver {
            auto isOver = std::make_shared<bool>(false);
            return [=, this] {
              auto &sent = clique->sent[static_cast<size_t>(peer)];
              if (*isOver || sent.empty() || *sent.front()->isAborted)
                return *isOver;
              Message &found = *sent.front();
              if (found.count != message.count || found.type != message.type)
                cuda.violate("receives something else than was sent");
              const uint64_t bytes = found.count * sizeOf(typeOf(found.type));
              std::memcpy(cuda.memoryAt(target, bytes, "what is received"),
                          cuda.memoryAt(found.source, bytes, "what is sent"),
                          bytes);
              found.isTaken = true;
              sent.pop_front();
              return *isOver = true;
            };
          });
  return ncclInProgress;
}

void FakeNccl::meet(Meeting &meeting) {
  meeting.isOver = true;
  const Meeting::Part &first = meeting.parts.begin()->second;
  windowSums += first.kind == "all_reduce" && first.places;
  const uint64_t bytes = first.count * sizeOf(typeOf(first.type));
  std::vector<float> sum(first.count), addend(first.count);
  std::vector<std::byte> gathered;
  for (const auto &[rank, part] : meeting.parts) {
    if (part.kind != first.kind || part.count != first.count ||
        part.type != first.type || part.places != first.places)
      cuda.violate("ranks whose collectives differ");
    const std::byte *source =
        cuda.memoryAt(part.source, bytes, part.kind.data());
    gathered.insert(gathered.end(), source, source + bytes);
    (void)convertToFloat(typeOf(part.type), source,
                         static_cast<int64_t>(part.count), addend.data());
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += addend[i];
  }
  for (const auto &[rank, part] : meeting.parts) {
    if (part.kind == "all_gather")
      std::ranges::copy(
          gathered, cuda.memoryAt(part.target, gathered.size(), "a gather"));
    else
      (void)convertFromFloat(typeOf(part.type), sum.data(),
                             static_cast<int64_t>(part.count),
                             cuda.memoryAt(part.target, bytes, "a sum"));
  }
}

ncclResult_t FakeNccl::end(ncclComm_t handle, bool aborts) {
  std::shared_ptr<Clique> clique;
  bool isLast = false;
  {
    std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
    auto found = communicators.find(handle);
    if (found == communicators.end()) {
      cuda.violate("ended a communicator twice");
      return ncclInvalidArgument;
    }
    *found->second.isAborted = aborts;
    if (!aborts && found->second.progress > 0)
      cuda.violate("destroyed a communicator that is at work");
    clique = found->second.clique;
    communicators.erase(found);
    isLast = ++clique->ended == clique->ranks;
    ++ending;
  }
  for (int looks = 0;; ++looks) {
    {
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      const bool isOver =
          !isLast ||
          std::ranges::all_of(clique->references,
                              [](const auto &each) { return each.expired(); });
      if (!isOver && looks == mostLooks)
        cuda.violate("a communicator that waits for graphs for ever");
      if (isOver || looks == mostLooks) {
        --ending;
        return ncclSuccess;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
