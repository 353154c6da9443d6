//===- AttentionRows.h - Query rows of a workgroup --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the emitters of attention share. A workgroup takes tokens of the query
// heads that share a KV head, a block of rows (a token and a head) of one
// sequence at a time.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_ATTENTION_ATTENTIONROWS_H
#define KF_LIB_CONVERSION_KFTOGPU_ATTENTION_ATTENTIONROWS_H

#include "../../Common/KeyWindow.h"
#include "../Memory/CacheBuffer.h"

#include <limits>

namespace mlir::kf {

class AttentionRows {
public:
  /// The score of a hidden key, and the maximum of no score: finite, so that
  /// the one less the other is no NaN.
  static constexpr double hiddenScore =
      -std::numeric_limits<double>::infinity();
  static constexpr double lowestMaximum = std::numeric_limits<float>::lowest();

  explicit AttentionRows(GPUEmitter &emitter);

  /// Tokens of the workgroup's tile.
  Value tokens();
  /// Stores what the kernel appends and these rows may see. All threads must
  /// come here, before any reads the cache.
  void append();
  /// Sets `limit`, and calls `body` with `firstRow` set, for each block of
  /// `blockRows` rows of each run of neighbouring tokens of one sequence. All
  /// threads agree on the runs.
  void forBlocks(int64_t blockRows, function_ref<void()> body);

  /// Row number `row` of the block: its token in the tile and its head, and
  /// whether the run has it. Those of a row that it has not are the first's.
  struct Row {
    Value token, head, exists;
  };
  Row find(Value row);
  /// The row's position, an i32; -1 for all that see nothing.
  Value positionOf(const Row &row);
  /// Calls `body` for columns [first, first + width) of the queries of `count`
  /// rows of the block, with the row, its number, the column from `first` on,
  /// and the element times `scale`; 0 where there is none. A thread reads up to
  /// `atOnce` of them before the first is used. All threads must come here.
  void forQueries(int64_t count, Value first, int64_t width, double scale,
                  function_ref<void(Value local, Value offset, Value q)> body,
                  int64_t atOnce = 1);
  /// Where keys, or values, of the tile's head begin in the page that holds
  /// `position`.
  Value keysAt(Value position);
  Value valuesAt(Value keys) {
    return e.add(keys, e.index(cache.valuesOffset()));
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  CacheAttentionInterface op;
  AttentionPartialOp partial; ///< null where it is not
  KVCacheType type;
  KeyWindow window;
  CacheBuffer cache;
  int64_t dim, heads;
  Value limit;                ///< positions that a sequence may have
  Value firstToken, sequence; ///< of the run
  Value rows, firstRow;       ///< of the run; the first of the block

private:
  void forRuns(function_ref<void(Value first, Value count)> body);
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_ATTENTION_ATTENTIONROWS_H
