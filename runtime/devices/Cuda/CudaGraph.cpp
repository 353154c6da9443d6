//===- CudaGraph.cpp - Making a graph of a run ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaGraph.h"

using namespace kf;

CudaGraph::~CudaGraph() {
  if (recorder) {
    graph = nullptr;
    (void)context.cu.cuStreamEndCapture(recorder, &graph);
  }
  if (graph)
    (void)context.cu.cuGraphDestroy(graph);
}

Status CudaGraph::begin(CUstream stream) {
  const CudaFunctions &cu = context.cu;
  if (!stream)
    return context.check(cu.cuGraphCreate(&graph, 0), "cuGraphCreate");
  KF_RETURN_IF_ERROR(context.check(
      cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
      "cuStreamBeginCapture"));
  recorder = stream;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return context.check(cu.cuStreamGetCaptureInfo(recorder, &status, nullptr,
                                                 &graph, nullptr, nullptr),
                       "cuStreamGetCaptureInfo");
}

Status CudaGraph::add(const CUDA_KERNEL_NODE_PARAMS &kernel, bool isEarly) {
  if (isOnStream)
    return launch(kernel);
  isEarly = isEarly && before;
  CUgraphNode added = nullptr;
  KF_RETURN_IF_ERROR(context.check(
      context.cu.cuGraphAddKernelNode(&added, graph, &before,
                                      before && !isEarly ? 1 : 0, &kernel),
      "cuGraphAddKernelNode"));
  if (isEarly) {
    CUgraphEdgeData edge;
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    KF_RETURN_IF_ERROR(context.check(
        context.cu.cuGraphAddDependencies(graph, &before, &added, &edge, 1),
        "cuGraphAddDependencies"));
  }
  before = added;
  return {};
}

/// A kernel behind what the stream has: the stream knows what that is, and
/// afterwards has this kernel's node alone.
Status CudaGraph::launch(const CUDA_KERNEL_NODE_PARAMS &kernel) {
  const CudaFunctions &cu = context.cu;
  KF_RETURN_IF_ERROR(context.check(
      cu.cuLaunchKernel(kernel.func, kernel.gridDimX, kernel.gridDimY,
                        kernel.gridDimZ, kernel.blockDimX, kernel.blockDimY,
                        kernel.blockDimZ, kernel.sharedMemBytes, recorder,
                        kernel.kernelParams, nullptr),
      "cuLaunchKernel"));
  return findLastOfStream();
}

/// What the stream was given last is the last node.
Status CudaGraph::findLastOfStream() {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *nodes = nullptr;
  size_t count = 0;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuStreamGetCaptureInfo(
                        recorder, &status, nullptr, nullptr, &nodes, &count),
                    "cuStreamGetCaptureInfo"));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1)
    return Status::error("a stream that captures has " + std::to_string(count) +
                             " nodes at its end, not the last one's",
                         StatusCode::Internal);
  before = nodes[0];
  isOnStream = false;
  return {};
}

/// What the stream is given follows the last node.
Status CudaGraph::goOnBehindNode() {
  if (isOnStream || !before)
    return {};
  return context.check(
      context.cu.cuStreamUpdateCaptureDependencies(
          recorder, &before, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
      "cuStreamUpdateCaptureDependencies");
}

/// What follows begins when the last node has ended, even if that lets others
/// begin early and what follows does not wait itself: symmetric kernels of NCCL
/// 2.28.3 to 2.30.6 are launched so and read what is not written yet.
Status CudaGraph::endNode() {
  if (isOnStream)
    KF_RETURN_IF_ERROR(findLastOfStream());
  if (!before)
    return {};
  CUgraphNode end = nullptr;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuGraphAddEmptyNode(&end, graph, &before, 1),
                    "cuGraphAddEmptyNode"));
  before = end;
  return {};
}

Status CudaGraph::enqueue(const std::function<Status(CUstream)> &work) {
  KF_RETURN_IF_ERROR(endNode());
  KF_RETURN_IF_ERROR(goOnBehindNode());
  isOnStream = true;
  return work(recorder);
}

Result<CUgraphExec> CudaGraph::finish() {
  if (recorder) {
    KF_RETURN_IF_ERROR(goOnBehindNode());
    graph = nullptr; // who ends a capture gets it
    KF_RETURN_IF_ERROR(context.check(
        context.cu.cuStreamEndCapture(std::exchange(recorder, nullptr), &graph),
        "cuStreamEndCapture"));
  }
  CUgraphExec result = nullptr;
  KF_RETURN_IF_ERROR(
      context.check(context.cu.cuGraphInstantiate(&result, graph, 0),
                    "cuGraphInstantiateWithFlags"));
  return result;
}
