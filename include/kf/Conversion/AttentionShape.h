//===- AttentionShape.h - What schedules of attention ask for ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a workgroup of attention does at a time, by the schedule's algorithm. It
// is a part of KernelShape.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_ATTENTIONSHAPE_H
#define KF_CONVERSION_ATTENTIONSHAPE_H

#include "kf/Dialect/KF/IR/KF.h"

#include <algorithm>

namespace mlir::kf {

/// What a workgroup of attention does at a time; see
/// lib/Conversion/KFToGPU/Attention/FlashEmitter.cpp. Nothing of it that
/// decides in which order a row is summed up depends on how many rows there
/// are.
struct FlashShape {
  int64_t threads = 1;
  int64_t rows = 1; ///< query rows: tokens times heads
  int64_t keys = 1; ///< of a tile

  int64_t shares = 1;       ///< threads that share a product with a key
  int64_t queryColumns = 1; ///< of the queries in workgroup memory
  int64_t columns = 1;      ///< threads side by side along a value
  int64_t columnsOfThread = 1;

  /// Keys that all threads multiply at once, and those of one thread.
  int64_t keysAtOnce() const { return threads / shares; }
  int64_t keysOfThread() const {
    return (keys + keysAtOnce() - 1) / keysAtOnce();
  }
  /// Threads that take the same columns of different values.
  int64_t groups() const { return threads / columns; }
  /// Columns of the values that one pass over the keys covers.
  int64_t columnsOfPass() const { return columns * columnsOfThread; }
  int64_t passes(int64_t headDim) const {
    return (headDim + columnsOfPass() - 1) / columnsOfPass();
  }
  int64_t queryChunks(int64_t headDim) const {
    return (headDim + queryColumns - 1) / queryColumns;
  }

  // f32 elements of workgroup memory.
  int64_t queryElements() const { return rows * queryColumns; }
  int64_t partialElements() const {
    return rows * std::max(keys * (shares + 1), groups() > 1 ? threads : 0);
  }
  int64_t scoreElements() const { return rows * std::max(keys, groups()); }
  int64_t bytes() const {
    return 4 * (queryElements() + partialElements() + scoreElements() +
                rows * keys + 4 * rows);
  }
};

/// The shape of a workgroup that takes `rows` rows of heads of `headDim`
/// columns; `keys` and `threads` are the schedule's.
FlashShape getFlashShape(int64_t headDim, int64_t rows, int64_t keys,
                         int64_t threads);

/// What a workgroup of attention does at a time on matrix units; see
/// lib/Conversion/KFToGPU/Attention/FlashMmaEmitter.cpp.
struct FlashMmaShape {
  static constexpr int64_t warp = 32; ///< threads

  int64_t rowWarps = 1, keyWarps = 1; ///< that divide rows, and keys
  int64_t keys = 16;                  ///< of a warp's block
  int64_t parts = 1;                  ///< workgroups that divide the keys
  int64_t headDim = 0;
  bool isQuantized = false; ///< the cache
  /// Whether 16 rows of a unit's tile are the two terms of 8 query rows.
  bool isPacked = false;
  /// Whether keys and values are copied to workgroup memory, for all warps, and
  /// queries and weights are rounded, not split: `held = shared`.
  bool isStaged = false;
  /// Whether 4 warps at a time multiply their rows with what is staged, which
  /// they read from workgroup memory themselves: `unit = wgmma`.
  bool isForWarpgroups = false;

  int64_t rowsOfWarp() const { return isPacked ? 8 : 16; }
  int64_t rows() const { return rowWarps * rowsOfWarp(); }
  /// Blocks of 32 columns, of which a row's last may be partly there, and the
  /// units' steps of 16.
  int64_t columnBlocks() const { return (headDim + 31) / 32; }
  int64_t steps() const {
    return isStaged ? (headDim + 15) / 16 : 2 * columnBlocks();
  }
  /// Fragments of queries that a step has: high and low terms, or both at once.
  int64_t terms() const { return isPacked || isStaged ? 1 : 2; }
  /// Neighbouring columns of values that a lane reads at once: as many as eight
  /// lanes can; those of a block's scale at most.
  int64_t valueColumns() const {
    int64_t columns = isStaged ? 1 : isQuantized ? 4 : 8;
    while (headDim % (8 * columns) != 0)
      columns /= 2;
    return columns;
  }

  // Bytes of workgroup memory, which serve one after the other.
  int64_t queryBytes() const {
    return rowWarps * steps() * terms() * warp * 16;
  }
  /// Largest scores, sums of weights and of values of all rows.
  int64_t sumBytes() const { return 4 * rows() * (headDim + 2); }
  /// Whether warps, or workgroups of a cluster, divide the keys: what each has
  /// found is added up in workgroup memory.
  bool isDivided() const { return keyWarps * parts > 1; }
  int64_t combineBytes() const {
    return isDivided() ? keyWarps * sumBytes() : 0;
  }
  /// What the others of the cluster read of this workgroup.
  int64_t partBytes() const { return parts > 1 ? sumBytes() : 0; }

  // Where keys and values are staged: two stages, each with a block of keys,
  // and of values behind it. Rows are an odd number of chunks of 16 bytes, so
  // that eight of them have no bank in common.
  static constexpr int64_t chunkBytes = 16, chunkColumns = 8;
  int64_t chunksOfRow() const { return 2 * steps(); }
  int64_t rowBytes() const { return (chunksOfRow() + 1) * chunkBytes; }
  /// For warpgroups, rows are in panels of 64 columns, 128 bytes, in which
  /// chunk c of row r is in place c xor r % 8.
  static constexpr int64_t chunksOfPanel = 8;
  static constexpr int64_t panelRowBytes = chunksOfPanel * chunkBytes;
  int64_t panelBytes() const { return keys * panelRowBytes; }
  /// What the stages' address is a multiple of then.
  static constexpr int64_t warpgroupAlignment = 1024;
  int64_t alignmentBytes() const {
    return isForWarpgroups ? warpgroupAlignment : 0;
  }
  int64_t valuesOffset() const {
    return isForWarpgroups ? chunksOfRow() / chunksOfPanel * panelBytes()
                           : keys * rowBytes();
  }
  int64_t stageBytes() const { return 2 * valuesOffset(); }
  /// Whether a lane has registers for more than sums, as those of queries.
  bool isNarrow() const { return headDim <= 128; }
  /// Where queries are: those that go to registers are there before the second
  /// stage is.
  int64_t queryOffset() const {
    if (!isStaged)
      return 0;
    return alignmentBytes() + (isNarrow() ? 1 : 2) * stageBytes();
  }
  int64_t stagedBytes() const {
    return isStaged ? std::max(alignmentBytes() + 2 * stageBytes(),
                               queryOffset() + queryBytes())
                    : 0;
  }
  /// The lowest and the highest position of each warp.
  int64_t rangeBytes() const { return 8 * rowWarps; }
  /// What serves one after the other.
  int64_t bytes() const {
    return std::max({queryBytes(), combineBytes(), stagedBytes()});
  }
};

/// What a workgroup of attention does at a time on cooperative matrices; see
/// lib/Conversion/KFToGPU/Attention/FlashCoopEmitter.cpp. A subgroup has as
/// many query rows as a unit.
struct FlashCoopShape {
  /// Elements of 16 bytes, in which keys and values are read.
  static constexpr int64_t vectorColumns = 8;
  /// Vectors, words and f32 between two lines of keys, rows of weights and of
  /// scores in workgroup memory: eight of them meet in no bank.
  static constexpr int64_t linePadding = 1, weightPadding = 4, scorePadding = 4;

  int64_t unit = 16;     ///< rows, keys and columns of a unit
  int64_t warps = 1;     ///< subgroups
  int64_t subgroup = 32; ///< threads
  int64_t keys = 16;     ///< of a block
  int64_t headDim = 0;
  bool isQuantized = false;  ///< the cache
  int64_t spareElements = 0; ///< f32, of what computes rows again

  int64_t rows() const { return warps * unit; }
  int64_t threads() const { return warps * subgroup; }
  /// Threads that share the scores of a row, and keys of each of them.
  int64_t sharers() const { return subgroup / unit; }
  int64_t keysOfThread() const { return keys / sharers(); }
  /// Units along a head, whose last one may be partly there, and columns.
  int64_t steps() const { return (headDim + unit - 1) / unit; }
  int64_t columns() const { return steps() * unit; }

  /// Lines of queries, then of keys, then of values, of 16-bit floats.
  int64_t lines() const { return rows() > keys ? rows() : keys; }
  int64_t lineVectors() const {
    return columns() / vectorColumns + linePadding;
  }
  /// Words of a row of weights, of which each has two.
  int64_t weightWords() const { return keys / 2 + weightPadding; }
  /// f32 of a row of scores, and of all; other things are there as well.
  int64_t scoreStride() const { return keys + scorePadding; }
  int64_t scoreElements() const {
    return std::max(rows() * scoreStride(), spareElements);
  }
  /// f32: what each thread has of its row, and what each row has.
  int64_t partialElements() const { return rows() * (sharers() + 1); }
  int64_t bytes() const {
    return 16 * lines() * lineVectors() +
           4 * (rows() * weightWords() + scoreElements() + partialElements());
  }
};

/// Whether cooperative matrices multiply what attention takes of its cache.
bool isForCoop(CacheAttentionInterface op);
/// The unit for a cache that isForCoop() holds of.
MatrixUnit getCoopUnit(KVCacheType cache);
/// Whether matrix units multiply what attention takes of its cache.
bool isForMatrixUnits(CacheAttentionInterface op);
/// Whether warpgroups multiply heads of `headDim` columns.
bool isForWarpgroups(int64_t headDim);

/// What a workgroup of attention to keys that are tensors does at a time, or of
/// its gradients; see
/// lib/Conversion/KFToGPU/Attention/BatchAttentionEmitter.cpp.
struct BatchAttentionShape {
  static constexpr int64_t warp = 32, rowsOfWarp = 16;
  /// Blocks of others' rows in workgroup memory: one that is multiplied, and
  /// one that is on its way.
  static constexpr int64_t stages = 2;

  int64_t warps = 4;
  int64_t others =
      32; ///< rows of a block that the workgroup's are multiplied by
  int64_t columns = 0;                      ///< of a head
  int64_t ownTensors = 1, otherTensors = 2; ///< whose rows are multiplied

  int64_t threads() const { return warps * warp; }
  int64_t rows() const { return warps * rowsOfWarp; }
  /// Eight rows of 16 bytes meet in no bank.
  int64_t rowBytes() const { return 2 * columns + 16; }
  int64_t ownBytes() const { return rows() * rowBytes(); }
  int64_t otherBytes() const { return others * rowBytes(); }
  int64_t bytes() const {
    return ownTensors * ownBytes() + stages * otherTensors * otherBytes();
  }
};

/// What `schedule` means for `op`.
BatchAttentionShape getBatchAttentionShape(BatchAttentionInterface op,
                                           FlashMmaScheduleAttr schedule);

/// Whether matrix units have a kernel for `op` with factors of `type`, as far
/// as the op says; which sizes go into workgroup memory is the schedule's.
bool isForBatchKernel(BatchAttentionInterface op, Type type);

} // namespace mlir::kf

#endif // KF_CONVERSION_ATTENTIONSHAPE_H
