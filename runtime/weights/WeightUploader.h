//===- WeightUploader.h - Weights on their way to a device ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_WEIGHTUPLOADER_H
#define KF_RUNTIME_WEIGHTS_WEIGHTUPLOADER_H

#include "runtime/devices/Device.h"
#include "runtime/weights/WeightPacking.h"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace kf {

/// Packs weights, part by part, into pinned memory that is copied to the device
/// while the next part is packed. `device` outlives it. One thread.
class WeightUploader {
public:
  /// Parts have `partBytes` bytes, or what is packed in one go.
  static Result<std::unique_ptr<WeightUploader>> create(Device &device,
                                                        int64_t partBytes);
  /// Bytes of parts for weights of `bytes` in all: long copies, but soon the
  /// first one, and not much more memory than there is to copy.
  static int64_t partBytesFor(int64_t bytes);

  /// Packs `spec` into `target`, which has its size. The last parts are on
  /// their way when this returns; `source` is not read any more. `onPacked`, if
  /// there is one, is told of each part of the weight when it is packed: its
  /// first byte, and how many. After an error the target's content is
  /// undefined.
  Status upload(const WeightSpec &spec, const WeightSource &source,
                Buffer &target, const PackOptions &options,
                const std::function<void(int64_t, int64_t)> &onPacked = {});
  /// Waits for all of it. The first error of all calls so far.
  Status finish();

private:
  struct Slot {
    std::unique_ptr<Buffer> memory; ///< pinned
    std::unique_ptr<Event> copied;
  };

  WeightUploader(Device &device, int64_t partBytes)
      : device(device), partBytes(partBytes) {}
  Result<Slot *> nextSlot(uint64_t bytes);

  Device &device;
  int64_t partBytes;
  std::array<Slot, 2> slots; ///< one is packed while the other is copied
  size_t turn = 0;
  std::unique_ptr<Stream> stream;
  Status failure; ///< that finish() has found
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_WEIGHTUPLOADER_H
