//===- CudaGraph.h - Making a graph of a run --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph whose nodes follow one another. Kernels are added node by node; what
// libraries enqueue, as collectives, is captured from a stream into the same
// graph, behind what was added and before what will be.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDAGRAPH_H
#define KF_RUNTIME_DEVICES_CUDA_CUDAGRAPH_H

#include "runtime/devices/Cuda/CudaContext.h"

#include <functional>

namespace kf {

/// `context` outlives it. After an error there is nothing to be had of it.
class CudaGraph {
public:
  explicit CudaGraph(CudaContext &context) : context(context) {}
  ~CudaGraph();
  CudaGraph(const CudaGraph &) = delete;
  CudaGraph &operator=(const CudaGraph &) = delete;

  /// Begins an empty graph; `recorder` is a stream without work that captures,
  /// null where no enqueue() follows.
  Status begin(CUstream recorder);
  /// `isEarly`: the kernel waits itself for the one before, if there is one and
  /// it is a kernel.
  Status add(const CUDA_KERNEL_NODE_PARAMS &kernel, bool isEarly);
  /// What `work` gives the stream.
  Status enqueue(const std::function<Status(CUstream)> &work);
  Result<CUgraphExec> finish();

private:
  Status launch(const CUDA_KERNEL_NODE_PARAMS &kernel);
  Status findLastOfStream();
  Status endNode();
  Status goOnBehindNode();

  CudaContext &context;
  CUstream recorder = nullptr; ///< not null: it is capturing
  CUgraph graph = nullptr;     ///< the recorder's, while it is capturing
  CUgraphNode before = nullptr;
  bool isOnStream = false; ///< the last that was added is the stream's
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDAGRAPH_H
