//===- CudaInstance.cpp - Graphs of a program's runs ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaInstance.h"

#include "runtime/devices/Cuda/NcclRank.h"

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
  KF_RETURN_IF_ERROR(self->takeScratch());
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

Result<CUdeviceptr> CudaInstance::addressOf(const kf_binding &binding,
                                            int64_t pages) const {
  KF_ASSIGN_OR_RETURN(uint64_t offset, byteOffsetOf(program(), binding, pages));
  return CudaBuffer::of(*bufferOf(buffers(), binding)).address() + offset;
}

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
    KF_ASSIGN_OR_RETURN(CUdeviceptr address, addressOf(binding, pages));
    launch.addresses.push_back(address);
  }
  launch.addresses.push_back(scalarMemory.address);
  for (CUdeviceptr &address : launch.addresses)
    launch.parameters.push_back(&address);
  return launch;
}

/// What a recording is made for: a collective's rows are in its graph.
Result<std::vector<GpuGrid>>
CudaInstance::gridsFor(std::span<const int64_t> scalars) const {
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, evaluateGrids(scalars));
  for (size_t i = 0; i < grids.size(); ++i)
    if (const auto &collective = program().dispatches[i].collective)
      grids[i][0] = static_cast<uint32_t>(
          resolveShape(std::array{collective->rows}, scalars).front());
  return grids;
}

Status CudaInstance::launchEach(CUstream stream,
                                std::span<const int64_t> scalars,
                                const std::function<Status(size_t)> &mark) {
  const CudaFunctions &cu = context.cu;
  const int64_t pages = scalars[KF_SCALAR_CACHE_PAGES];
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, gridsFor(scalars));
  for (size_t i = 0; i < grids.size(); ++i) {
    if (program().dispatches[i].collective) {
      KF_ASSIGN_OR_RETURN(CUgraphExec graph, record(grids, pages, i, i + 1));
      Status status = mark(i);
      if (graph && status)
        status = context.check(cu.cuGraphLaunch(graph, stream), "cuGraphLaunch")
                     .in(atDispatch(i));
      if (graph) // at work, it is freed by the driver when it has ended
        (void)cu.cuGraphExecDestroy(graph);
      KF_RETURN_IF_ERROR(status);
      continue;
    }
    KF_ASSIGN_OR_RETURN(Launch launch, launchOf(i, grids[i], pages));
    KF_RETURN_IF_ERROR(mark(i));
    if (isEmpty(launch.grid))
      continue;
    KF_RETURN_IF_ERROR(
        context
            .check(cu.cuLaunchKernel(launch.function, launch.grid[0],
                                     launch.grid[1], launch.grid[2],
                                     launch.block[0], launch.block[1],
                                     launch.block[2], launch.sharedBytes,
                                     stream, launch.parameters.data(), nullptr),
                   "cuLaunchKernel")
            .in(atDispatch(i)));
  }
  return mark(grids.size());
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Memory for the largest step's collectives.
Status CudaInstance::takeScratch() {
  const auto sizes = program().largestSizes();
  uint64_t bytes = 0;
  for (const DispatchSpec &dispatch : program().dispatches)
    if (const auto &collective = dispatch.collective) {
      const auto most = static_cast<uint64_t>(
          resolveShape(std::array{collective->rows}, sizes).front());
      bytes = std::max({bytes, context.rank()->scratchBytes(*collective, most),
                        context.rank()->scratchBytes(*collective, /*rows=*/1)});
    }
  if (bytes > 0) {
    KF_ASSIGN_OR_RETURN(scratch, context.rank()->scratch(bytes));
  }
  return {};
}

Status CudaInstance::addCollective(CudaGraph &graph, const DispatchSpec &spec,
                                   uint64_t rows, int64_t pages) const {
  KF_ASSIGN_OR_RETURN(CUdeviceptr source,
                      addressOf(spec.bindings.front(), pages));
  KF_ASSIGN_OR_RETURN(CUdeviceptr target,
                      addressOf(spec.bindings.back(), pages));
  return graph.enqueue([&](CUstream stream) {
    return context.rank()->enqueue(*spec.collective, rows, source, target,
                                   scratch ? scratch->address() : 0, stream);
  });
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

Status CudaInstance::addNode(CudaGraph &graph, size_t dispatch,
                             const GpuGrid &grid, int64_t pages) const {
  const DispatchSpec &spec = program().dispatches[dispatch];
  if (spec.collective)
    return addCollective(graph, spec, grid[0], pages);
  KF_ASSIGN_OR_RETURN(Launch launch, launchOf(dispatch, grid, pages));
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
  return graph.add(node, beginsEarly(dispatch));
}

/// Each dispatch behind the one before.
Result<CUgraphExec> CudaInstance::record(const std::vector<GpuGrid> &grids,
                                         int64_t pages, size_t begin,
                                         size_t end) const {
  const std::span recorded = std::span(grids).subspan(begin, end - begin);
  if (std::ranges::all_of(recorded, isEmpty))
    return CUgraphExec(nullptr);
  CUstream recorder = nullptr;
  for (size_t i = begin; i < end; ++i)
    if (program().dispatches[i].collective && !isEmpty(grids[i]))
      recorder = context.rank()->recorder();
  CudaGraph graph(context);
  KF_RETURN_IF_ERROR(graph.begin(recorder));
  for (size_t i = begin; i < end; ++i)
    if (!isEmpty(grids[i]))
      KF_RETURN_IF_ERROR(addNode(graph, i, grids[i], pages).in(atDispatch(i)));
  return graph.finish();
}

Result<CUgraphExec> CudaInstance::graphFor(std::span<const int64_t> scalars) {
  // From token to token, the scalars are mostly the same.
  if (last && std::ranges::equal(scalars, last->first))
    return recordings[last->second].graph;
  const int64_t pages = scalars[KF_SCALAR_CACHE_PAGES];
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, gridsFor(scalars));
  auto found = std::ranges::find_if(recordings, [&](const Recording &each) {
    return each.pages == pages && each.grids == grids;
  });
  if (found == recordings.end()) {
    recordings.reserve(kKeptRecordings);
    KF_ASSIGN_OR_RETURN(CUgraphExec graph,
                        record(grids, pages, 0, grids.size()));
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
