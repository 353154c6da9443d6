//===- FakeDevice.h - Memory and weights for tests --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device that has memory and copies, and counts what is asked of it, but runs
// no programs; and weights that tests set.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_FAKEDEVICE_H
#define KF_TEST_RUNTIME_FAKEDEVICE_H

#include "runtime/devices/HostDevice.h"
#include "runtime/weights/WeightSource.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kf::test {

/// Memory that only copies reach.
class FakeBuffer : public HostBuffer {
public:
  using HostBuffer::HostBuffer;
  void *hostPointer() override { return nullptr; }
};

class FakeDevice : public HostDevice {
public:
  /// With `shared`, the host sees the buffers' memory.
  explicit FakeDevice(bool shared = true) : shared(shared) {}
  std::string name() const override { return "fake"; }
  std::string description() const override { return "a fake"; }

  int wraps = 0;            ///< calls of wrap()
  uint64_t pinnedBytes = 0; ///< that were asked for
  bool refusesPinned = false;

private:
  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                             MemoryKind kind) override {
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    if (kind == MemoryKind::HostPinned) {
      if (refusesPinned)
        return Status::error("no pinned memory is left",
                             StatusCode::OutOfMemory);
      pinnedBytes += bytes;
      return std::unique_ptr<Buffer>(new HostBuffer(std::move(memory)));
    }
    return make(std::move(memory));
  }
  Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                         uint64_t bytes) override {
    ++wraps;
    if (shared)
      return std::unique_ptr<Buffer>(new HostBuffer(data, bytes));
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    std::memcpy(memory.data(), data, bytes);
    return make(std::move(memory));
  }
  Result<std::unique_ptr<LoadedProgram>> doLoad(const Executable &) override {
    return Status::error("a fake has no kernels");
  }
  std::unique_ptr<Buffer> make(AlignedBuffer memory) const {
    if (shared)
      return std::make_unique<HostBuffer>(std::move(memory));
    return std::make_unique<FakeBuffer>(std::move(memory));
  }

  bool shared;
};

class FakeSource : public WeightSource {
public:
  Result<TensorView> find(const std::string &name) const override {
    ++finds[name];
    return describe(name);
  }
  Result<TensorView> describe(const std::string &name) const override {
    auto it = tensors.find(name);
    if (it == tensors.end())
      return Status::error("there is no tensor '" + name + "'");
    return it->second;
  }
  void release(const std::string &name) const override { ++releases[name]; }
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto &[name, view] : tensors)
      result.push_back(name);
    return result;
  }

  std::map<std::string, TensorView> tensors;
  mutable std::map<std::string, int> finds;    ///< calls of find()
  mutable std::map<std::string, int> releases; ///< calls of release()
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_FAKEDEVICE_H
