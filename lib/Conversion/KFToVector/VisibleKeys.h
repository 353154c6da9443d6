//===- VisibleKeys.h - Which keys the rows of an attention see --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row sees the keys up to its position and, with a window, no others than the
// last of them. What lies in the cache elsewhere may be anything, a NaN of an
// earlier use too.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_VISIBLEKEYS_H
#define KF_CONVERSION_KFTOVECTOR_VISIBLEKEYS_H

#include "../Common/KeyWindow.h"
#include "KernelEmitter.h"

namespace mlir::kf {

class VisibleKeys {
public:
  /// Keys [begin, end) that some row of a block sees; of them, all rows see
  /// [common, commonEnd), which may be empty. Indices.
  struct Range {
    Value begin, common, commonEnd, end;
  };

  VisibleKeys(KernelEmitter &emitter, CacheAttentionInterface op);

  /// Makes room for the positions of `most` rows.
  void allocate(int64_t most);
  /// Says where row `row` stands; `position` is an i32.
  void setPosition(Value row, Value position);
  /// Cuts the first `rows` rows into blocks of `blockRows`: gives the rows past
  /// them of the last block the position of the last one, and finds the range
  /// of each block's positions.
  void formBlocks(Value rows, int64_t blockRows);

  /// The first key that a row at `position`, an index, sees.
  Value firstOf(Value position) { return window.firstOf(position); }
  /// What the rows of `block` see of the keys [key, end).
  Range find(Value block, Value key, Value end);
  /// `scores` of row `row` with a vector of keys from `key` on, where it does
  /// not see one replaced by `hidden`.
  Value mask(Value scores, Value row, Value key, Value hidden);
  /// Whether row `row` sees `key`, an index.
  Value sees(Value row, Value key);
  /// Whether row `row` sees any of the first `limit` keys.
  Value seesAny(Value row, Value limit);

private:
  Value positionOf(Value row, Value table);

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  KeyWindow window;
  Value positions;       // scratch [rows] of i32
  Value lowest, highest; // of them, scratch [blocks] of i32
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_VISIBLEKEYS_H
