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

/// Rows of a panel, null where it has none, and what the thread that packs them
/// has packed and is likely to pack. Nothing is owned.
struct PanelRows {
  std::span<const std::byte *const> rows;
  /// As long ones, which it or a thread that shares a cache with it packs next,
  /// or none.
  std::span<const std::byte *const> next = {};
  /// Whether `rows` were `next` of the panel that it packed last.
  bool wereNext = false;
};

/// Has the cache line of an address read into the second-level cache.
struct Prefetch {
  void operator()(const std::byte *at) const {
    __builtin_prefetch(at, /*rw=*/0, /*locality=*/2);
  }
};

/// Asks for the rows of a panel while those before them are packed, at the same
/// pace and row by row: a processor follows neither many rows at once nor one
/// to its next page. As much is asked for as a second-level cache holds: of
/// wide rows a stretch of each, then the next one. `Ask` is called with an
/// address of each cache line. One thread.
template <typename Ask = Prefetch> class ReadAhead {
public:
  /// Panels of `rowBytes` bytes a row. The first stretch is asked for at once,
  /// unless the panel before has done so.
  ReadAhead(const PanelRows &panel, int64_t rowBytes, Ask ask = {})
      : rows(panel.rows), next(panel.next), rowBytes(rowBytes),
        stretch(std::max<int64_t>(
            held / std::max<int64_t>(std::ssize(rows), 1) / line * line, line)),
        ask(ask) {
    if (!panel.wereNext)
      for (const std::byte *from : rows)
        for (int64_t i = 0; from && i < std::min(stretch, rowBytes); i += line)
          ask(from + i);
    turn();
  }

  /// `bytes` more bytes of rows have been packed; those of null rows count, and
  /// are passed over.
  void step(int64_t bytes) {
    for (due += bytes; due >= line && row < rows.size(); due -= line) {
      if (rows[row])
        ask(rows[row] + at);
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
  Ask ask;
  int64_t begin = 0; ///< of the stretch, in each row
  int64_t at = 0;    ///< in row `row`
  size_t row = 0;
  bool isLast = false;
  int64_t due = 0; ///< bytes
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_READAHEAD_H
