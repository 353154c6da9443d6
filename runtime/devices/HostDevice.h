//===- HostDevice.h - Devices in the host's memory --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What devices share whose kernels run in this process: buffers, and streams
// whose work is put off until somebody waits for it, who does it then, on the
// calling thread. So nothing is handed to another thread and back for each
// step, and enqueue() costs next to nothing.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_HOSTDEVICE_H
#define KF_RUNTIME_DEVICES_HOSTDEVICE_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/devices/Device.h"

namespace kf {

/// Memory of its own, or the caller's.
class HostBuffer : public Buffer {
public:
  explicit HostBuffer(AlignedBuffer owned)
      : Buffer(owned.size()), memory(std::move(owned)), base(memory.data()) {}
  /// The caller's memory, which is not written to.
  HostBuffer(const void *data, uint64_t bytes)
      : Buffer(bytes),
        base(static_cast<std::byte *>(const_cast<void *>(data))) {}

  void *hostPointer() override { return base; }
  /// The memory, whether or not hostPointer() shows it.
  std::byte *data() { return base; }

  /// `buffer`, which a HostDevice made, as what it is.
  static HostBuffer &of(Buffer &buffer) {
    return static_cast<HostBuffer &>(buffer);
  }

private:
  AlignedBuffer memory; ///< empty where the memory is the caller's
  std::byte *base;
};

class HostInstance : public Instance {
public:
  /// Runs every dispatch on the calling thread, and others that the device has.
  /// Once `cancelled` is set it ends with Status::cancelled() between two
  /// dispatches. `times`, if not null, gets their times.
  virtual Status run(std::span<const int64_t> scalars, CancelFlag cancelled,
                     DispatchTimes *times) = 0;

protected:
  using Instance::Instance;
};

/// The host's memory; `free` is what the system says it can give without
/// swapping. Any thread.
Result<DeviceMemory> hostMemory();

/// A device whose buffers are HostBuffers and whose instances HostInstances.
class HostDevice : public Device {
private:
  Result<DeviceMemory> doMemory() const override { return hostMemory(); }
  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                             MemoryKind kind) override;
  Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                         uint64_t bytes) override;
  Result<std::unique_ptr<Stream>> doCreateStream() override;
  Result<std::unique_ptr<Event>> doCreateEvent() override;
  Status doJoin(Group & /*group*/) override { return Status(); }
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_HOSTDEVICE_H
