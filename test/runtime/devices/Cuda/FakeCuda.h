//===- FakeCuda.h - A driver of GPUs that are not there ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of CudaDriver.h over the host's memory. A stream's work is done
// when somebody asks for it, so that whoever does not wait finds memory as it
// was; kernels are functions of the test, which an image names in a comment of
// its PTX, "// runs NAME BUFFERS". Every function can be made to fail, and
// calls that a driver would not survive are remembered as violations.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICES_CUDA_FAKECUDA_H
#define KF_TEST_RUNTIME_DEVICES_CUDA_FAKECUDA_H

#include "runtime/devices/Cuda/CudaDriver.h"

#include <array>
#include <cstdint>
#include <elf.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kf::test {

/// One at a time; outlives all that uses it.
class FakeCuda {
public:
  FakeCuda();
  ~FakeCuda();
  FakeCuda(const FakeCuda &) = delete;
  FakeCuda &operator=(const FakeCuda &) = delete;

  const CudaFunctions &functions() const { return table; }

  //===--------------------------------------------------------------------===//
  // The machine
  //===--------------------------------------------------------------------===//

  struct Gpu {
    std::string name = "Fake GPU";
    int major = 9, minor = 0;
    uint64_t memory = uint64_t(1) << 30;
    bool hasPools = true;
  };
  std::vector<Gpu> gpus = {Gpu()};
  int driverVersion = 12040;
  int threadsPerBlock = 1024;   ///< that a kernel's registers allow
  int staticShared = 0;         ///< bytes that a kernel's variables take
  int sharedMemory = 227 << 10; ///< bytes that a block may have
  /// Every cubin runs "scale" with so many buffers; none: no cubin fits.
  std::optional<size_t> cubinBuffers;

  using Dim = std::array<unsigned, 3>;
  /// Runs all blocks of a launch.
  using Kernel = std::function<void(Dim grid, Dim block,
                                    std::span<void *const> arguments)>;
  std::map<std::string, Kernel> kernels; ///< by name

  //===--------------------------------------------------------------------===//
  // What is seen and done from outside
  //===--------------------------------------------------------------------===//

  /// Asked before each call; any error is what the call returns then, and it
  /// has no effect.
  std::function<CUresult(const std::string &function)> answer;
  /// Until failNothing(), calls of `function` fail from number `from` on, so
  /// many times.
  void fail(const std::string &function, CUresult result, int from = 0,
            int times = 1 << 20);
  void failNothing() { answer = nullptr; }
  /// From now on nothing works, as after an access to memory that is not there.
  void fault(CUresult error) { broken = error; }

  /// The share of its multiprocessor's memory that each kernel asked for.
  std::vector<int> carveouts;
  /// Edges of graphs that let a kernel begin early.
  int earlyEdges = 0;
  /// Calls of each function.
  std::map<std::string, int> calls;
  int allCalls = 0;
  /// What no driver survives: calls without a context, of handles that are
  /// gone, on memory that is not there.
  std::vector<std::string> violations;
  /// What was made and not destroyed: "stream", "memory", ...
  std::vector<std::string> leftOver() const;
  uint64_t usedMemory() const;

  //===--------------------------------------------------------------------===//
  // For libraries that work with the driver
  //===--------------------------------------------------------------------===//

  struct Work {
    std::function<void()> run;
    /// Whether it can be run by now; null: at any time.
    std::function<bool()> isReady = nullptr;
  };
  using MakeWork = std::function<Work()>;
  /// Gives a stream work; if it captures, its graph, which makes it at each
  /// launch.
  void enqueue(CUstream stream, const MakeWork &make);
  /// Has the graph that a stream captures, and what is made of it, hold
  /// `reference`.
  void retain(CUstream stream, std::shared_ptr<void> reference);
  /// What the stream was given last is a kernel.
  void isKernel(CUstream stream);
  /// Work of a library that a stream captures, launched so that it may begin
  /// when the kernel before lets it, and which does not wait for its end.
  void beginsEarly(CUstream stream);
  bool isCapturing(CUstream stream) const { return captures.count(stream) > 0; }
  std::byte *memoryAt(const void *address, uint64_t bytes, const char *what);
  void violate(const std::string &what) { violations.push_back(what); }
  /// Held by every call.
  std::recursive_mutex mutex;

private:
  friend struct FakeCalls;
  struct StreamState {
    std::vector<Work> work; ///< all of it, from the first
    size_t done = 0;
  };
  using Stream = std::shared_ptr<StreamState>;
  struct EventState {
    Stream stream; ///< null: never recorded
    size_t ticket = 0;
    bool isTimed = false;
    std::shared_ptr<uint64_t> nanoseconds; ///< when it was reached
  };
  struct Block {
    uint64_t bytes = 0;
    bool isPinned = false;
    std::unique_ptr<std::byte[]> memory;
  };
  struct Function {
    Kernel run;
    size_t buffers = 0;
    unsigned dynamicShared = 0; ///< bytes that launches may give
  };
  struct Launch {
    Kernel run;
    Dim grid{}, block{};
    std::vector<void *> arguments;
  };
  struct Graph {
    std::vector<MakeWork> nodes;
    size_t inRow = 0; ///< nodes with an edge from the one before, and the first
    std::set<CUgraphNode> kernels; ///< that are nodes, of the program's
    std::vector<std::shared_ptr<void>> references;
  };
  struct Capture {
    CUgraph graph = nullptr;
    std::vector<CUgraphNode> ends; ///< what the next node follows
  };

  CUgraphNode addNode(Graph &graph, MakeWork make,
                      std::span<const CUgraphNode> dependencies);
  void addEdge(Graph &graph, CUgraphNode from, CUgraphNode to);
  void push(CUstream stream, std::function<void()> run);
  void runTo(StreamState &stream, size_t ticket);
  CUresult allocate(void **address, uint64_t bytes, bool isPinned);
  void release(uint64_t address, bool isPinned);
  void checkRange(uint64_t address, uint64_t bytes, const char *what);
  Launch launchOf(CUfunction function, Dim grid, Dim block, unsigned shared,
                  void **parameters);
  template <typename T, typename Handle>
  T *find(std::map<Handle, T> &all, Handle handle, const char *what);
  template <typename Handle> Handle newHandle();

  CudaFunctions table;
  uint64_t handles = 0;
  CUresult broken = CUDA_SUCCESS;
  std::map<uint64_t, Block> memory; ///< by address
  uint64_t pooled = 0;              ///< bytes that the pool holds unused
  int contexts = 0;                 ///< references to the primary context
  int pools = 0;                    ///< that were made, and not destroyed
  std::map<CUstream, Stream> streams;
  std::map<CUevent, EventState> events;
  std::map<CUmodule, Function> modules;
  std::map<CUfunction, Function> functionsOf;
  std::map<CUgraph, Graph> graphs;
  std::map<CUstream, Capture> captures;
  std::map<CUgraphExec, std::shared_ptr<Graph>> executables;
};

/// PTX of z = a * x over n_tokens floats in blocks of 64, for real devices and
/// for a FakeCuda with scaleKernel(), its length before it.
std::string scaleImage();
FakeCuda::Kernel scaleKernel();

/// A cubin's tables: the null section, and one of 8 bytes behind the header.
struct Cubin {
  Elf64_Ehdr header = {};
  uint64_t content = 0;
  Elf64_Shdr sections[2] = {};

  Cubin();
  std::string bytes() const;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_DEVICES_CUDA_FAKECUDA_H
