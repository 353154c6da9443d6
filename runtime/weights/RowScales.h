//===- RowScales.h - What scales the rows of a matrix -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_ROWSCALES_H
#define KF_RUNTIME_WEIGHTS_ROWSCALES_H

#include <string>

namespace kf {

/// The tensor of f32 with a factor for each row of the matrix `name`, where a
/// WeightSource has that in F8E4M3.
inline std::string scaleName(const std::string &name) {
  return name + "_scale";
}

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_ROWSCALES_H
