//===- CacheContents.h - Keys and values in a cache's layout ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Caches of one model differ in their layout from device to device (CacheSpec).
// Here they are tensors, [layers, pages, 2, kvHeads, page, headDim] in the
// cache's type, so that one can be filled as another, and compared with it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_CACHECONTENTS_H
#define KF_RUNTIME_TUNING_CACHECONTENTS_H

#include "runtime/core/Tensor.h"
#include "runtime/program/Executable.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kf {

/// Random numbers in [-1, 1), rounded to the cache's type, for a pool of
/// `pages` pages; the same for equal seeds whatever the layout. Errors: no such
/// cache, no memory.
Result<HostTensor> makeCacheContents(const CacheSpec &spec, int64_t pages,
                                     uint64_t seed);

/// The bytes of a cache that holds `contents`, whose shape and type are those
/// of `spec`.
Result<std::vector<std::byte>> layOutCache(const CacheSpec &spec,
                                           const HostTensor &contents);

/// What a cache of `pages` pages holds; `bytes` are spec.bytes(pages).
Result<HostTensor> readCache(const CacheSpec &spec, int64_t pages,
                             std::span<const std::byte> bytes);

} // namespace kf

#endif // KF_RUNTIME_TUNING_CACHECONTENTS_H
