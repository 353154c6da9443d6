//===- TensorParts.h - What parts of weights are packed from ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_TENSORPARTS_H
#define KF_RUNTIME_WEIGHTS_TENSORPARTS_H

#include "runtime/program/Executable.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// Bytes of a checkpoint tensor, from number `first` on.
struct TensorPart {
  std::string name;
  uint64_t first = 0;
  uint64_t bytes = 0;

  bool operator==(const TensorPart &) const = default;
};

/// What packWeightPart() of a sound weight has read for the last time when it
/// has packed the `bytes` bytes from `first` on, after those before them: of
/// all parts together, all bytes of the weight's tensors. Of a weight that is
/// transposed, all is read until the last part.
std::vector<TensorPart> tensorPartsOf(const WeightSpec &spec,
                                      const WeightSource &source, int64_t first,
                                      int64_t bytes);

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_TENSORPARTS_H
