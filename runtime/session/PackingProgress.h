//===- PackingProgress.h - How far packing weights is -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_PACKINGPROGRESS_H
#define KF_RUNTIME_SESSION_PACKINGPROGRESS_H

#include "runtime/core/Observer.h"
#include "runtime/weights/WeightStore.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace kf {

/// Tells `observer`, which may be null and has to outlive `weights`, while they
/// are packed.
inline void showPacking(WeightStore &weights, Observer *observer) {
  weights.onProgress(
      [observer, packing = std::make_shared<std::optional<ObservedWork>>()](
          uint64_t done, uint64_t all) {
        if (done == 0)
          packing->emplace(observer, "packing weights");
        (*packing)->update(static_cast<double>(done) /
                           static_cast<double>(all));
        if (done == all)
          packing->reset();
      });
}

} // namespace kf

#endif // KF_RUNTIME_SESSION_PACKINGPROGRESS_H
