//===- KeyWindow.h - Keys that a row of attention sees ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_KEYWINDOW_H
#define KF_RUNTIME_CORE_KEYWINDOW_H

#include <compare>
#include <cstdint>

namespace kf {

/// Which positions a row sees of those up to its own.
struct KeyWindow {
  uint64_t size = 0; ///< how many at most; 0: all
  /// Those of its chunk, of which the first one begins at position 0 and each
  /// has `size` positions, rather than the last ones.
  bool chunked = false;

  /// The first one that a row at `position`, which is not negative, sees.
  int64_t firstOf(int64_t position) const {
    const auto last = static_cast<uint64_t>(position);
    if (size == 0 || size > last)
      return 0;
    return static_cast<int64_t>(chunked ? last - last % size : last + 1 - size);
  }

  auto operator<=>(const KeyWindow &) const = default;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_KEYWINDOW_H
