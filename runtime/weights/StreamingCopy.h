//===- StreamingCopy.h - Copies that go past the caches ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_STREAMINGCOPY_H
#define KF_RUNTIME_WEIGHTS_STREAMINGCOPY_H

#include <cstddef>

namespace kf {

/// memcpy() for what nobody reads soon: an ordinary store reads its cache line
/// first, and these do not. Fast where `dst` is a multiple of 16. Other threads
/// see it after the writer's endStreaming() and whatever orders them then.
void streamingCopy(std::byte *dst, const std::byte *src, size_t bytes);
void endStreaming();

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_STREAMINGCOPY_H
