//===- Nfc.h - Canonical composition ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_NFC_H
#define KF_RUNTIME_TEXT_NFC_H

#include <string>
#include <string_view>

namespace kf {

/// Unicode's canonical composition (NFC) of `text`, valid UTF-8.
std::string toNfc(std::string_view text);

} // namespace kf

#endif // KF_RUNTIME_TEXT_NFC_H
