//===- CudaContext.cpp - A GPU, its context and memory --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaContext.h"

#include "runtime/core/Exceptions.h"
#include "runtime/devices/Cuda/NcclRank.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace kf;

namespace {

/// Memory is handed out in multiples of this, so that kernels may read whole
/// vectors.
constexpr uint64_t granularity = 64;

constexpr int leastMajor = 8;

std::string numbered(int index) {
  return "CUDA device " + std::to_string(index);
}

/// "139.8 GiB".
std::string gibibytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB",
                static_cast<double>(bytes) / (uint64_t(1) << 30));
  return text;
}

/// Whether devices 0 to `ranks` - 1 run the same kernels.
Status checkRanks(const CudaFunctions &cu, int64_t ranks) {
  CudaProperties first;
  for (int index = 0; index < static_cast<int>(ranks); ++index) {
    KF_ASSIGN_OR_RETURN(CudaProperties found, readCudaProperties(cu, index));
    KF_RETURN_IF_ERROR(checkCapability(found).in(numbered(index)));
    if (index == 0)
      first = std::move(found);
    else if (found.chip() != first.chip())
      return Status::error(
          "ranks need GPUs that run the same code: " + numbered(index) +
              " is " + found.name + ", " + found.capability() +
              ", and device 0 " + first.name + ", " + first.capability() +
              ": name others in CUDA_VISIBLE_DEVICES",
          StatusCode::Unsupported);
  }
  return {};
}

/// The device's number; `count` of them are there.
Result<int> chooseDevice(const CudaFunctions &cu,
                         const CudaDeviceOptions &options, int count) {
  const std::string &wanted = options.device;
  if (options.ranks > count)
    return Status::error(std::to_string(options.ranks) +
                             " ranks need a CUDA device each, and the driver "
                             "has " +
                             std::to_string(count) +
                             ": have fewer ranks, or see "
                             "CUDA_VISIBLE_DEVICES",
                         StatusCode::Unavailable);
  if (options.ranks > 1)
    KF_RETURN_IF_ERROR(checkRanks(cu, options.ranks));
  if (!wanted.empty()) {
    int index = -1;
    const char *end = wanted.data() + wanted.size();
    auto [rest, code] = std::from_chars(wanted.data(), end, index);
    if (code != std::errc() || rest != end || index < 0 || index >= count)
      return Status::error(
          "there is no CUDA device '" + wanted + "': the driver has number 0" +
              (count > 1 ? " to " + std::to_string(count - 1) : std::string()),
          StatusCode::NotFound);
    return index;
  }
  // With none that fits, the first one's error says why.
  for (int index = 0; index < count; ++index) {
    KF_ASSIGN_OR_RETURN(CudaProperties found, readCudaProperties(cu, index));
    if (checkCapability(found))
      return index;
  }
  return 0;
}

} // namespace

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

std::string CudaProperties::capability() const {
  return "compute capability " + std::to_string(major) + "." +
         std::to_string(minor);
}

std::string CudaProperties::chip() const {
  const int number = major * 10 + minor;
  constexpr int compatible[] = {80, 86, 87, 89};
  constexpr int specific[] = {90, 100, 103, 120, 121};
  if (std::ranges::find(compatible, number) != std::end(compatible))
    return "sm_" + std::to_string(number);
  if (std::ranges::find(specific, number) != std::end(specific))
    return "sm_" + std::to_string(number) + "a";
  return major > leastMajor ? "sm_90" : "sm_80";
}

std::string CudaProperties::description() const {
  return name + ", " + capability() + ", " + std::to_string(multiprocessors) +
         " multiprocessors, " + gibibytes(memory);
}

std::string CudaProperties::target() const {
  return "#kf.cuda_target<chip = \"" + chip() +
         "\", multiprocessors = " + std::to_string(multiprocessors) +
         ", memory = " + std::to_string(sharedMemory) + ">";
}

Result<CudaProperties> kf::readCudaProperties(const CudaFunctions &cu,
                                              int index) {
  const std::string where = numbered(index);
  CUdevice device = 0;
  KF_RETURN_IF_ERROR(
      cudaStatus(cu, cu.cuDeviceGet(&device, index), "cuDeviceGet").in(where));
  CudaProperties found;
  char name[256] = {};
  KF_RETURN_IF_ERROR(cudaStatus(cu,
                                cu.cuDeviceGetName(name, sizeof(name), device),
                                "cuDeviceGetName")
                         .in(where));
  name[sizeof(name) - 1] = '\0';
  found.name = name;
  size_t bytes = 0;
  KF_RETURN_IF_ERROR(
      cudaStatus(cu, cu.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem")
          .in(where));
  found.memory = bytes;
  Status status;
  auto read = [&](int attribute) {
    int value = 0;
    if (status)
      status = cudaStatus(
          cu,
          cu.cuDeviceGetAttribute(
              &value, static_cast<CUdevice_attribute>(attribute), device),
          "cuDeviceGetAttribute");
    return value;
  };
  found.major = read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  found.minor = read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  found.multiprocessors = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  found.threads = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  found.sharedMemory =
      read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  found.hasPools = read(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  for (int i = 0; i < 3; ++i) {
    found.block[i] = read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    found.grid[i] = read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  KF_RETURN_IF_ERROR(status.in(where));
  return found;
}

Status kf::checkCapability(const CudaProperties &properties) {
  if (properties.major >= leastMajor)
    return {};
  return Status::error(properties.name + " has " + properties.capability() +
                           ": kernels are made for 8.0 (Ampere) and later",
                       StatusCode::Unsupported);
}

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CudaContext>>
CudaContext::create(const CudaDeviceOptions &options) {
  KF_ASSIGN_OR_RETURN(CudaFunctions cu, startCuda(options.driver));
  std::unique_ptr<CudaContext> self(new CudaContext(cu));
  KF_RETURN_IF_ERROR(self->open(options));
  return self;
}

Status CudaContext::open(const CudaDeviceOptions &options) {
  int count = 0;
  KF_RETURN_IF_ERROR(check(cu.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0)
    return Status::error("the NVIDIA driver shows no device: see "
                         "CUDA_VISIBLE_DEVICES",
                         StatusCode::Unavailable);
  KF_ASSIGN_OR_RETURN(int index, chooseDevice(cu, options, count));
  KF_ASSIGN_OR_RETURN(gpu, readCudaProperties(cu, index));
  KF_RETURN_IF_ERROR(checkCapability(gpu).in(numbered(index)));
  // Before the first rank has made threads, those of the driver among them.
  if (options.ranks > 1)
    KF_RETURN_IF_ERROR(startNccl(options.nccl).status());
  KF_RETURN_IF_ERROR(check(cu.cuDeviceGet(&device, index), "cuDeviceGet"));
  const CUresult retained = cu.cuDevicePrimaryCtxRetain(&context, device);
  if (retained != CUDA_SUCCESS)
    context = nullptr;
  if (retained == CUDA_ERROR_DEVICE_UNAVAILABLE)
    return Status::error(numbered(index) + ": " + gpu.name +
                             " is in use by another process that has it alone",
                         StatusCode::Unavailable);
  KF_RETURN_IF_ERROR(
      check(retained, "cuDevicePrimaryCtxRetain").in(numbered(index)));
  KF_RETURN_IF_ERROR(enter());
  KF_RETURN_IF_ERROR(check(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                           "cuStreamCreate"));
  return gpu.hasPools ? preparePool() : Status();
}

/// Memory that is freed stays in the pool, and is found there by who allocates.
/// The device's default pool is that of the whole process, and stays as others
/// have set it.
Status CudaContext::preparePool() {
  CUmemPoolProps properties;
  properties.location.id = device;
  KF_RETURN_IF_ERROR(
      check(cu.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate"));
  uint64_t keep = UINT64_MAX;
  return check(
      cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
      "cuMemPoolSetAttribute");
}

CudaContext::~CudaContext() {
  if (!context)
    return;
  // Errors are of no concern: what a broken context has is gone with it.
  (void)cu.cuCtxSetCurrent(context);
  if (stream) {
    (void)cu.cuStreamSynchronize(stream); // memory that is being freed
    (void)cu.cuStreamDestroy(stream);
  }
  if (pool)
    (void)cu.cuMemPoolDestroy(pool);
  (void)cu.cuCtxSetCurrent(nullptr);
  (void)cu.cuDevicePrimaryCtxRelease(device);
}

Status CudaContext::enter() {
  KF_RETURN_IF_ERROR(broken);
  return check(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

Status CudaContext::enterThread() const {
  return cudaStatus(cu, cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

Status CudaContext::check(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS)
    return {};
  return isSticky(result) ? checkWait(result, what)
                          : cudaStatus(cu, result, what);
}

Status CudaContext::checkWait(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS)
    return {};
  Status status = catchExceptions([&] { return cudaStatus(cu, result, what); });
  if (broken)
    broken = catchExceptions([&] {
      return Status::error("the CUDA device has failed earlier, and is of no "
                           "use to this process any more: " +
                               status.message(),
                           StatusCode::Unavailable);
    });
  return status;
}

/// The driver's own waits would not end where another rank does not come.
Status CudaContext::await(const auto &query, const char *what) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds busy(20);
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const CUresult result = query();
    if (result != CUDA_ERROR_NOT_READY)
      return checkWait(result, what);
    joined->poll();
    if (Clock::now() - begin < busy)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Status CudaContext::synchronize(CUstream awaited) {
  if (!joined)
    return checkWait(cu.cuStreamSynchronize(awaited), "cuStreamSynchronize");
  return await([&] { return cu.cuStreamQuery(awaited); }, "cuStreamQuery");
}

Status CudaContext::synchronize(CUevent awaited) {
  if (!joined)
    return checkWait(cu.cuEventSynchronize(awaited), "cuEventSynchronize");
  return await([&] { return cu.cuEventQuery(awaited); }, "cuEventQuery");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result<DeviceMemory> CudaContext::memory() {
  KF_RETURN_IF_ERROR(enter());
  size_t free = 0, total = 0;
  KF_RETURN_IF_ERROR(check(cu.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  DeviceMemory result;
  result.total = result.largestBuffer = total;
  result.free = free;
  if (pool) {
    // What the pool holds and nobody uses can be had, too.
    uint64_t reserved = 0, used = 0;
    KF_RETURN_IF_ERROR(
        check(cu.cuMemPoolGetAttribute(
                  pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved),
              "cuMemPoolGetAttribute"));
    KF_RETURN_IF_ERROR(check(
        cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used),
        "cuMemPoolGetAttribute"));
    if (reserved > used)
      result.free = std::min<uint64_t>(total, free + (reserved - used));
  }
  return result;
}

Status CudaContext::outOfMemory(uint64_t bytes) {
  std::string message = std::to_string(bytes) + " bytes are needed, ";
  if (Result<DeviceMemory> left = memory())
    message += gpu.name + " has " + std::to_string(left->free) + " of " +
               std::to_string(left->total) + " free";
  else
    message += "more than " + gpu.name + " has free";
  return Status::error(message + "; use a smaller model, context or token "
                                 "count",
                       StatusCode::OutOfMemory);
}

CUresult CudaContext::allocateDevice(CUdeviceptr &address, uint64_t bytes) {
  if (!pool)
    return cu.cuMemAlloc(&address, bytes);
  const CUresult result =
      cu.cuMemAllocFromPoolAsync(&address, bytes, pool, stream);
  if (result != CUDA_ERROR_OUT_OF_MEMORY)
    return result;
  // What is in the pool may be in pieces that are too small.
  const CUresult trimmed = cu.cuMemPoolTrimTo(pool, 0);
  return trimmed == CUDA_SUCCESS
             ? cu.cuMemAllocFromPoolAsync(&address, bytes, pool, stream)
             : trimmed;
}

Status CudaContext::clear(const CudaMemory &memory, uint64_t bytes) {
  if (memory.host) {
    std::memset(memory.host, 0, bytes);
    return {};
  }
  KF_RETURN_IF_ERROR(check(cu.cuMemsetD8Async(memory.address, 0, bytes, stream),
                           "cuMemsetD8Async"));
  return checkWait(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

Result<CudaMemory> CudaContext::allocate(uint64_t bytes, MemoryKind kind) {
  const bool isPinned = kind == MemoryKind::HostPinned;
  const std::string what =
      std::string(isPinned ? "pinned memory of " : "CUDA memory of ") +
      std::to_string(bytes) + " bytes";
  KF_RETURN_IF_ERROR(enter());
  if (!isPinned && bytes > gpu.memory)
    return outOfMemory(bytes).in(what);
  if (bytes > UINT64_MAX - granularity)
    return Status::outOfMemory().in(what);
  const uint64_t rounded = std::max(granularity, (bytes + granularity - 1) /
                                                     granularity * granularity);
  CudaMemory result;
  if (isPinned) {
    KF_RETURN_IF_ERROR(check(cu.cuMemHostAlloc(&result.host, rounded,
                                               CU_MEMHOSTALLOC_PORTABLE |
                                                   CU_MEMHOSTALLOC_DEVICEMAP),
                             "cuMemHostAlloc")
                           .in(what));
    Status mapped =
        check(cu.cuMemHostGetDevicePointer(&result.address, result.host, 0),
              "cuMemHostGetDevicePointer");
    if (!mapped) {
      release(result);
      return mapped.in(what);
    }
  } else {
    const CUresult got = allocateDevice(result.address, rounded);
    if (got == CUDA_ERROR_OUT_OF_MEMORY)
      return outOfMemory(bytes).in(what);
    KF_RETURN_IF_ERROR(
        check(got, pool ? "cuMemAllocFromPoolAsync" : "cuMemAlloc").in(what));
  }
  if (Status cleared = clear(result, rounded); !cleared) {
    release(result);
    return cleared.in(what);
  }
  return result;
}

void CudaContext::release(CudaMemory &memory) {
  const CudaMemory freed = std::exchange(memory, {});
  if (!freed.address && !freed.host)
    return;
  // Errors are those of earlier work, which its stream tells.
  (void)cu.cuCtxSetCurrent(context);
  if (freed.host)
    (void)cu.cuMemFreeHost(freed.host);
  else if (pool)
    (void)cu.cuMemFreeAsync(freed.address, stream);
  else
    (void)cu.cuMemFree(freed.address);
}
