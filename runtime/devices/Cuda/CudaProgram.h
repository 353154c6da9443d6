//===- CudaProgram.h - An Executable on a GPU -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Modules for an Executable's kernels.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDAPROGRAM_H
#define KF_RUNTIME_DEVICES_CUDA_CUDAPROGRAM_H

#include "runtime/devices/Cuda/CudaContext.h"

#include <vector>

namespace kf {

struct CudaImage;

/// `context` outlives it.
class CudaProgram final : public LoadedProgram {
public:
  static Result<std::unique_ptr<LoadedProgram>>
  create(CudaContext &context, const Executable &executable);
  ~CudaProgram() override;

  CUfunction functionOf(const DispatchSpec &dispatch) const {
    return kernels[dispatch.kernel].function;
  }

private:
  struct Kernel {
    int64_t buffers = -1; ///< of its dispatches; -1: never dispatched
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUresult worst = CUDA_SUCCESS; ///< what loading has come to
  };

  CudaProgram(CudaContext &context, const Executable &executable)
      : LoadedProgram(executable), context(context) {}
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override;
  Status loadAll(std::string_view binary);
  /// Counts the buffers of kernels, and checks what dispatches ask of the ABI.
  Status checkDispatches();
  Status checkKernel(const KernelSpec &spec, const CudaImage &image) const;

  // On any thread, one kernel each.

  Status loadKernel(size_t index, const CudaImage &image);
  /// What the driver says against an image.
  Status explain(CUresult result, const CudaImage &image,
                 const char *log) const;
  Status checkFunction(const KernelSpec &spec, Kernel &kernel) const;
  Status prepareFunction(const KernelSpec &spec, Kernel &kernel) const;
  Status checkParameters(const CudaImage &image, Kernel &kernel) const;

  CudaContext &context;
  std::vector<Kernel> kernels;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDAPROGRAM_H
