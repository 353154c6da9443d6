//===- CudaDevice.h - Programs on NVIDIA GPUs -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The "cuda" device: a module for each kernel, and a CUDA graph for each list
// of grid sizes that an instance runs with. The driver is opened at run time,
// so a binary with this device runs on machines that have none.
//
// What it loads: Executable::binary is one image per kernel, in order, each
// preceded by its length in bytes (little-endian u64): PTX text that ends in a
// NUL, or a cubin. Its entry `kf_kernel` takes a pointer to each buffer of a
// dispatch, in order, and then one to the scalars (KF_SCALAR_COUNT int64).
// Workgroups are blocks of KernelSpec::workgroupSize threads;
// KernelSpec::scratchBytes is their shared memory, of which dynamicBytes are
// given at each launch.
//
// Kernels of a graph follow one another. One with KernelSpec::waits may begin
// when all blocks of the one before have begun, or are over: on compute
// capability 9.0 and later its edge in the graph is a programmatic one. Since
// every block waits before it ends, a kernel that has waited for the one before
// has waited for all; and one that does not wait begins when that is over. PTX
// that says it waits and does not is an error. A cubin is believed: its code
// can make wrong numbers in any case, and whatever it waits for, a graph is
// over only when all of its kernels are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
#define KF_RUNTIME_DEVICES_CUDA_CUDADEVICE_H

#include "runtime/devices/Device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kf {

struct CudaFunctions;
struct NcclFunctions;

struct CudaDeviceOptions {
  /// An index into listCudaDevices(). Empty: the first device that is not too
  /// old.
  std::string device;
  /// The driver's functions; null: those of the machine's driver.
  const CudaFunctions *driver = nullptr;
  /// How many devices have to be there, one a rank. The first one that is
  /// opened for several sets the environment: see loadNcclFunctions().
  int64_t ranks = 1;
  /// NCCL's functions, which ranks need; null: those of the machine's library.
  const NcclFunctions *nccl = nullptr;
};

/// Whether a driver is installed on this machine, of use or not.
bool hasCudaDriver();

/// Opens a device, whose work is done in its primary context. Errors: no
/// driver, a driver before CUDA 12, no such device, fewer than ranks, ranks of
/// different chips, one below compute capability 8.0, one that others use
/// alone; for several ranks, those of NCCL's library. Its Device::join() waits
/// for all ranks of the group.
Result<std::unique_ptr<Device>>
createCudaDevice(const CudaDeviceOptions &options = {});

struct CudaDeviceInfo {
  /// Name, compute capability, size; or why it is of no use, behind
  /// "unavailable: ".
  std::string description;
  std::string target; ///< as Device::target(); empty: it is of no use
};

/// The devices of this machine. Errors: no driver, one that is too old, no
/// device.
Result<std::vector<CudaDeviceInfo>>
listCudaDevices(const CudaFunctions *driver = nullptr);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
