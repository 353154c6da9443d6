//===- KeyWindow.h - Keys that a query row sees -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row sees the keys up to its own position, and with a window none that is
// too far behind it, or none of another chunk.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_KEYWINDOW_H
#define KF_CONVERSION_COMMON_KEYWINDOW_H

#include "TileEmitter.h"

#include <optional>

namespace mlir::kf {

class KeyWindow {
public:
  KeyWindow(TileEmitter &emitter, CacheAttentionInterface op);

  /// Whether there is a window that can hide a key.
  bool isBounded() const { return window.has_value(); }
  /// The first key that a row at `position`, an index, sees.
  Value firstOf(Value position);
  /// Whether a row at `position`, an i32, sees `key`: a scalar i32, or a vector
  /// of them, whose lanes `splat` gives a scalar.
  Value isSeen(Value key, Value position, function_ref<Value(Value)> splat);
  /// Whether a row at `position`, an index, sees any of the first `limit` keys.
  Value seesAny(Value position, Value limit);

private:
  TileEmitter &e;
  OpBuilder &b;
  Location loc;
  /// The first position of the window of a row at `position`, of the type of
  /// that; below 0 where it sees all and more were possible.
  Value beginOf(Value position);

  std::optional<int64_t> window;
  bool chunked = false; ///< the window is a chunk
};

/// Keys of a sequence by position, indices: those in [firstSeen, endKey) are
/// seen, and tiles of keys begin at `firstKey`, which is at most `firstSeen`.
struct KeyRange {
  Value firstSeen, firstKey, endKey;
};

/// Those of `keys` that are in pages of `page` positions of part number `part`
/// of `parts`.
KeyRange keysOfPart(TileEmitter &emitter, const KeyRange &keys, int64_t page,
                    int64_t parts, Value part);
/// The same of the workgroup's part of `op`.
KeyRange keysOfPart(TileEmitter &emitter, AttentionPartialOp op,
                    const KeyRange &keys);

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_KEYWINDOW_H
