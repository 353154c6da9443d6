//===- TensorText.h - Tensors printed and compared --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TENSORTEXT_H
#define KF_TOOLS_KF_RUN_TENSORTEXT_H

#include "runtime/core/Tensor.h"

#include <cstdint>
#include <string>

namespace kf {

/// "2x8xf32".
std::string typeText(const HostTensor &tensor);

/// `tensor` as iree-run-module prints it and parseTensorLiteral reads it:
/// "2x3xf32=[1 2 3][4 5 6]". Elements past the first `limit` are left out for
/// "...".
std::string tensorText(const HostTensor &tensor, int64_t limit);

struct Tolerance {
  double absolute = 1e-5, relative = 1e-5;
};

/// Success if every element of `found` differs from that of `expected` by at
/// most absolute + relative * |expected|; NaN equals NaN, integers and
/// infinities equal themselves alone. The error, which `name` begins, has the
/// worst element's index, both values, and the tolerance.
Status compareTensors(const std::string &name, const HostTensor &found,
                      const HostTensor &expected, const Tolerance &tolerance);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TENSORTEXT_H
