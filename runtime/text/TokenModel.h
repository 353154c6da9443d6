//===- TokenModel.h - What turns words into tokens --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_TOKENMODEL_H
#define KF_RUNTIME_TEXT_TOKENMODEL_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kf {

/// Splits words into tokens. Const functions may run on many threads at once.
class TokenModel {
public:
  virtual ~TokenModel() = default;
  /// Appends the tokens of `word`, any bytes, at most 2^31 - 1 of them, to
  /// `ids`; `cancelled` ends it within a long word.
  virtual Status encode(std::string_view word, std::vector<int32_t> &ids,
                        CancelFlag cancelled) const = 0;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_TOKENMODEL_H
