//===- DeviceSteps.h - A stream for a single step ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests that are not about streams: each call is a stream of its own, and
// over when it returns.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICESTEPS_H
#define KF_TEST_RUNTIME_DEVICESTEPS_H

#include "runtime/devices/Device.h"

namespace kf::test {

inline Status writeAndWait(Device &device, Buffer &target, uint64_t offset,
                           const void *data, uint64_t bytes) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.createStream());
  KF_RETURN_IF_ERROR(stream->upload(
      target, offset, {static_cast<const std::byte *>(data), bytes}));
  return stream->synchronize();
}

inline Status readAndWait(Device &device, Buffer &source, uint64_t offset,
                          void *data, uint64_t bytes) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.createStream());
  KF_RETURN_IF_ERROR(stream->download(source, offset,
                                      {static_cast<std::byte *>(data), bytes}));
  return stream->synchronize();
}

inline Status runAndWait(Device &device, Instance &instance,
                         std::span<const int64_t> scalars,
                         CancelFlag cancelled = nullptr) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.createStream());
  KF_RETURN_IF_ERROR(stream->enqueue(instance, scalars));
  return stream->synchronize(cancelled);
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_DEVICESTEPS_H
