//===- NonFinite.h - Weights that are no numbers ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_NONFINITE_H
#define KF_RUNTIME_WEIGHTS_NONFINITE_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kf {

/// What `view` has first that is no finite number, an element or a block's
/// scale: "a NaN in row 3", "an infinity in row 0"; nothing if there is none.
/// Reads it in stretches, on the threads of `pool`, which may be null;
/// `onRead`, if there is one, is called by them with each stretch's first byte
/// and how many. Error: `cancelled` is set.
Result<std::optional<std::string>> findNonFinite(
    const TensorView &view, ThreadPool *pool, CancelFlag cancelled,
    const std::function<void(uint64_t first, uint64_t bytes)> &onRead = {});

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_NONFINITE_H
