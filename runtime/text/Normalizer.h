//===- Normalizer.h - Unicode normalization ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_NORMALIZER_H
#define KF_RUNTIME_TEXT_NORMALIZER_H

#include <string>
#include <string_view>

namespace kf {

/// What a tokenizer does to text before it splits it.
struct Normalizer {
  bool nfc = false; ///< canonical composition

  bool isIdentity() const { return !nfc; }
  /// `text`, valid UTF-8, normalized.
  std::string normalize(std::string_view text) const;
};

/// Unicode's canonical composition (NFC) of `text`, valid UTF-8.
std::string toNfc(std::string_view text);

} // namespace kf

#endif // KF_RUNTIME_TEXT_NORMALIZER_H
