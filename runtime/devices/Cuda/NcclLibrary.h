//===- NcclLibrary.h - Functions of NVIDIA's NCCL ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the CUDA device uses of NCCL, under the API's own names. As the driver,
// the library is opened at run time, and no header of it is needed to build:
// functions, numbers and the configuration's layout are those of NCCL's public
// API documentation (docs.nvidia.com/deeplearning/nccl, release 2.27), see
// docs/decisions/nccl.md. A test may put a table of its own in the place of the
// library's.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_NCCLLIBRARY_H
#define KF_RUNTIME_DEVICES_CUDA_NCCLLIBRARY_H

#include "runtime/devices/Cuda/CudaDriver.h"

#include <climits>

namespace kf {

using ncclComm_t = struct ncclComm *;
using ncclWindow_t = struct ncclWindow *;

/// Those that are told apart; the library has more.
enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclSystemError = 2,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};

enum ncclDataType_t : int {
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclBfloat16 = 9
};

enum ncclRedOp_t : int { ncclSum = 0 };

/// Flags of a window: at its place on all ranks is what kernels may reach.
constexpr int NCCL_WIN_COLL_SYMMETRIC = 1;

/// What ranks that become one communicator have in common.
struct ncclUniqueId {
  char internal[128] = {};
};

/// As of release 2.27; later ones take it by `size` and `version`.
struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = 22700;
  int blocking = INT_MIN; ///< INT_MIN, as null: the library's default
  int cgaClusterSize = INT_MIN, minCTAs = INT_MIN, maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN, trafficClass = INT_MIN;
  const char *commName = nullptr;
  int collnetEnable = INT_MIN, CTAPolicy = INT_MIN, shrinkShare = INT_MIN,
      nvlsCTAs = INT_MIN;
};
static_assert(sizeof(ncclConfig_t) == 72, "what the library reads");

// X(name, result, parameters)
#define KF_NCCL_FUNCTIONS(X)                                                   \
  X(ncclGetVersion, ncclResult_t, (int *))                                     \
  X(ncclGetErrorString, const char *, (ncclResult_t))                          \
  X(ncclGetLastError, const char *, (ncclComm_t))                              \
  X(ncclGetUniqueId, ncclResult_t, (ncclUniqueId *))                           \
  X(ncclCommInitRankConfig, ncclResult_t,                                      \
    (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *))                    \
  X(ncclCommGetAsyncError, ncclResult_t, (ncclComm_t, ncclResult_t *))         \
  X(ncclCommDestroy, ncclResult_t, (ncclComm_t))                               \
  X(ncclCommAbort, ncclResult_t, (ncclComm_t))                                 \
  X(ncclMemAlloc, ncclResult_t, (void **, size_t))                             \
  X(ncclMemFree, ncclResult_t, (void *))                                       \
  X(ncclCommWindowRegister, ncclResult_t,                                      \
    (ncclComm_t, void *, size_t, ncclWindow_t *, int))                         \
  X(ncclCommWindowDeregister, ncclResult_t, (ncclComm_t, ncclWindow_t))        \
  X(ncclAllReduce, ncclResult_t,                                               \
    (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,    \
     CUstream))                                                                \
  X(ncclAllGather, ncclResult_t,                                               \
    (const void *, void *, size_t, ncclDataType_t, ncclComm_t, CUstream))      \
  X(ncclSend, ncclResult_t,                                                    \
    (const void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream))         \
  X(ncclRecv, ncclResult_t,                                                    \
    (void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream))

#define KF_DECLARE_NCCL_FUNCTION(name, result, parameters)                     \
  result(*name) parameters = nullptr;
struct NcclFunctions {
  KF_NCCL_FUNCTIONS(KF_DECLARE_NCCL_FUNCTION)
};
#undef KF_DECLARE_NCCL_FUNCTION

/// The release below which several GPUs do not work: 2.27, whose configuration
/// is declared here.
constexpr int leastNcclVersion = 22700;

/// Opens libnccl.so.2, once for the process, after setting what it reads from
/// the environment and the user has not set. Threads: any, but the first call
/// sets variables, which no other thread may read meanwhile. Errors: those of
/// ncclNotLoaded(), one that lacks functions.
Result<NcclFunctions> loadNcclFunctions();

/// What is wrong where the dynamic linker says `reason` of libnccl.so.2: "no
/// NCCL" if it is not there, else that it does not load and why.
Status ncclNotLoaded(const std::string &reason);

/// The functions, those of the machine's library where `library` is null.
/// Errors: loadNcclFunctions()'s, a library that is too old.
Result<NcclFunctions> startNccl(const NcclFunctions *library);

/// `what: the library's text, what it says of the last error` unless `result`
/// is ncclSuccess.
Status ncclStatus(const NcclFunctions &nccl, ncclResult_t result,
                  const char *what);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_NCCLLIBRARY_H
