//===- CudaInstance.h - Graphs of a program's runs --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program bound to buffers. A run is one CUDA graph, made once for a list of
// grid sizes; what kernels read of a step's sizes is in device memory, which
// the stream writes where it changes.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDAINSTANCE_H
#define KF_RUNTIME_DEVICES_CUDA_CUDAINSTANCE_H

#include "runtime/devices/Cuda/CudaGraph.h"
#include "runtime/devices/Cuda/CudaProgram.h"
#include "runtime/devices/GpuInstance.h"

#include <functional>
#include <memory>

namespace kf {

/// `program` and its context outlive it.
class CudaInstance final : public GpuInstance {
public:
  static Result<std::unique_ptr<Instance>> create(CudaContext &context,
                                                  const CudaProgram &program,
                                                  const BindingTable &table);
  ~CudaInstance() override;

  /// The graph for scalars that were checked; null if no dispatch has a
  /// workgroup. Valid until the next call; work with it may go on after that.
  Result<CUgraphExec> graphFor(std::span<const int64_t> scalars);
  /// Launches each dispatch by itself, after mark(its number), and calls mark
  /// once more behind the last. A collective is a graph here as well: NCCL may
  /// do other things for one that is not, and all ranks have to do the same.
  Status launchEach(CUstream stream, std::span<const int64_t> scalars,
                    const std::function<Status(size_t)> &mark);

  /// int64 [KF_SCALAR_COUNT], which the stream writes where they change.
  CUdeviceptr scalarAddress() const { return scalarMemory.address; }

private:
  /// A graph, and what it was made for.
  struct Recording {
    std::vector<GpuGrid> grids; ///< [dispatches], of a collective its rows
    int64_t pages = 0;          ///< of the caches
    CUgraphExec graph = nullptr;
    uint64_t turn = 0; ///< the larger, the later it was asked for
  };
  /// The parameters of one launch, in the form that the driver takes.
  struct Launch {
    CUfunction function = nullptr;
    GpuGrid grid{}, block{};
    unsigned sharedBytes = 0; ///< dynamic
    std::vector<CUdeviceptr> addresses;
    std::vector<void *> parameters; ///< of addresses
  };

  CudaInstance(CudaContext &context, const CudaProgram &loaded,
               const BindingTable &table)
      : GpuInstance(loaded.program(), table,
                    {context.properties().grid, context.properties().name}),
        context(context), loaded(loaded) {}
  Result<Launch> launchOf(size_t dispatch, const GpuGrid &grid,
                          int64_t pages) const;
  Result<std::vector<GpuGrid>> gridsFor(std::span<const int64_t> scalars) const;
  /// A graph of the dispatches [begin, end); null if none has a workgroup.
  Result<CUgraphExec> record(const std::vector<GpuGrid> &grids, int64_t pages,
                             size_t begin, size_t end) const;
  Status addNode(CudaGraph &graph, size_t dispatch, const GpuGrid &grid,
                 int64_t pages) const;
  Status addCollective(CudaGraph &graph, const DispatchSpec &spec,
                       uint64_t rows, int64_t pages) const;
  Result<CUdeviceptr> addressOf(const kf_binding &binding, int64_t pages) const;
  Status takeScratch();
  /// Whether a dispatch waits itself for the one before.
  bool beginsEarly(size_t dispatch) const;

  CudaContext &context;
  const CudaProgram &loaded;
  CudaMemory scalarMemory;
  std::shared_ptr<CudaBuffer> scratch; ///< of collectives; null: none
  std::vector<Recording> recordings;
  uint64_t turns = 0;
  /// The scalars of the last graphFor(), and the number of its recording.
  std::optional<std::pair<GpuScalars, size_t>> last;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDAINSTANCE_H
