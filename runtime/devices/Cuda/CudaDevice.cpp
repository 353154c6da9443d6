//===- CudaDevice.cpp - Programs on NVIDIA GPUs ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaDevice.h"

#include "runtime/core/Exceptions.h"
#include "runtime/devices/Cuda/CudaProgram.h"
#include "runtime/devices/Cuda/CudaStream.h"
#include "runtime/devices/Cuda/NcclRank.h"

using namespace kf;

namespace {

class CudaDevice final : public Device {
public:
  CudaDevice(std::unique_ptr<CudaContext> context, const NcclFunctions *nccl)
      : context(std::move(context)), nccl(nccl) {}

  std::string name() const override { return "cuda"; }
  std::string target() const override { return context->properties().target(); }
  bool runsAlone() const override { return true; }
  int64_t promptRows() const override { return 2048; }
  bool takesRowsInTiles() const override { return true; }
  /// Those of wgmma, which no other chip has.
  bool hasTilesBetween() const override {
    return context->properties().chip() == "sm_90a";
  }
  bool roundsBlocks() const override { return true; }
  int64_t textsAtOnce() const override { return 256; }
  std::string description() const override {
    return context->properties().description();
  }

private:
  Result<DeviceMemory> doMemory() const override { return context->memory(); }

  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                             MemoryKind kind) override {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<CudaBuffer> buffer,
                        allocateBuffer(bytes, kind));
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<std::unique_ptr<Buffer>>
  doAllocateArena(const Executable &executable) override {
    if (const CUdeviceptr window = rank ? rank->windowFor(executable) : 0)
      return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(
          *context, CudaMemory{window, nullptr}, executable.arenaBytes,
          /*isShared=*/true));
    return doAllocate(executable.arenaBytes, MemoryKind::Device);
  }

  Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                         uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<CudaBuffer> buffer,
                        allocateBuffer(bytes, MemoryKind::Device));
    if (bytes > 0) {
      if (!loading) {
        KF_ASSIGN_OR_RETURN(loading, CudaStream::create(*context));
      }
      KF_RETURN_IF_ERROR(loading->transfer(
          *buffer, {static_cast<const std::byte *>(data), bytes}));
    }
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<std::unique_ptr<Stream>> doCreateStream() override {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<CudaStream> stream,
                        CudaStream::create(*context));
    return std::unique_ptr<Stream>(std::move(stream));
  }

  Result<std::unique_ptr<Event>> doCreateEvent() override {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<CudaEvent> event,
                        CudaEvent::create(*context));
    return std::unique_ptr<Event>(std::move(event));
  }

  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return CudaProgram::create(*context, executable);
  }

  Status doJoin(Group &group) override {
    KF_ASSIGN_OR_RETURN(rank, NcclRank::join(*context, group, nccl));
    return {};
  }

  Result<std::unique_ptr<CudaBuffer>> allocateBuffer(uint64_t bytes,
                                                     MemoryKind kind) {
    KF_ASSIGN_OR_RETURN(CudaMemory memory, context->allocate(bytes, kind));
    return std::make_unique<CudaBuffer>(*context, memory, bytes);
  }

  std::unique_ptr<CudaContext> context;
  const NcclFunctions *nccl;           ///< null: the machine's
  std::unique_ptr<NcclRank> rank;      ///< null: it is in no group
  std::unique_ptr<CudaStream> loading; ///< of doWrap(); null until it is used
};

} // namespace

Result<std::unique_ptr<Device>>
kf::createCudaDevice(const CudaDeviceOptions &options) try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                      CudaContext::create(options));
  return std::unique_ptr<Device>(
      std::make_unique<CudaDevice>(std::move(context), options.nccl));
} catch (...) {
  return statusOfException();
}

Result<std::vector<CudaDeviceInfo>>
kf::listCudaDevices(const CudaFunctions *driver) try {
  KF_ASSIGN_OR_RETURN(CudaFunctions cu, startCuda(driver));
  int count = 0;
  KF_RETURN_IF_ERROR(
      cudaStatus(cu, cu.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<CudaDeviceInfo> devices;
  for (int index = 0; index < count; ++index) {
    KF_ASSIGN_OR_RETURN(CudaProperties found, readCudaProperties(cu, index));
    const Status usable = checkCapability(found);
    if (usable)
      devices.push_back({found.description(), found.target()});
    else
      devices.push_back({"unavailable: " + usable.message(), ""});
  }
  return devices;
} catch (...) {
  return statusOfException();
}
