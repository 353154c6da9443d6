//===- ShapeText.h - Shapes in messages -------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_SHAPETEXT_H
#define KF_RUNTIME_CORE_SHAPETEXT_H

#include <cstdint>
#include <span>
#include <string>

namespace kf {

/// "[2, 3]".
inline std::string shapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace kf

#endif // KF_RUNTIME_CORE_SHAPETEXT_H
