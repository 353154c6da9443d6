//===- CudaDriver.cpp - Functions of NVIDIA's driver ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaDriver.h"

#include "runtime/devices/Cuda/CudaDevice.h"

#include <dlfcn.h>

using namespace kf;

namespace {

/// "12.4" of 12040.
std::string versionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Status tooOld(const std::string &what) {
  return Status::error(what + ": install NVIDIA's driver 525 (CUDA " +
                           versionText(leastCudaVersion) + ") or later",
                       StatusCode::Unavailable);
}

/// Null if there is none. It is never closed: the driver leaves threads behind.
void *openLibrary() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }

} // namespace

bool kf::hasCudaDriver() { return openLibrary() != nullptr; }

Result<CudaFunctions> kf::loadCudaFunctions() {
  void *library = openLibrary();
  if (!library)
    return Status::error("no NVIDIA driver (libcuda.so.1): install one, or let "
                         "LD_LIBRARY_PATH say where it is",
                         StatusCode::Unavailable);
  CudaFunctions cu;
#define KF_LOAD(name, symbol, parameters)                                      \
  cu.name = reinterpret_cast<decltype(cu.name)>(dlsym(library, symbol));       \
  if (!cu.name)                                                                \
    return tooOld("libcuda.so.1 has no " symbol);
  KF_CUDA_FUNCTIONS(KF_LOAD)
#undef KF_LOAD
  cu.cuFuncGetParamInfo = reinterpret_cast<decltype(cu.cuFuncGetParamInfo)>(
      dlsym(library, "cuFuncGetParamInfo"));
  cu.cuGraphAddDependencies =
      reinterpret_cast<decltype(cu.cuGraphAddDependencies)>(
          dlsym(library, "cuGraphAddDependencies_v2"));
  return cu;
}

Result<CudaFunctions> kf::startCuda(const CudaFunctions *driver) {
  CudaFunctions cu;
  if (driver) {
    cu = *driver;
  } else {
    KF_ASSIGN_OR_RETURN(cu, loadCudaFunctions());
  }
  int version = 0; // can be asked before cuInit
  KF_RETURN_IF_ERROR(
      cudaStatus(cu, cu.cuDriverGetVersion(&version), "cuDriverGetVersion"));
  if (version < leastCudaVersion)
    return tooOld("the NVIDIA driver has CUDA " + versionText(version));
  const CUresult result = cu.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    return Status::error("the NVIDIA driver finds no device",
                         StatusCode::Unavailable);
  if (result == CUDA_ERROR_STUB_LIBRARY)
    return Status::error("libcuda.so.1 is the stub that programs are linked "
                         "with, not a driver: take its folder out of "
                         "LD_LIBRARY_PATH",
                         StatusCode::Unavailable);
  if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
    return Status::error("libcuda.so.1 and the kernel's NVIDIA driver are of "
                         "different versions: install both anew, or restart",
                         StatusCode::Unavailable);
  KF_RETURN_IF_ERROR(cudaStatus(cu, result, "cuInit"));
  return cu;
}

/// What a caller can do about an error of the driver.
static StatusCode codeOf(CUresult result) {
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return StatusCode::OutOfMemory;
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return StatusCode::Unsupported;
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_STUB_LIBRARY:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    return StatusCode::Unavailable;
  default:
    return StatusCode::Internal;
  }
}

Status kf::cudaStatus(const CudaFunctions &cu, CUresult result,
                      const char *what) {
  if (result == CUDA_SUCCESS)
    return {};
  const char *name = nullptr, *text = nullptr;
  std::string message = std::string(what) + ": ";
  if (cu.cuGetErrorName(result, &name) == CUDA_SUCCESS && name)
    message += name;
  else
    message += "CUresult " + std::to_string(static_cast<int>(result));
  if (cu.cuGetErrorString(result, &text) == CUDA_SUCCESS && text)
    message += std::string(", ") + text;
  return Status::error(std::move(message), codeOf(result));
}

bool kf::isSticky(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_EXTERNAL_DEVICE:
    return true;
  default:
    return false;
  }
}
