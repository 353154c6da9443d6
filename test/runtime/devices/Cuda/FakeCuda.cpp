//===- FakeCuda.cpp - A driver of GPUs that are not there -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "test/runtime/devices/ScalePrograms.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>

using namespace kf;
using namespace kf::test;

namespace {

FakeCuda *theFake = nullptr;
thread_local CUcontext currentContext = nullptr;

const auto thePool = reinterpret_cast<CUmemoryPool>(uintptr_t(0x900));
const auto theContext = reinterpret_cast<CUcontext>(uintptr_t(0xc00));

uint64_t nanosecondsNow() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void *pointerOf(uint64_t address) { return reinterpret_cast<void *>(address); }

} // namespace

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

template <typename Handle> Handle FakeCuda::newHandle() {
  return reinterpret_cast<Handle>(uintptr_t(0x1000 + 16 * handles++));
}

template <typename T, typename Handle>
T *FakeCuda::find(std::map<Handle, T> &all, Handle handle, const char *what) {
  auto found = all.find(handle);
  if (found != all.end())
    return &found->second;
  violate(std::string("no such ") + what);
  return nullptr;
}

void FakeCuda::fail(const std::string &function, CUresult result, int from,
                    int times) {
  answer = [=, made = 0](const std::string &called) mutable {
    if (called != function)
      return CUDA_SUCCESS;
    const int number = made++;
    return number >= from && number < from + times ? result : CUDA_SUCCESS;
  };
}

void FakeCuda::push(CUstream stream, std::function<void()> run) {
  enqueue(stream, [run = std::move(run)] { return Work{run}; });
}

void FakeCuda::enqueue(CUstream stream, const MakeWork &make) {
  if (auto capture = captures.find(stream); capture != captures.end()) {
    Graph *graph = find(graphs, capture->second.graph, "graph");
    if (graph)
      capture->second.ends = {addNode(*graph, make, capture->second.ends)};
    return;
  }
  if (Stream *state = find(streams, stream, "stream"))
    (*state)->work.push_back(make());
}

void FakeCuda::isKernel(CUstream stream) {
  const auto capture = captures.find(stream);
  if (capture == captures.end())
    return;
  if (Graph *graph = find(graphs, capture->second.graph, "graph"))
    graph->kernels.insert(capture->second.ends.begin(),
                          capture->second.ends.end());
}

void FakeCuda::beginsEarly(CUstream stream) {
  const Capture &capture = captures.at(stream);
  for (const CUgraphNode end : capture.ends)
    if (graphs[capture.graph].kernels.contains(end))
      violate("a library begins while the kernel before goes on");
}

void FakeCuda::retain(CUstream stream, std::shared_ptr<void> reference) {
  graphs[captures.at(stream).graph].references.push_back(std::move(reference));
}

CUgraphNode FakeCuda::addNode(Graph &graph, MakeWork make,
                              std::span<const CUgraphNode> dependencies) {
  // Each behind the one before: the node's handle is its number.
  if (dependencies.size() > 1)
    violate("nodes that are not in a row");
  graph.nodes.push_back(std::move(make));
  const auto node =
      reinterpret_cast<CUgraphNode>(uintptr_t(graph.nodes.size()));
  if (graph.nodes.size() == 1)
    graph.inRow = 1;
  if (!dependencies.empty())
    addEdge(graph, dependencies.front(), node);
  return node;
}

void FakeCuda::addEdge(Graph &graph, CUgraphNode from, CUgraphNode to) {
  const auto behind = reinterpret_cast<uintptr_t>(to);
  if (reinterpret_cast<uintptr_t>(from) + 1 != behind ||
      behind > graph.nodes.size())
    violate("nodes that are not in a row");
  else
    ++graph.inRow;
}

/// Up to work that cannot be run yet.
void FakeCuda::runTo(StreamState &stream, size_t ticket) {
  while (stream.done < ticket) {
    Work &next = stream.work[stream.done];
    if (broken == CUDA_SUCCESS && next.isReady && !next.isReady())
      return;
    const std::function<void()> run = std::move(next.run);
    next.isReady = nullptr;
    ++stream.done;
    if (broken == CUDA_SUCCESS && run)
      run();
  }
}

CUresult FakeCuda::allocate(void **address, uint64_t bytes, bool isPinned) {
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!isPinned) {
    if (bytes >
        gpus.at(0).memory - std::min(gpus[0].memory, usedMemory() + pooled))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Block block = {bytes, isPinned,
                 std::make_unique_for_overwrite<std::byte[]>(bytes)};
  // Large memory is filled where it begins, for most of it is never used.
  constexpr uint64_t mostFilled = 1 << 20;
  std::memset(block.memory.get(), 0xa5, std::min(bytes, mostFilled));
  *address = block.memory.get();
  memory[reinterpret_cast<uint64_t>(*address)] = std::move(block);
  return CUDA_SUCCESS;
}

void FakeCuda::release(uint64_t address, bool isPinned) {
  auto found = memory.find(address);
  if (found == memory.end() || found->second.isPinned != isPinned)
    violate("freed memory that was not allocated");
  else
    memory.erase(found);
}

std::byte *FakeCuda::memoryAt(const void *address, uint64_t bytes,
                              const char *what) {
  checkRange(reinterpret_cast<uint64_t>(address), bytes, what);
  return static_cast<std::byte *>(const_cast<void *>(address));
}

void FakeCuda::checkRange(uint64_t address, uint64_t bytes, const char *what) {
  auto next = memory.upper_bound(address);
  const bool isInside =
      next != memory.begin() &&
      address + bytes <= std::prev(next)->first + std::prev(next)->second.bytes;
  if (!isInside)
    violate(std::string(what) + " outside of memory");
}

FakeCuda::Launch FakeCuda::launchOf(CUfunction function, Dim grid, Dim block,
                                    unsigned shared, void **parameters) {
  Launch launch;
  const Function *found = find(functionsOf, function, "function");
  if (!found)
    return launch;
  launch.run = found->run;
  launch.grid = grid;
  launch.block = block;
  for (size_t i = 0; i <= found->buffers; ++i) {
    uint64_t address = 0;
    std::memcpy(&address, parameters[i], sizeof(address));
    checkRange(address, 1, "a kernel's argument");
    launch.arguments.push_back(pointerOf(address));
  }
  for (unsigned count : grid)
    if (count == 0)
      violate("launched a grid of no blocks");
  if (shared > found->dynamicShared)
    violate("launched with more shared memory than was asked for");
  return launch;
}

std::vector<std::string> FakeCuda::leftOver() const {
  std::vector<std::string> names;
  auto add = [&](const char *name, size_t count) {
    names.insert(names.end(), count, name);
  };
  add("memory", memory.size());
  add("stream", streams.size());
  add("event", events.size());
  add("module", modules.size());
  add("graph", graphs.size());
  add("executable graph", executables.size());
  add("capture", captures.size());
  add("context", contexts);
  add("memory pool", pools);
  return names;
}

uint64_t FakeCuda::usedMemory() const {
  uint64_t total = 0;
  for (const auto &[address, block] : memory)
    total += block.isPinned ? 0 : block.bytes;
  return total;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The driver's functions, by their names.
struct kf::test::FakeCalls {
  /// Counts a call, and says what it returns without being made.
  struct Call {
    explicit Call(const char *name, bool needsContext = true)
        : lock(theFake->mutex) {
      ++theFake->calls[name];
      ++theFake->allCalls;
      if (theFake->answer)
        result = theFake->answer(name);
      if (result == CUDA_SUCCESS && needsContext) {
        result = theFake->broken;
        if (!currentContext)
          theFake->violate(std::string(name) + " without a context");
      }
    }
    std::lock_guard<std::recursive_mutex> lock;
    CUresult result = CUDA_SUCCESS;
  };
#define KF_CALL(...)                                                           \
  Call call(__VA_ARGS__);                                                      \
  FakeCuda &self = *theFake;                                                   \
  if (call.result != CUDA_SUCCESS)                                             \
    return call.result;                                                        \
  (void)self

  static CUresult cuInit(unsigned) {
    KF_CALL("cuInit", false);
    return self.gpus.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
  }
  static CUresult cuDriverGetVersion(int *version) {
    KF_CALL("cuDriverGetVersion", false);
    *version = self.driverVersion;
    return CUDA_SUCCESS;
  }
  static CUresult cuGetErrorName(CUresult error, const char **name) {
    static const std::map<int, const char *> names = {
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
    auto found = names.find(error);
    *name = found == names.end() ? nullptr : found->second;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_ILLEGAL_ADDRESS
                ? "an illegal memory access was encountered"
                : nullptr;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }

  static CUresult cuDeviceGetCount(int *count) {
    KF_CALL("cuDeviceGetCount", false);
    *count = static_cast<int>(self.gpus.size());
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGet(CUdevice *device, int index) {
    KF_CALL("cuDeviceGet", false);
    *device = index;
    return static_cast<size_t>(index) < self.gpus.size()
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_DEVICE;
  }
  static CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    KF_CALL("cuDeviceGetName", false);
    std::snprintf(name, static_cast<size_t>(length), "%s",
                  self.gpus.at(device).name.c_str());
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                       CUdevice device) {
    KF_CALL("cuDeviceGetAttribute", false);
    const FakeCuda::Gpu &gpu = self.gpus.at(device);
    switch (static_cast<int>(attribute)) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = gpu.major;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = gpu.minor;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 4;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = self.sharedMemory;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      *value = gpu.hasPools;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = INT32_MAX;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2:
      *value = 64;
      break;
    default: // threads of a block, and along x and y
      *value = 1024;
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    KF_CALL("cuDeviceTotalMem", false);
    *bytes = self.gpus.at(device).memory;
    return CUDA_SUCCESS;
  }

  static CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
    KF_CALL("cuDevicePrimaryCtxRetain", false);
    ++self.contexts;
    *context = theContext;
    return CUDA_SUCCESS;
  }
  static CUresult cuDevicePrimaryCtxRelease(CUdevice) {
    Call call("cuDevicePrimaryCtxRelease", false);
    --theFake->contexts;
    return call.result;
  }
  static CUresult cuCtxSetCurrent(CUcontext context) {
    KF_CALL("cuCtxSetCurrent", false);
    currentContext = context;
    return CUDA_SUCCESS;
  }

  static CUresult cuMemGetInfo(size_t *free, size_t *total) {
    KF_CALL("cuMemGetInfo");
    *total = self.gpus.at(0).memory;
    *free = *total - self.usedMemory() - self.pooled;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
    KF_CALL("cuMemAlloc");
    return self.allocate(reinterpret_cast<void **>(address), bytes, false);
  }
  // What frees has no say: it succeeds in any case, so that tests can tell
  // what was forgotten from what could not be freed.
  static CUresult cuMemFree(CUdeviceptr address) {
    Call call("cuMemFree");
    theFake->release(address, false);
    return call.result;
  }
  static CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes,
                                          CUmemoryPool pool, CUstream stream) {
    KF_CALL("cuMemAllocFromPoolAsync");
    if (pool != thePool || !self.pools)
      self.violate("no such pool");
    self.push(stream, [] {});
    const uint64_t reused = std::min<uint64_t>(self.pooled, bytes);
    // A pool that holds more gives it up only when it is trimmed, unless it
    // fits.
    if (reused == bytes)
      self.pooled -= reused;
    return self.allocate(reinterpret_cast<void **>(address), bytes, false);
  }
  static CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
    Call call("cuMemFreeAsync");
    auto found = theFake->memory.find(address);
    if (found != theFake->memory.end())
      theFake->pooled += found->second.bytes;
    theFake->release(address, false);
    return call.result;
  }
  static CUresult cuMemPoolCreate(CUmemoryPool *pool,
                                  const CUmemPoolProps *properties) {
    KF_CALL("cuMemPoolCreate", false);
    const CUmemPoolProps expected;
    if (properties->allocType != expected.allocType ||
        properties->location.type != expected.location.type ||
        static_cast<size_t>(properties->location.id) >= self.gpus.size())
      self.violate("a pool of another kind");
    ++self.pools;
    *pool = thePool;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    Call call("cuMemPoolDestroy", false);
    if (pool != thePool || theFake->pools-- == 0)
      theFake->violate("no such pool");
    theFake->pooled = 0;
    return call.result;
  }
  static CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute,
                                        void *) {
    KF_CALL("cuMemPoolSetAttribute", false);
    if (pool != thePool)
      self.violate("no such pool");
    return CUDA_SUCCESS;
  }
  static CUresult cuMemPoolGetAttribute(CUmemoryPool,
                                        CUmemPool_attribute attribute,
                                        void *value) {
    KF_CALL("cuMemPoolGetAttribute", false);
    uint64_t bytes = self.usedMemory();
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
      bytes += self.pooled;
    std::memcpy(value, &bytes, sizeof(bytes));
    return CUDA_SUCCESS;
  }
  static CUresult cuMemPoolTrimTo(CUmemoryPool, size_t bytes) {
    KF_CALL("cuMemPoolTrimTo", false);
    self.pooled = std::min<uint64_t>(self.pooled, bytes);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
    KF_CALL("cuMemHostAlloc");
    return self.allocate(address, bytes, true);
  }
  static CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *host,
                                            unsigned) {
    KF_CALL("cuMemHostGetDevicePointer");
    *address = reinterpret_cast<uint64_t>(host);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemFreeHost(void *host) {
    Call call("cuMemFreeHost");
    theFake->release(reinterpret_cast<uint64_t>(host), true);
    return call.result;
  }

  /// A copy in the stream's order. Pinned memory is looked up when it is done,
  /// too: it must live as long.
  static CUresult copy(FakeCuda &self, uint64_t to, uint64_t from, size_t bytes,
                       CUstream stream) {
    self.checkRange(to, bytes, "a copy's target");
    self.checkRange(from, bytes, "a copy's source");
    self.push(stream, [&self, to, from, bytes] {
      self.checkRange(to, bytes, "a copy's target, later,");
      self.checkRange(from, bytes, "a copy's source, later,");
      std::memcpy(pointerOf(to), pointerOf(from), bytes);
    });
    return CUDA_SUCCESS;
  }
  static CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from,
                                    size_t bytes, CUstream stream) {
    KF_CALL("cuMemcpyHtoDAsync");
    return copy(self, to, reinterpret_cast<uint64_t>(from), bytes, stream);
  }
  static CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                    CUstream stream) {
    KF_CALL("cuMemcpyDtoHAsync");
    return copy(self, reinterpret_cast<uint64_t>(to), from, bytes, stream);
  }
  static CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                CUstream stream) {
    KF_CALL("cuMemcpyAsync");
    return copy(self, to, from, bytes, stream);
  }
  static CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream) {
    KF_CALL("cuMemcpy2DAsync");
    if (copy->srcMemoryType != CU_MEMORYTYPE_DEVICE ||
        copy->dstMemoryType != CU_MEMORYTYPE_DEVICE || copy->Height == 0 ||
        copy->srcPitch < copy->WidthInBytes ||
        copy->dstPitch < copy->WidthInBytes)
      return CUDA_ERROR_INVALID_VALUE;
    auto last = [&](size_t pitch) {
      return pitch * (copy->Height - 1) + copy->WidthInBytes;
    };
    self.checkRange(copy->dstDevice, last(copy->dstPitch), "a copy's target");
    self.checkRange(copy->srcDevice, last(copy->srcPitch), "a copy's source");
    self.push(stream, [copy = *copy] {
      for (size_t row = 0; row < copy.Height; ++row)
        std::memcpy(pointerOf(copy.dstDevice + row * copy.dstPitch),
                    pointerOf(copy.srcDevice + row * copy.srcPitch),
                    copy.WidthInBytes);
    });
    return CUDA_SUCCESS;
  }
  static CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                  size_t bytes, CUstream stream) {
    KF_CALL("cuMemsetD8Async");
    self.checkRange(to, bytes, "a fill");
    self.push(stream, [=] { std::memset(pointerOf(to), value, bytes); });
    return CUDA_SUCCESS;
  }
  static CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words,
                                   CUstream stream) {
    KF_CALL("cuMemsetD32Async");
    self.checkRange(to, words * 4, "a fill");
    if (to % 4 != 0)
      self.violate("a fill of words at an odd address");
    self.push(stream, [=] {
      std::fill_n(static_cast<unsigned *>(pointerOf(to)), words, value);
    });
    return CUDA_SUCCESS;
  }

  static CUresult cuStreamCreate(CUstream *stream, unsigned) {
    KF_CALL("cuStreamCreate");
    *stream = self.newHandle<CUstream>();
    self.streams[*stream] = std::make_shared<FakeCuda::StreamState>();
    return CUDA_SUCCESS;
  }
  static CUresult cuStreamDestroy(CUstream stream) {
    Call call("cuStreamDestroy");
    FakeCuda &self = *theFake;
    if (FakeCuda::Stream *state = self.find(self.streams, stream, "stream")) {
      finish(self, **state);
      if (self.isCapturing(stream))
        self.violate("destroyed a stream that captures");
      self.streams.erase(stream);
    }
    return call.result;
  }
  /// A wait that another rank might never end is the caller's mistake.
  static void finish(FakeCuda &self, FakeCuda::StreamState &state) {
    self.runTo(state, state.work.size());
    if (state.done < state.work.size())
      self.violate("waits in the driver for another rank");
  }
  /// Asking makes some progress.
  static CUresult query(FakeCuda &self, FakeCuda::StreamState &state,
                        size_t ticket) {
    if (state.done >= ticket)
      return CUDA_SUCCESS;
    self.runTo(state, state.done + 1);
    return CUDA_ERROR_NOT_READY;
  }
  static CUresult cuStreamQuery(CUstream stream) {
    KF_CALL("cuStreamQuery");
    if (self.isCapturing(stream))
      self.violate("asked a stream that captures");
    FakeCuda::Stream *state = self.find(self.streams, stream, "stream");
    return state ? query(self, **state, (*state)->work.size())
                 : CUDA_ERROR_INVALID_HANDLE;
  }
  static CUresult cuStreamSynchronize(CUstream stream) {
    KF_CALL("cuStreamSynchronize");
    if (FakeCuda::Stream *state = self.find(self.streams, stream, "stream"))
      finish(self, **state);
    return self.broken;
  }
  static CUresult cuStreamBeginCapture(CUstream stream,
                                       CUstreamCaptureMode mode) {
    KF_CALL("cuStreamBeginCapture");
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED || self.isCapturing(stream))
      self.violate("a capture of another kind");
    FakeCuda::Capture &capture = self.captures[stream];
    capture.graph = self.newHandle<CUgraph>();
    self.graphs[capture.graph];
    return CUDA_SUCCESS;
  }
  /// The capture ends, whatever the call returns.
  static CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    Call call("cuStreamEndCapture");
    FakeCuda &self = *theFake;
    FakeCuda::Capture *found = self.find(self.captures, stream, "capture");
    if (!found)
      return CUDA_ERROR_INVALID_VALUE;
    const CUgraph captured = found->graph;
    self.captures.erase(stream);
    if (call.result == CUDA_SUCCESS)
      *graph = captured;
    else
      self.graphs.erase(captured);
    return call.result;
  }
  static CUresult cuStreamGetCaptureInfo(CUstream stream,
                                         CUstreamCaptureStatus *status,
                                         uint64_t *, CUgraph *graph,
                                         const CUgraphNode **dependencies,
                                         size_t *count) {
    KF_CALL("cuStreamGetCaptureInfo");
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    auto found = self.captures.find(stream);
    if (found == self.captures.end())
      return CUDA_SUCCESS;
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (graph)
      *graph = found->second.graph;
    if (dependencies) {
      *dependencies = found->second.ends.data();
      *count = found->second.ends.size();
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuStreamUpdateCaptureDependencies(CUstream stream,
                                                    CUgraphNode *nodes,
                                                    size_t count,
                                                    unsigned flags) {
    KF_CALL("cuStreamUpdateCaptureDependencies");
    FakeCuda::Capture *found = self.find(self.captures, stream, "capture");
    if (!found || flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
      return CUDA_ERROR_INVALID_VALUE;
    found->ends.assign(nodes, nodes + count);
    return CUDA_SUCCESS;
  }
  static CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    KF_CALL("cuStreamWaitEvent");
    const FakeCuda::EventState *state = self.find(self.events, event, "event");
    if (state && state->stream)
      self.enqueue(stream,
                   [&self, awaited = state->stream, ticket = state->ticket] {
                     return FakeCuda::Work{nullptr, [&self, awaited, ticket] {
                                             self.runTo(*awaited, ticket);
                                             return awaited->done >= ticket;
                                           }};
                   });
    return CUDA_SUCCESS;
  }
  static CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function,
                                   void *user) {
    KF_CALL("cuLaunchHostFunc");
    self.push(stream, [=] { function(user); });
    return CUDA_SUCCESS;
  }

  static CUresult cuEventCreate(CUevent *event, unsigned flags) {
    KF_CALL("cuEventCreate");
    *event = self.newHandle<CUevent>();
    self.events[*event].isTimed = !(flags & CU_EVENT_DISABLE_TIMING);
    return CUDA_SUCCESS;
  }
  static CUresult cuEventDestroy(CUevent event) {
    Call call("cuEventDestroy");
    if (theFake->find(theFake->events, event, "event"))
      theFake->events.erase(event);
    return call.result;
  }
  static CUresult cuEventRecord(CUevent event, CUstream stream) {
    KF_CALL("cuEventRecord");
    FakeCuda::EventState *state = self.find(self.events, event, "event");
    FakeCuda::Stream *where = self.find(self.streams, stream, "stream");
    if (!state || !where)
      return CUDA_ERROR_INVALID_HANDLE;
    state->stream = *where;
    state->nanoseconds = std::make_shared<uint64_t>(0);
    self.push(stream,
              [time = state->nanoseconds] { *time = nanosecondsNow(); });
    state->ticket = (*where)->work.size();
    return CUDA_SUCCESS;
  }
  static CUresult cuEventQuery(CUevent event) {
    KF_CALL("cuEventQuery");
    FakeCuda::EventState *state = self.find(self.events, event, "event");
    return state && state->stream ? query(self, *state->stream, state->ticket)
                                  : CUDA_SUCCESS;
  }
  static CUresult cuEventSynchronize(CUevent event) {
    KF_CALL("cuEventSynchronize");
    FakeCuda::EventState *state = self.find(self.events, event, "event");
    if (state && state->stream) {
      self.runTo(*state->stream, state->ticket);
      if (state->stream->done < state->ticket)
        self.violate("waits in the driver for another rank");
    }
    return self.broken;
  }
  static CUresult cuEventElapsedTime(float *milliseconds, CUevent first,
                                     CUevent second) {
    KF_CALL("cuEventElapsedTime");
    const FakeCuda::EventState *a = self.find(self.events, first, "event");
    const FakeCuda::EventState *b = self.find(self.events, second, "event");
    if (!a || !b || !a->nanoseconds || !b->nanoseconds || !a->isTimed ||
        !b->isTimed)
      return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds =
        static_cast<float>(*b->nanoseconds - *a->nanoseconds) * 1e-6f;
    return CUDA_SUCCESS;
  }

  static CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                     unsigned count, CUjit_option *options,
                                     void **values) {
    KF_CALL("cuModuleLoadDataEx");
    const bool isCubin = std::memcmp(image, ELFMAG, SELFMAG) == 0;
    if (isCubin && !self.cubinBuffers)
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    const std::string text =
        isCubin ? "// runs scale " + std::to_string(*self.cubinBuffers)
                : static_cast<const char *>(image);
    if (text.find("syntax error") != std::string::npos) {
      char *log = nullptr;
      size_t room = 0;
      for (unsigned i = 0; i < count; ++i) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
          log = static_cast<char *>(values[i]);
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
          room = reinterpret_cast<uintptr_t>(values[i]);
      }
      if (log)
        std::snprintf(log, room, "\nline 3; fatal: no such thing\nmore\n");
      return CUDA_ERROR_INVALID_PTX;
    }
    const size_t comment = text.find("// runs ");
    std::string name;
    FakeCuda::Function function;
    if (comment != std::string::npos)
      std::istringstream(text.substr(comment + 8)) >> name >> function.buffers;
    if (!self.kernels.count(name))
      return CUDA_ERROR_INVALID_IMAGE;
    function.run = self.kernels[name];
    *module = self.newHandle<CUmodule>();
    self.modules[*module] = std::move(function);
    return CUDA_SUCCESS;
  }
  static CUresult cuModuleUnload(CUmodule module) {
    Call call("cuModuleUnload");
    FakeCuda &self = *theFake;
    if (self.find(self.modules, module, "module"))
      self.modules.erase(module);
    self.functionsOf.erase(reinterpret_cast<CUfunction>(module));
    return call.result;
  }
  static CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                      const char *name) {
    KF_CALL("cuModuleGetFunction");
    const FakeCuda::Function *found = self.find(self.modules, module, "module");
    if (!found || std::string(name) != "kf_kernel")
      return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(module);
    self.functionsOf[*function] = *found;
    return CUDA_SUCCESS;
  }
  static CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                     CUfunction) {
    KF_CALL("cuFuncGetAttribute");
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
                 ? self.threadsPerBlock
                 : self.staticShared;
    return CUDA_SUCCESS;
  }
  static CUresult cuFuncSetAttribute(CUfunction function,
                                     CUfunction_attribute attribute,
                                     int value) {
    KF_CALL("cuFuncSetAttribute");
    FakeCuda::Function *found =
        self.find(self.functionsOf, function, "function");
    if (!found)
      return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
      self.carveouts.push_back(value);
    } else {
      if (value < 0 || value + self.staticShared > self.sharedMemory)
        return CUDA_ERROR_INVALID_VALUE;
      found->dynamicShared = static_cast<unsigned>(value);
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuFuncGetParamInfo(CUfunction function, size_t index,
                                     size_t *offset, size_t *bytes) {
    KF_CALL("cuFuncGetParamInfo");
    const FakeCuda::Function *found =
        self.find(self.functionsOf, function, "function");
    if (!found || index > found->buffers)
      return CUDA_ERROR_INVALID_VALUE;
    *offset = index * sizeof(CUdeviceptr);
    *bytes = sizeof(CUdeviceptr);
    return CUDA_SUCCESS;
  }

  static void run(const FakeCuda::Launch &launch) {
    launch.run(launch.grid, launch.block, launch.arguments);
  }
  static CUresult cuLaunchKernel(CUfunction function, unsigned gridX,
                                 unsigned gridY, unsigned gridZ,
                                 unsigned blockX, unsigned blockY,
                                 unsigned blockZ, unsigned shared,
                                 CUstream stream, void **parameters, void **) {
    KF_CALL("cuLaunchKernel");
    self.push(stream, [launch = self.launchOf(function, {gridX, gridY, gridZ},
                                              {blockX, blockY, blockZ}, shared,
                                              parameters)] { run(launch); });
    self.isKernel(stream);
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphCreate(CUgraph *graph, unsigned) {
    KF_CALL("cuGraphCreate");
    *graph = self.newHandle<CUgraph>();
    self.graphs[*graph];
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphDestroy(CUgraph graph) {
    Call call("cuGraphDestroy");
    if (theFake->find(theFake->graphs, graph, "graph"))
      theFake->graphs.erase(graph);
    return call.result;
  }
  static CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph,
                                       const CUgraphNode *dependencies,
                                       size_t count,
                                       const CUDA_KERNEL_NODE_PARAMS *params) {
    KF_CALL("cuGraphAddKernelNode");
    FakeCuda::Graph *found = self.find(self.graphs, graph, "graph");
    if (!found)
      return CUDA_ERROR_INVALID_HANDLE;
    *node = self.addNode(
        *found,
        [launch = self.launchOf(
             params->func,
             {params->gridDimX, params->gridDimY, params->gridDimZ},
             {params->blockDimX, params->blockDimY, params->blockDimZ},
             params->sharedMemBytes, params->kernelParams)] {
          return FakeCuda::Work{[launch] { run(launch); }};
        },
        std::span(dependencies, count));
    found->kernels.insert(*node);
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph,
                                      const CUgraphNode *dependencies,
                                      size_t count) {
    KF_CALL("cuGraphAddEmptyNode");
    FakeCuda::Graph *found = self.find(self.graphs, graph, "graph");
    if (!found)
      return CUDA_ERROR_INVALID_HANDLE;
    *node = self.addNode(
        *found, [] { return FakeCuda::Work{[] {}}; },
        std::span(dependencies, count));
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
                                         const CUgraphNode *to,
                                         const CUgraphEdgeData *edges,
                                         size_t count) {
    KF_CALL("cuGraphAddDependencies");
    FakeCuda::Graph *found = self.find(self.graphs, graph, "graph");
    if (!found)
      return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < count; ++i) {
      self.addEdge(*found, from[i], to[i]);
      self.earlyEdges +=
          edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
          edges[i].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph,
                                     unsigned long long) {
    KF_CALL("cuGraphInstantiate");
    const FakeCuda::Graph *found = self.find(self.graphs, graph, "graph");
    if (!found)
      return CUDA_ERROR_INVALID_HANDLE;
    if (found->inRow != found->nodes.size())
      self.violate("a graph with nodes that nothing orders");
    *executable = self.newHandle<CUgraphExec>();
    self.executables[*executable] = std::make_shared<FakeCuda::Graph>(*found);
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    KF_CALL("cuGraphLaunch");
    if (auto *found =
            self.find(self.executables, executable, "executable graph"))
      for (const FakeCuda::MakeWork &make : (*found)->nodes)
        self.enqueue(stream, make);
    return CUDA_SUCCESS;
  }
  static CUresult cuGraphExecDestroy(CUgraphExec executable) {
    Call call("cuGraphExecDestroy");
    FakeCuda &self = *theFake;
    if (self.find(self.executables, executable, "executable graph"))
      self.executables.erase(executable);
    return call.result;
  }
#undef KF_CALL
};

FakeCuda::FakeCuda() {
  theFake = this;
#define KF_SET(name, symbol, parameters) table.name = FakeCalls::name;
  KF_CUDA_FUNCTIONS(KF_SET)
#undef KF_SET
  table.cuFuncGetParamInfo = FakeCalls::cuFuncGetParamInfo;
  table.cuGraphAddDependencies = FakeCalls::cuGraphAddDependencies;
  kernels["scale"] = scaleKernel();
}

FakeCuda::~FakeCuda() {
  theFake = nullptr;
  currentContext = nullptr;
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

Cubin::Cubin() {
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_shoff = offsetof(Cubin, sections);
  header.e_shnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  sections[1].sh_type = SHT_PROGBITS;
  sections[1].sh_offset = offsetof(Cubin, content);
  sections[1].sh_size = sizeof(content);
}

std::string Cubin::bytes() const {
  return {reinterpret_cast<const char *>(this), sizeof(*this)};
}

std::string kf::test::scaleImage() {
  const std::string text = R"(//
.version 7.0
.target sm_80
.address_size 64
// runs scale 3
.visible .entry kf_kernel(
  .param .u64 x, .param .u64 a, .param .u64 z, .param .u64 scalars)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd0, [x];
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [z];
  ld.param.u64 %rd3, [scalars];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r0, 64, %r1;
  ld.global.u32 %r3, [%rd3];
  setp.ge.u32 %p, %r2, %r3;
  @%p bra done;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd5, %rd0, %rd4;
  ld.global.f32 %f0, [%rd5];
  ld.global.f32 %f1, [%rd1];
  mul.f32 %f2, %f0, %f1;
  add.u64 %rd5, %rd2, %rd4;
  st.global.f32 [%rd5], %f2;
done:
  ret;
}
)";
  return lengthPrefixed(text + '\0');
}

FakeCuda::Kernel kf::test::scaleKernel() {
  return [](FakeCuda::Dim grid, FakeCuda::Dim block,
            std::span<void *const> arguments) {
    const auto *x = static_cast<const float *>(arguments[0]);
    const auto *a = static_cast<const float *>(arguments[1]);
    auto *z = static_cast<float *>(arguments[2]);
    const auto *tokens = static_cast<const uint32_t *>(arguments[3]);
    for (unsigned i = 0; i < grid[0] * block[0] && i < *tokens; ++i)
      z[i] = a[0] * x[i];
  };
}
