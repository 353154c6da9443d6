//===- CudaContext.h - A GPU, its context and memory ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What buffers, streams and programs of one CUDA device share: functions,
// limits, memory, and the error after which nothing works any more.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDACONTEXT_H
#define KF_RUNTIME_DEVICES_CUDA_CUDACONTEXT_H

#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/Cuda/CudaDriver.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace kf {

class NcclRank;

/// What a GPU is and allows.
struct CudaProperties {
  std::string name;
  int major = 0, minor = 0; ///< compute capability
  int multiprocessors = 0;
  int64_t threads = 0;                    ///< of a block
  std::array<int64_t, 3> block{}, grid{}; ///< the most in x, y and z
  int64_t sharedMemory = 0;               ///< bytes that a block may ask for
  uint64_t memory = 0;                    ///< bytes
  bool hasPools = false;                  ///< cuMemPoolCreate

  /// "compute capability 9.0".
  std::string capability() const;
  /// What PTX is made for: "sm_90a", or of a chip that is newer than this
  /// release, the newest one whose PTX the driver can compile for it.
  std::string chip() const;
  /// "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 140.4 GiB".
  std::string description() const;
  /// Text of the target attribute, see Device::target().
  std::string target() const;
};

/// Those of device number `index`.
Result<CudaProperties> readCudaProperties(const CudaFunctions &cu, int index);
/// An error unless kernels of this project can run there.
Status checkCapability(const CudaProperties &properties);

/// Device memory, or pinned memory of the host.
struct CudaMemory {
  CUdeviceptr address = 0; ///< for kernels; 0: none
  void *host = nullptr;    ///< of pinned memory
};

/// One thread at a time. Outlives whatever was made from it.
class CudaContext {
public:
  static Result<std::unique_ptr<CudaContext>>
  create(const CudaDeviceOptions &options);
  ~CudaContext();
  CudaContext(const CudaContext &) = delete;
  CudaContext &operator=(const CudaContext &) = delete;

  const CudaProperties &properties() const { return gpu; }

  /// Makes the context current on the calling thread: before each call of the
  /// driver. The error that ended the device's use, if there was one.
  Status enter();
  /// The same on another thread than the one that uses the device, which waits
  /// meanwhile; it remembers no error.
  Status enterThread() const;
  /// `what: ...` unless `result` is CUDA_SUCCESS. One that ends the context
  /// is every later enter()'s error, too.
  Status check(CUresult result, const char *what);
  /// The same for calls that wait: how far the device is cannot be known after
  /// any error of theirs, so that each ends the device's use.
  Status checkWait(CUresult result, const char *what);

  /// Waits for all that the stream has, and for what was recorded in the event.
  /// Of a rank of several, what waits for a group that has ended is given up.
  Status synchronize(CUstream stream);
  Status synchronize(CUevent event);

  /// The device's end of a group; null: it is in none.
  NcclRank *rank() const { return joined; }
  void setRank(NcclRank *rank) { joined = rank; }

  Result<DeviceMemory> memory();
  /// Zeros. Errors: more than there is.
  Result<CudaMemory> allocate(uint64_t bytes, MemoryKind kind);
  void release(CudaMemory &memory);

  CudaFunctions cu;

private:
  explicit CudaContext(const CudaFunctions &cu) : cu(cu) {}
  Status open(const CudaDeviceOptions &options);
  Status preparePool();
  Status await(const auto &query, const char *what);
  CUresult allocateDevice(CUdeviceptr &address, uint64_t bytes);
  Status clear(const CudaMemory &memory, uint64_t bytes);
  Status outOfMemory(uint64_t bytes);

  CudaProperties gpu;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr; ///< null: the device has none
  CUstream stream = nullptr;   ///< of allocations and clearing
  NcclRank *joined = nullptr;
  Status broken; ///< why nothing works any more
};

/// Memory that CUDA kernels use. Owns it unless it is shared, whose owner
/// outlives it, as `context` does.
class CudaBuffer final : public Buffer {
public:
  CudaBuffer(CudaContext &context, CudaMemory memory, uint64_t bytes,
             bool isShared = false)
      : Buffer(bytes), context(context), memory(memory), isShared(isShared) {}
  ~CudaBuffer() override {
    if (!isShared)
      context.release(memory);
  }

  void *hostPointer() override { return memory.host; }
  CUdeviceptr address() const { return memory.address; }

  /// `buffer`, which the CUDA device made, as what it is.
  static CudaBuffer &of(Buffer &buffer) {
    return static_cast<CudaBuffer &>(buffer);
  }

private:
  CudaContext &context;
  CudaMemory memory;
  bool isShared;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDACONTEXT_H
