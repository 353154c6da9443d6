//===- ReadAhead.h - Asking for rows before they are read -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_READAHEAD_H
#define KF_RUNTIME_WEIGHTS_READAHEAD_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kf {

/// Asks for the rows of a panel while those before them are packed, at the same
/// pace and row by row: a processor follows neither many rows at once nor one
/// to its next page. As much is asked for as a second-level cache holds: of
/// wide rows a stretch of each, then the next one. What the rows are is not
/// owned. One thread.
class ReadAhead {
public:
  /// `rows` are being packed, of `rowBytes` bytes each, and then `next`, which
  /// may be none. Null rows are passed over.
  ReadAhead(std::span<const std::byte *const> rows,
            std::span<const std::byte *const> next, int64_t rowBytes)
      : rows(rows), next(next), rowBytes(rowBytes),
        stretch(std::max<int64_t>(
            held / std::max<int64_t>(std::ssize(rows), 1) / line * line,
            line)) {
    turn(); // the first stretch was the last one that the panel before asked
            // for
  }

  /// `bytes` more bytes of rows have been packed.
  void step(int64_t bytes) {
    for (due += bytes; due >= line && row < rows.size(); due -= line) {
      if (rows[row])
        __builtin_prefetch(rows[row] + at, /*rw=*/0, /*locality=*/2);
      at += line;
      if (at >= std::min(begin + stretch, rowBytes)) {
        at = begin;
        if (++row == rows.size())
          turn();
      }
    }
  }

private:
  static constexpr int64_t line = 64, held = 128 * 1024;

  /// From a stretch of all rows to the next one, or to the first one of the
  /// next rows, which is the last.
  void turn() {
    row = 0;
    begin += stretch;
    if (isLast) {
      rows = {};
    } else if (begin >= rowBytes) {
      rows = next;
      begin = 0;
      isLast = true;
    }
    at = begin;
  }

  std::span<const std::byte *const> rows, next;
  int64_t rowBytes, stretch;
  int64_t begin = 0; ///< of the stretch, in each row
  int64_t at = 0;    ///< in row `row`
  size_t row = 0;
  bool isLast = false;
  int64_t due = 0; ///< bytes
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_READAHEAD_H
