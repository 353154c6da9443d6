//===- Device.h - Where programs run ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface that CPU, Vulkan, CUDA and the reference interpreter implement.
// A device loads an Executable, binds its buffers once, and replays its
// dispatches with new scalars for every step.
//
// Ownership: a Buffer and a LoadedProgram must not outlive their Device.
// Threads: one thread at a time may use a Device and what it made. Failure:
// every call that can fail returns a Status; none aborts.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICE_H
#define KF_RUNTIME_DEVICE_H

#include "runtime/Cancellation.h"
#include "runtime/Executable.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Memory that kernels of one device can read and write.
class Buffer {
public:
  virtual ~Buffer() = default;
  uint64_t size() const { return bytes; }
  /// The buffer's memory where the host shares it (CPU, reference), else null.
  virtual void *hostPointer() { return nullptr; }

protected:
  explicit Buffer(uint64_t bytes) : bytes(bytes) {}

private:
  uint64_t bytes;
};

/// Buffers of one program, by index; null where the program has none. All of
/// at least the size that the Executable states. Not owned.
struct BindingTable {
  Buffer *arena = nullptr;
  std::vector<Buffer *> weights, caches, inputs, outputs;
};

/// An Executable made ready on a device.
class LoadedProgram {
public:
  virtual ~LoadedProgram() = default;
  /// Fixes the buffers of all later runs (records command buffers, captures
  /// graphs). May be called again.
  virtual Status bind(const BindingTable &table) = 0;
  /// Runs every dispatch in order and returns when results are in the bound
  /// buffers. `scalars` has KF_SCALAR_COUNT entries. Once `cancelled` is set,
  /// it may end between two dispatches; what dispatches write is undefined
  /// then.
  virtual Status run(std::span<const int64_t> scalars,
                     CancelFlag cancelled = nullptr) = 0;
};

class Device {
public:
  virtual ~Device() = default;
  /// "cpu", "vulkan", ...; equals Executable::target of what it can load.
  virtual std::string name() const = 0;
  /// One line for `kf-run devices`: model, features, limits.
  virtual std::string description() const = 0;
  /// Workgroups that run at the same time; 0: unknown.
  virtual int workers() const { return 0; }

  /// A buffer of zeros.
  virtual Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) = 0;
  /// A buffer over host memory that stays valid and unchanged as long as it,
  /// aligned as its elements are; devices without shared memory copy.
  virtual Result<std::unique_ptr<Buffer>> wrap(const void *data,
                                               uint64_t bytes) = 0;
  virtual Status write(Buffer &dst, uint64_t offset, const void *src,
                       uint64_t bytes) = 0;
  virtual Status read(Buffer &src, uint64_t offset, void *dst,
                      uint64_t bytes) = 0;
  virtual Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable) = 0;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICE_H
