//===- GgufOddities.h - What looks wrong in a GGUF file ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFODDITIES_H
#define KF_RUNTIME_MODEL_GGUFODDITIES_H

#include "runtime/io/Gguf.h"

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Fails at the first key of the form `architecture`.* that is not known, or
/// whose value changes the arithmetic in a way that is not built; names it.
Status checkGgufKeys(const Gguf &gguf, std::string_view architecture);

/// What in `gguf` looks like a mistake and is read over, a line each: keys of
/// the form `architecture`.* that are not known, keys that are almost such a
/// key, and bytes behind the last tensor that are no padding. At most eight.
std::vector<std::string> findGgufOddities(const Gguf &gguf,
                                          std::string_view architecture);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFODDITIES_H
