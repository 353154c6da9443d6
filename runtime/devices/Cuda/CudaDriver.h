//===- CudaDriver.h - Functions of NVIDIA's driver --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the CUDA device uses of the driver API, under the API's own names. The
// library is opened at run time, and no header of NVIDIA's is needed to build:
// types are declared here as far as a binary interface says (see
// docs/decisions/cuda-driver.md). A test may put a table of its own in the
// place of the library's.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDADRIVER_H
#define KF_RUNTIME_DEVICES_CUDA_CUDADRIVER_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace kf {

using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphNode = struct CUgraphNode_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUmemoryPool = struct CUmemPoolHandle_st *;
using CUhostFn = void (*)(void *user);

/// Those that are told apart; the driver has more.
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_CONTAINED = 226,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_EXTERNAL_DEVICE = 911,
  CUDA_ERROR_UNKNOWN = 999
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2, ///< y and z follow
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,  ///< y and z follow
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1, ///< static
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9 ///< percent
};

enum CUjit_option : int {
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

enum CUmemPool_attribute : int {
  CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
  CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
  CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7
};

enum : int {
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  CU_MEM_HANDLE_TYPE_NONE = 0, ///< no other process gets it
  CU_MEM_LOCATION_TYPE_DEVICE = 1
};

/// Where the memory of a pool is.
struct CUmemPoolProps {
  int allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  int handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  struct {
    int type = CU_MEM_LOCATION_TYPE_DEVICE;
    int id = 0; ///< the device
  } location;
  void *win32SecurityAttributes = nullptr;
  size_t maxSize = 0; ///< the system's limit
  unsigned char reserved[56] = {};
};
static_assert(sizeof(CUmemPoolProps) == 88, "what the driver reads");

enum : unsigned {
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_MEMHOSTALLOC_PORTABLE = 1,
  CU_MEMHOSTALLOC_DEVICEMAP = 2
};

enum CUstreamCaptureMode : int {
  /// Whatever threads do meanwhile is none of the capture's business.
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
};
enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1
};
enum : unsigned { CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1 };

enum CUmemorytype : int { CU_MEMORYTYPE_DEVICE = 2 };

/// A copy of `Height` rows of `WidthInBytes` bytes each.
struct CUDA_MEMCPY2D {
  size_t srcXInBytes = 0, srcY = 0;
  CUmemorytype srcMemoryType = CU_MEMORYTYPE_DEVICE;
  const void *srcHost = nullptr;
  CUdeviceptr srcDevice = 0;
  void *srcArray = nullptr;
  size_t srcPitch = 0; ///< bytes from row to row
  size_t dstXInBytes = 0, dstY = 0;
  CUmemorytype dstMemoryType = CU_MEMORYTYPE_DEVICE;
  void *dstHost = nullptr;
  CUdeviceptr dstDevice = 0;
  void *dstArray = nullptr;
  size_t dstPitch = 0;
  size_t WidthInBytes = 0, Height = 0;
};
static_assert(sizeof(CUDA_MEMCPY2D) == 128, "what the driver reads");

/// When the node behind an edge may begin.
struct CUgraphEdgeData {
  unsigned char from_port = 0; ///< CU_GRAPH_KERNEL_NODE_PORT_...
  unsigned char to_port = 0;
  unsigned char type = 0; ///< CU_GRAPH_DEPENDENCY_TYPE_...
  unsigned char reserved[5] = {};
};
enum : unsigned char {
  CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1,
  CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1
};

/// The form of CUDA 12 and later.
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func = nullptr;
  unsigned gridDimX = 0, gridDimY = 0, gridDimZ = 0;
  unsigned blockDimX = 0, blockDimY = 0, blockDimZ = 0;
  unsigned sharedMemBytes = 0;
  void **kernelParams = nullptr;
  void **extra = nullptr;
  void *kern = nullptr; ///< only where `func` is null
  CUcontext ctx = nullptr;
};

// X(name, symbol in the library, parameters)
#define KF_CUDA_FUNCTIONS(X)                                                   \
  X(cuInit, "cuInit", (unsigned))                                              \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *))                         \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))               \
  X(cuGetErrorString, "cuGetErrorString", (CUresult, const char **))           \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                             \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int))                             \
  X(cuDeviceGetName, "cuDeviceGetName", (char *, int, CUdevice))               \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute",                              \
    (int *, CUdevice_attribute, CUdevice))                                     \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, CUdevice))             \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                      \
    (CUcontext *, CUdevice))                                                   \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))     \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                           \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                     \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                      \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                  \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                        \
    (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                           \
  X(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr, CUstream))                 \
  X(cuMemPoolCreate, "cuMemPoolCreate",                                        \
    (CUmemoryPool *, const CUmemPoolProps *))                                  \
  X(cuMemPoolDestroy, "cuMemPoolDestroy", (CUmemoryPool))                      \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute",                            \
    (CUmemoryPool, CUmemPool_attribute, void *))                               \
  X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute",                            \
    (CUmemoryPool, CUmemPool_attribute, void *))                               \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", (CUmemoryPool, size_t))                \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))             \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                 \
    (CUdeviceptr *, void *, unsigned))                                         \
  X(cuMemFreeHost, "cuMemFreeHost", (void *))                                  \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                 \
    (CUdeviceptr, const void *, size_t, CUstream))                             \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                 \
    (void *, CUdeviceptr, size_t, CUstream))                                   \
  X(cuMemcpyAsync, "cuMemcpyAsync",                                            \
    (CUdeviceptr, CUdeviceptr, size_t, CUstream))                              \
  X(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2", (const CUDA_MEMCPY2D *, CUstream))  \
  X(cuMemsetD8Async, "cuMemsetD8Async",                                        \
    (CUdeviceptr, unsigned char, size_t, CUstream))                            \
  X(cuMemsetD32Async, "cuMemsetD32Async",                                      \
    (CUdeviceptr, unsigned, size_t, CUstream))                                 \
  X(cuStreamCreate, "cuStreamCreate", (CUstream *, unsigned))                  \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                         \
  X(cuStreamQuery, "cuStreamQuery", (CUstream))                                \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                    \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))     \
  X(cuLaunchHostFunc, "cuLaunchHostFunc", (CUstream, CUhostFn, void *))        \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2",                           \
    (CUstream, CUstreamCaptureMode))                                           \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))           \
  X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2",                       \
    (CUstream, CUstreamCaptureStatus *, uint64_t *, CUgraph *,                 \
     const CUgraphNode **, size_t *))                                          \
  X(cuStreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies",    \
    (CUstream, CUgraphNode *, size_t, unsigned))                               \
  X(cuEventCreate, "cuEventCreate", (CUevent *, unsigned))                     \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent))                            \
  X(cuEventRecord, "cuEventRecord", (CUevent, CUstream))                       \
  X(cuEventQuery, "cuEventQuery", (CUevent))                                   \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent))                       \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *, CUevent, CUevent))     \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                  \
    (CUmodule *, const void *, unsigned, CUjit_option *, void **))             \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule))                              \
  X(cuModuleGetFunction, "cuModuleGetFunction",                                \
    (CUfunction *, CUmodule, const char *))                                    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute",                                  \
    (int *, CUfunction_attribute, CUfunction))                                 \
  X(cuFuncSetAttribute, "cuFuncSetAttribute",                                  \
    (CUfunction, CUfunction_attribute, int))                                   \
  X(cuLaunchKernel, "cuLaunchKernel",                                          \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
     unsigned, CUstream, void **, void **))                                    \
  X(cuGraphCreate, "cuGraphCreate", (CUgraph *, unsigned))                     \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph))                               \
  X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2",                           \
    (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,                      \
     const CUDA_KERNEL_NODE_PARAMS *))                                         \
  X(cuGraphAddEmptyNode, "cuGraphAddEmptyNode",                                \
    (CUgraphNode *, CUgraph, const CUgraphNode *, size_t))                     \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                         \
    (CUgraphExec *, CUgraph, unsigned long long))                              \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                   \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))

#define KF_DECLARE_CUDA_FUNCTION(name, symbol, parameters)                     \
  CUresult(*name) parameters = nullptr;
struct CudaFunctions {
  KF_CUDA_FUNCTIONS(KF_DECLARE_CUDA_FUNCTION)
  /// Of drivers from CUDA 12.4 on, else null.
  CUresult (*cuFuncGetParamInfo)(CUfunction, size_t, size_t *,
                                 size_t *) = nullptr;
  /// Of drivers from CUDA 12.3 on, else null.
  CUresult (*cuGraphAddDependencies)(CUgraph, const CUgraphNode *,
                                     const CUgraphNode *,
                                     const CUgraphEdgeData *, size_t) = nullptr;
};
#undef KF_DECLARE_CUDA_FUNCTION

/// The driver's version below which the device does not work: CUDA 12.0.
constexpr int leastCudaVersion = 12000;

/// Opens the driver's library, libcuda.so.1, once for the process. Errors: none
/// is installed, one that lacks functions, as before CUDA 12.
Result<CudaFunctions> loadCudaFunctions();

/// The functions, those of the machine's driver where `driver` is null, after
/// cuInit. Errors: loadCudaFunctions()'s, a driver that is too old or does not
/// start.
Result<CudaFunctions> startCuda(const CudaFunctions *driver);

/// `what: CUDA_ERROR_..., the driver's text` unless `result` is CUDA_SUCCESS.
Status cudaStatus(const CudaFunctions &cu, CUresult result, const char *what);

/// Whether after this error nothing works any more in this process.
bool isSticky(CUresult result);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDADRIVER_H
