//===- FakeNccl.h - Collectives of GPUs that are not there ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of NcclLibrary.h over a FakeCuda, for ranks that are threads of
// one process. Calls are in progress for a while; work of a collective cannot
// be run before that of all ranks is at the front of its stream, or its
// communicator is aborted. A collective that an aborted rank has joined is
// never done for the others; what that rank has sent is never received, and
// blocks what is behind it. Sums between windows are of one place in all ranks'
// windows. As in NCCL, the last rank to end its communicator waits until no
// graph has collectives of any.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICES_CUDA_FAKENCCL_H
#define KF_TEST_RUNTIME_DEVICES_CUDA_FAKENCCL_H

#include "FakeCuda.h"

#include "runtime/devices/Cuda/NcclLibrary.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace kf::test {

/// One at a time; outlives all that uses it. `cuda` outlives it.
class FakeNccl {
public:
  explicit FakeNccl(FakeCuda &cuda);
  ~FakeNccl(); ///< waits as waitForEnds() does
  FakeNccl(const FakeNccl &) = delete;
  FakeNccl &operator=(const FakeNccl &) = delete;

  const NcclFunctions &functions() const { return table; }

  int version = 22703;
  bool hasWindows = true;
  int windowSums = 0; ///< sums of all ranks from windows to windows
  std::string lastError;
  /// Asked before each call; any error is what the call returns then.
  std::function<ncclResult_t(const std::string &function)> answer;
  /// What calls that were in progress come to.
  ncclResult_t outcome = ncclSuccess;
  /// Calls of each function; under the FakeCuda's mutex.
  std::map<std::string, int> calls;
  /// Waits until no thread is ending a communicator, and, for a minute, until
  /// there is none: a rank that has waited for long leaves its own to a thread
  /// that goes on without it.
  void waitForEnds();
  /// Communicators that were not ended.
  size_t leftOver() const { return communicators.size(); }

private:
  friend struct FakeNcclCalls;
  /// One call of a collective on all ranks.
  struct Meeting {
    struct Part {
      std::string kind;
      const void *source = nullptr;
      void *target = nullptr;
      size_t count = 0;
      ncclDataType_t type = ncclFloat32;
      /// Of source and target in the window of its rank; empty: not in it.
      std::optional<std::pair<uint64_t, uint64_t>> places = {};
      std::shared_ptr<const bool> isAborted = nullptr; ///< its communicator
    };
    std::map<int, Part> parts; ///< by rank
    bool isOver = false;
  };
  /// What a rank sends to the one behind it.
  struct Message {
    const void *source = nullptr;
    size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    bool isTaken = false;
    std::shared_ptr<const bool> isAborted = nullptr; ///< its communicator
  };
  /// The communicators of all ranks.
  struct Clique {
    int ranks = 0, joined = 0, ended = 0;
    std::vector<uint64_t> begun; ///< [ranks] meetings
    std::map<uint64_t, Meeting> meetings;
    /// [ranks] that were not received yet, in their order
    std::vector<std::deque<std::shared_ptr<Message>>> sent;
    std::vector<std::weak_ptr<void>> references; ///< what graphs hold
  };
  struct Communicator {
    std::shared_ptr<Clique> clique;
    int rank = 0;
    int progress = 0; ///< polls until the last call is done
    std::byte *window = nullptr;
    size_t windowBytes = 0;
    std::shared_ptr<bool> isAborted = std::make_shared<bool>(false);
  };

  /// The communicator of a call that a graph records, which is at work then;
  /// null: it may not be called.
  Communicator *use(ncclComm_t handle, const std::string &kind,
                    CUstream stream);
  /// Whether a launch's part is over; asked again and again.
  using IsOver = std::function<bool()>;
  /// Gives the graph what `begin` begins at each launch.
  void enqueue(const Communicator &communicator, CUstream stream,
               std::function<IsOver()> begin);
  ncclResult_t collect(ncclComm_t handle, Meeting::Part part, CUstream stream);
  ncclResult_t send(ncclComm_t handle, Message message, int peer,
                    CUstream stream);
  ncclResult_t receive(ncclComm_t handle, void *target, const Message &message,
                       int peer, CUstream stream);
  void meet(Meeting &meeting);
  ncclResult_t end(ncclComm_t handle, bool aborts);

  FakeCuda &cuda;
  NcclFunctions table;
  uint64_t handles = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques; ///< by their ids
  std::map<ncclComm_t, Communicator> communicators;
  int ending = 0; ///< calls that are at it; under the FakeCuda's mutex
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_DEVICES_CUDA_FAKENCCL_H
