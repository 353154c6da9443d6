//===- CudaInstance.cpp - Graphs of a program's runs ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaInstance.h"

#include <algorithm>

using namespace kf;

namespace {

bool isEmpty(const GpuGrid &grid) {
  return grid[0] == 0 || grid[1] == 0 || grid[2] == 0;
}

} // namespace

Result<std::unique_ptr<Instance>>
CudaInstance::create(CudaContext &context, const CudaProgram &program,
                     const BindingTable &table) {
  std::unique_ptr<CudaInstance> self(new CudaInstance(context, program, table));
  KF_ASSIGN_OR_RETURN(
      self->scalarMemory,
      context.allocate(KF_SCALAR_COUNT * sizeof(int64_t), MemoryKind::Device));
  return std::unique_ptr<Instance>(std::move(self));
}

CudaInstance::~CudaInstance() {
  (void)context.enter();
  for (const Recording &recording : recordings)
    if (recording.graph)
      (void)context.cu.cuGraphExecDestroy(recording.graph);
  context.release(scalarMemory);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Result<CudaInstance::Launch> CudaInstance::launchOf(size_t dispatch,
                                                    const GpuGrid &grid,
                                                    int64_t pages) const {
  const DispatchSpec &spec = program().dispatches[dispatch];
  Launch launch;
  launch.function = loaded.functionOf(spec);
  launch.grid = grid;
  const KernelSpec &kernel = program().kernels[spec.kernel];
  launch.block = kernel.workgroupSize;
  launch.sharedBytes = static_cast<unsigned>(kernel.dynamicBytes);
  for (const kf_binding &binding : spec.bindings) {
    KF_ASSIGN_OR_RETURN(uint64_t offset,
                        byteOffsetOf(program(), binding, pages));
    launch.addresses.push_back(
        CudaBuffer::of(*bufferOf(buffers(), binding)).address() + offset);
  }
  launch.addresses.push_back(scalarMemory.address);
  for (CUdeviceptr &address : launch.addresses)
    launch.parameters.push_back(&address);
  return launch;
}

Status CudaInstance::launchEach(CUstream stream,
                                std::span<const int64_t> scalars,
                                const std::function<Status(size_t)> &mark) {
  const int64_t pages = scalars[KF_SCALAR_CACHE_PAGES];
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, evaluateGrids(scalars));
  for (size_t i = 0; i < grids.size(); ++i) {
    KF_ASSIGN_OR_RETURN(Launch launch, launchOf(i, grids[i], pages));
    KF_RETURN_IF_ERROR(mark(i));
    if (isEmpty(launch.grid))
      continue;
    KF_RETURN_IF_ERROR(
        context
            .check(context.cu.cuLaunchKernel(
                       launch.function, launch.grid[0], launch.grid[1],
                       launch.grid[2], launch.block[0], launch.block[1],
                       launch.block[2], launch.sharedBytes, stream,
                       launch.parameters.data(), nullptr),
                   "cuLaunchKernel")
            .in(atDispatch(i)));
  }
  return mark(grids.size());
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

bool CudaInstance::beginsEarly(size_t dispatch) const {
  constexpr int hopper = 9;
  return context.properties().major >= hopper &&
         context.cu.cuGraphAddDependencies &&
         program().kernels[program().dispatches[dispatch].kernel].waits;
}

/// Each dispatch behind the one before.
Status CudaInstance::addNodes(CUgraph graph, const std::vector<GpuGrid> &grids,
                              int64_t pages) const {
  CUgraphNode before = nullptr;
  for (size_t i = 0; i < grids.size(); ++i) {
    if (isEmpty(grids[i]))
      continue;
    KF_ASSIGN_OR_RETURN(Launch launch, launchOf(i, grids[i], pages));
    CUDA_KERNEL_NODE_PARAMS node;
    node.func = launch.function;
    node.gridDimX = launch.grid[0];
    node.gridDimY = launch.grid[1];
    node.gridDimZ = launch.grid[2];
    node.blockDimX = launch.block[0];
    node.blockDimY = launch.block[1];
    node.blockDimZ = launch.block[2];
    node.sharedMemBytes = launch.sharedBytes;
    node.kernelParams = launch.parameters.data(); // copied
    const bool isEarly = before && beginsEarly(i);
    CUgraphNode added = nullptr;
    KF_RETURN_IF_ERROR(context
                           .check(context.cu.cuGraphAddKernelNode(
                                      &added, graph, &before,
                                      before && !isEarly ? 1 : 0, &node),
                                  "cuGraphAddKernelNode")
                           .in(atDispatch(i)));
    if (isEarly) {
      CUgraphEdgeData edge;
      edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
      KF_RETURN_IF_ERROR(context
                             .check(context.cu.cuGraphAddDependencies(
                                        graph, &before, &added, &edge, 1),
                                    "cuGraphAddDependencies")
                             .in(atDispatch(i)));
    }
    before = added;
  }
  return {};
}

Result<CUgraphExec> CudaInstance::record(const std::vector<GpuGrid> &grids,
                                         int64_t pages) const {
  if (std::ranges::all_of(grids, isEmpty))
    return CUgraphExec(nullptr);
  CUgraph graph = nullptr;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuGraphCreate(&graph, 0), "cuGraphCreate"));
  CUgraphExec result = nullptr;
  Status status = addNodes(graph, grids, pages);
  if (status)
    status = context.check(context.cu.cuGraphInstantiate(&result, graph, 0),
                           "cuGraphInstantiateWithFlags");
  (void)context.cu.cuGraphDestroy(graph);
  KF_RETURN_IF_ERROR(status);
  return result;
}

Result<CUgraphExec> CudaInstance::graphFor(std::span<const int64_t> scalars) {
  // From token to token, the scalars are mostly the same.
  if (last && std::ranges::equal(scalars, last->first))
    return recordings[last->second].graph;
  const int64_t pages = scalars[KF_SCALAR_CACHE_PAGES];
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, evaluateGrids(scalars));
  auto found = std::ranges::find_if(recordings, [&](const Recording &each) {
    return each.pages == pages && each.grids == grids;
  });
  if (found == recordings.end()) {
    recordings.reserve(kKeptRecordings);
    KF_ASSIGN_OR_RETURN(CUgraphExec graph, record(grids, pages));
    Recording made = {std::move(grids), pages, graph, 0};
    if (recordings.size() < kKeptRecordings) {
      recordings.push_back(std::move(made));
      found = std::prev(recordings.end());
    } else {
      // One that is at work is freed by the driver when it has ended.
      found = std::ranges::min_element(recordings, {}, &Recording::turn);
      if (found->graph)
        (void)context.cu.cuGraphExecDestroy(found->graph);
      *found = std::move(made);
    }
  }
  found->turn = ++turns;
  GpuScalars &known =
      last.emplace(GpuScalars(),
                   static_cast<size_t>(found - recordings.begin()))
          .first;
  std::ranges::copy(scalars, known.begin());
  return found->graph;
}
