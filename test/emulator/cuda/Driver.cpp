//===- Driver.cpp - The entry points of libcuda.so.1 -----------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Those that the CUDA device uses (CudaDriver.h), with one device and one
// context. Whatever is put on a stream is done at once, and a stream that is
// captured keeps it: graphs run their nodes in the order in which they came.
// An entry point that is missing here is an error of loadCudaFunctions().
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include "runtime/devices/Cuda/CudaDriver.h"

#include <array>
#include <cstdio>

using namespace emu;
using namespace kf;

#define API extern "C" __attribute__((visibility("default"))) CUresult

using Work = std::function<void()>;

struct kf::CUgraph_st {
  std::vector<Work> works;
  size_t nodes = 0; ///< a node is its number, from 1 on
};
struct kf::CUgraphExec_st {
  std::vector<Work> works;
};
struct kf::CUstream_st {
  CUgraph captures = nullptr;
  CUgraphNode last = nullptr;
};
struct kf::CUmod_st {
  Kernel *kernel;
};

namespace {

constexpr uint64_t deviceBytes = 8ull << 30;
constexpr uint64_t freeBytes = 7ull << 30;

CUgraphNode addNode(CUgraph graph) {
  return reinterpret_cast<CUgraphNode>(++graph->nodes);
}

CUresult put(CUstream stream, Work work) {
  if (!stream || !stream->captures) {
    work();
    return CUDA_SUCCESS;
  }
  stream->captures->works.push_back(std::move(work));
  stream->last = addNode(stream->captures);
  return CUDA_SUCCESS;
}

CUresult give(uint64_t base, uint64_t *to) {
  *to = base;
  return base ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

Kernel *kernelOf(CUfunction function) {
  return reinterpret_cast<Kernel *>(function);
}

/// A launch that keeps its parameters, which a caller's last for the call.
Work launchOf(CUfunction function, std::array<unsigned, 7> sizes,
              void **parameters) {
  Kernel *kernel = kernelOf(function);
  std::vector<std::vector<char>> kept;
  for (size_t i = 0; i < kernel->parameters.size(); ++i) {
    const char *from = static_cast<const char *>(parameters[i]);
    kept.emplace_back(from, from + kernel->parameters[i]);
  }
  return [=]() mutable {
    std::vector<void *> pointers;
    for (std::vector<char> &each : kept)
      pointers.push_back(each.data());
    run({kernel,
         {sizes[0], sizes[1], sizes[2]},
         {sizes[3], sizes[4], sizes[5]},
         sizes[6],
         pointers.data()});
  };
}

} // namespace

//===- The device ---------------------------------------------------------===//

API cuInit(unsigned) { return CUDA_SUCCESS; }
API cuDriverGetVersion(int *version) {
  *version = 12040;
  return CUDA_SUCCESS;
}
API cuGetErrorName(CUresult, const char **name) {
  *name = "CUDA_ERROR";
  return CUDA_SUCCESS;
}
API cuGetErrorString(CUresult, const char **text) {
  *text = "an error of the emulator, which stderr tells of";
  return CUDA_SUCCESS;
}
API cuDeviceGetCount(int *count) {
  *count = 1;
  return CUDA_SUCCESS;
}
API cuDeviceGet(CUdevice *device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}
API cuDeviceGetName(char *name, int length, CUdevice) {
  snprintf(name, length, "Emulated sm_%d", capability());
  return CUDA_SUCCESS;
}
API cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  const int chip = capability();
  switch (int(attribute)) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1:
    *value = 1024;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2:
    *value = 64;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    *value = 2147483647;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2:
    *value = 65535;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: // of an H100 and an A100
    *value = chip >= 90 ? 132 : 108;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = chip / 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = chip % 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = chip >= 90 ? 232448 : chip == 80 ? 166912 : 101376;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: // each buffer has canaries
    *value = 0;
    return CUDA_SUCCESS;
  }
  fprintf(stderr, "cuda emulator: error: no attribute %d of the device\n",
          int(attribute));
  return CUDA_ERROR_INVALID_VALUE;
}
API cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  *bytes = deviceBytes;
  return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(1);
  return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
API cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

//===- Memory -------------------------------------------------------------===//

API cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = freeBytes;
  *total = deviceBytes;
  return CUDA_SUCCESS;
}
API cuMemAlloc_v2(CUdeviceptr *base, size_t bytes) {
  return give(allocate(bytes), base);
}
API cuMemFree_v2(CUdeviceptr base) {
  release(base);
  return CUDA_SUCCESS;
}
API cuMemHostAlloc(void **base, size_t bytes, unsigned) {
  return give(allocate(bytes), reinterpret_cast<uint64_t *>(base));
}
API cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}
API cuMemFreeHost(void *base) {
  return cuMemFree_v2(reinterpret_cast<CUdeviceptr>(base));
}
// There are no pools, which the attribute says.
API cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream) {
  return CUDA_ERROR_INVALID_VALUE;
}
API cuMemFreeAsync(CUdeviceptr, CUstream) { return CUDA_ERROR_INVALID_VALUE; }
API cuMemPoolCreate(CUmemoryPool *, const CUmemPoolProps *) {
  return CUDA_ERROR_INVALID_VALUE;
}
API cuMemPoolDestroy(CUmemoryPool) { return CUDA_ERROR_INVALID_VALUE; }
API cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void *) {
  return CUDA_ERROR_INVALID_VALUE;
}
API cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute, void *) {
  return CUDA_ERROR_INVALID_VALUE;
}
API cuMemPoolTrimTo(CUmemoryPool, size_t) { return CUDA_ERROR_INVALID_VALUE; }

API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                  CUstream stream) {
  return put(stream, [=] { copyBytes(to, from, bytes); });
}
API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                         CUstream stream) {
  return cuMemcpyAsync(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream);
}
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                         CUstream stream) {
  return cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream);
}
API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *given, CUstream stream) {
  return put(stream, [copy = *given] {
    const CUdeviceptr to =
        copy.dstDevice + copy.dstY * copy.dstPitch + copy.dstXInBytes;
    const CUdeviceptr from =
        copy.srcDevice + copy.srcY * copy.srcPitch + copy.srcXInBytes;
    for (size_t row = 0; row < copy.Height; ++row)
      copyBytes(to + row * copy.dstPitch, from + row * copy.srcPitch,
                copy.WidthInBytes);
  });
}
API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                    CUstream stream) {
  return put(stream,
             [=] { memset(reinterpret_cast<void *>(to), value, count); });
}
API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                     CUstream stream) {
  return put(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned *>(to), count, value);
  });
}

//===- Streams and events -------------------------------------------------===//

API cuStreamCreate(CUstream *stream, unsigned) {
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
API cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
API cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
API cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
API cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
API cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user) {
  return put(stream, [=] { function(user); });
}
API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  stream->captures = new CUgraph_st;
  stream->last = nullptr;
  return CUDA_SUCCESS;
}
API cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  *graph = std::exchange(stream->captures, nullptr);
  return CUDA_SUCCESS;
}
API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                              uint64_t *id, CUgraph *graph,
                              const CUgraphNode **dependencies, size_t *count) {
  *status = stream->captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                             : CU_STREAM_CAPTURE_STATUS_NONE;
  if (id)
    *id = 1;
  if (graph)
    *graph = stream->captures;
  if (dependencies)
    *dependencies = &stream->last;
  if (count)
    *count = stream->last ? 1 : 0;
  return CUDA_SUCCESS;
}
API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes,
                                      size_t count, unsigned) {
  stream->last = count ? nodes[count - 1] : nullptr;
  return CUDA_SUCCESS;
}
API cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(1);
  return CUDA_SUCCESS;
}
API cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
API cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
API cuEventQuery(CUevent) { return CUDA_SUCCESS; }
API cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
API cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 1;
  return CUDA_SUCCESS;
}

//===- Kernels and graphs -------------------------------------------------===//

API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned,
                       CUjit_option *, void **) {
  std::lock_guard guard(lock());
  Kernel *kernel = loadKernel(static_cast<const char *>(image));
  if (!kernel)
    return CUDA_ERROR_INVALID_PTX;
  *module = new CUmod_st{kernel};
  return CUDA_SUCCESS;
}
API cuModuleUnload(CUmodule module) {
  delete module;
  return CUDA_SUCCESS;
}
API cuModuleGetFunction(CUfunction *function, CUmodule module,
                        const char *name) {
  if (module->kernel->name != name)
    return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(module->kernel);
  return CUDA_SUCCESS;
}
API cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                       CUfunction function) {
  const Kernel &kernel = *kernelOf(function);
  const int *threads = kernel.threads;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = threads[0] ? threads[0] * threads[1] * threads[2] : 1024;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = int(kernel.staticShared);
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = int(kernel.mostDynamic);
    break;
  default:
    *value = 0;
  }
  return CUDA_SUCCESS;
}
API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                       int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    kernelOf(function)->mostDynamic = uint64_t(value);
  return CUDA_SUCCESS;
}
API cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                   unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned shared, CUstream stream,
                   void **parameters, void **) {
  return put(stream,
             launchOf(function,
                      {gridX, gridY, gridZ, blockX, blockY, blockZ, shared},
                      parameters));
}
API cuGraphCreate(CUgraph *graph, unsigned) {
  *graph = new CUgraph_st;
  return CUDA_SUCCESS;
}
API cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}
API cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
                            const CUgraphNode *, size_t,
                            const CUDA_KERNEL_NODE_PARAMS *of) {
  graph->works.push_back(
      launchOf(of->func,
               {of->gridDimX, of->gridDimY, of->gridDimZ, of->blockDimX,
                of->blockDimY, of->blockDimZ, of->sharedMemBytes},
               of->kernelParams));
  *node = addNode(graph);
  return CUDA_SUCCESS;
}
API cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *,
                        size_t) {
  *node = addNode(graph);
  return CUDA_SUCCESS;
}
API cuGraphInstantiateWithFlags(CUgraphExec *graph, CUgraph of,
                                unsigned long long) {
  *graph = new CUgraphExec_st{of->works};
  return CUDA_SUCCESS;
}
API cuGraphLaunch(CUgraphExec graph, CUstream) {
  for (const Work &each : graph->works)
    each();
  return CUDA_SUCCESS;
}
API cuGraphExecDestroy(CUgraphExec graph) {
  delete graph;
  return CUDA_SUCCESS;
}
