//===- AttentionEmitter.cpp - Online-softmax attention over the KV cache --===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One workgroup computes a tile of tokens for the query heads that share a KV
// head, one run of tokens of the same sequence after another. Keys are visited
// in blocks, each within a page; each query row keeps the largest score, the
// sum of exponentials and the weighted sum of values seen so far, and rescales
// them when a block raises the maximum (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
// 2022). Keys lie transposed in blocks of `lanes`, so that one vector holds the
// scores of `lanes` keys and no score needs a horizontal sum.
//
// Keys that a row does not see must not touch it, whatever they hold: their
// scores become -inf, and their values are not read, for 0 * NaN is NaN. Only
// at the ends of what a block of rows sees do its rows differ in this.
//
// With dot = bf16, tiles of AMX multiply (AttentionTiles): a tile of keys is
// brought to their order once for all rows of the workgroup, and all its values
// are multiplied, with weights of zero where a row does not see them, unless
// one of them is not finite. A run of one token has vectors where the schedule
// has a register tile for it.
//
// kf.attention_partial does the same with a part of the keys, a token at a
// time, and stores what each row keeps instead of the quotient.
//
//===----------------------------------------------------------------------===//

#include "../Common/RowFormulas.h"
#include "AttentionTiles.h"
#include "VisibleKeys.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Columns of a head that are unrolled. A wider one has them in a loop, whose
/// code does not grow with the head.
constexpr int64_t maxUnrolledColumns = 512;
/// Vectors of columns that are summed up at once.
constexpr int64_t vectorsAtOnce = 8;

/// The score of a hidden key, and the maximum of no score: finite, so that the
/// one less the other is no NaN.
constexpr double hiddenScore = -std::numeric_limits<double>::infinity();
constexpr double lowestMaximum = std::numeric_limits<float>::lowest();

class AttentionEmitter {
public:
  explicit AttentionEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<CacheAttentionInterface>()),
        partial(dyn_cast<AttentionPartialOp>(op.getOperation())),
        type(op.getCache().getType()), visible(e, op),
        pages(e, op.getCache(), op.getSequences(), op.getPageTable()),
        tile(e, op, pages, e.schedule.getReduction()), lanes(e.lanes) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    dim = q.getDimSize(2);
    heads = q.getDimSize(1);
    ArrayRef<int64_t> workgroup = e.schedule.getWorkgroup();
    tokens = workgroup.empty() ? 0 : workgroup[0];
    if (tokens == 0)
      tokens = q.getDimSize(0);
    mostBlockRows = *llvm::max_element(e.schedule.getTile());
  }

  void emit() {
    limit = pages.limit();
    allocate();
    emitRuns();
  }

private:
  /// Runs of neighbouring tokens that belong to one sequence, each as if it
  /// were alone. A table for one sequence makes them one run.
  void emitRuns() {
    Value tokenCount = e.sizesOf(op.getQ())[0];
    if (partial)
      return e.loop(tokenCount,
                    [&](Value token) { emitRun(token, e.index(1)); });
    if (pages.hasOneSequence() || getConstantIntValue(tokenCount) == 1)
      return emitRun(e.index(0), tokenCount);
    Value one = e.index(1);
    auto compare = [&](arith::CmpIPredicate kind, Value lhs,
                       Value rhs) -> Value {
      return arith::CmpIOp::create(b, loc, kind, lhs, rhs);
    };
    auto emitRunAt = [&](Value token, Value own) {
      Value next = e.add(token, one);
      auto end =
          e.loop(next, tokenCount, one, next, [&](Value at, ValueRange args) {
            Value isOwn = arith::AndIOp::create(
                b, loc, compare(arith::CmpIPredicate::eq, args[0], at),
                compare(arith::CmpIPredicate::eq, pages.sequenceOf(at), own));
            return SmallVector<Value>{e.select(isOwn, e.add(at, one), args[0])};
          });
      emitRun(token, e.sub(end.getResult(0), token));
    };
    e.loop(tokenCount, [&](Value token) {
      Value own = pages.sequenceOf(token);
      Value isFirst = compare(arith::CmpIPredicate::eq, token, e.index(0));
      Value before = e.select(isFirst, token, e.sub(token, one));
      Value begins = arith::OrIOp::create(
          b, loc, isFirst,
          compare(arith::CmpIPredicate::ne, pages.sequenceOf(before), own));
      e.ifThen(begins, [&] { emitRunAt(token, own); });
    });
  }

  /// Tokens [first, first + count) of the tile, which belong to one sequence.
  void emitRun(Value first, Value count) {
    firstToken = first;
    tokenCount = count;
    sequence = pages.sequenceOf(first);
    readQueries();
    ArrayRef<int64_t> rowTiles = e.schedule.getTile();
    if (partial)
      takePart();
    if (partial || rowTiles.size() == 1) {
      visitKeys(rowTiles.back(), tiles.has_value());
    } else {
      Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          count, e.index(1));
      auto branch = scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/true);
      Value rowsOfAll = rows;
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      rows = e.index(heads);
      visitKeys(rowTiles[1], /*byTiles=*/false);
      b.setInsertionPointToStart(branch.elseBlock());
      rows = rowsOfAll;
      visitKeys(rowTiles[0], tiles.has_value());
    }
    if (partial)
      writePart();
    else
      writeResult();
  }

  /// Leaves of the keys those of the pages of the tile's part.
  void takePart() {
    auto [seen, first, end] =
        keysOfPart(e, partial, {firstSeen, firstKey, endKey});
    firstSeen = seen, firstKey = first, endKey = end;
  }

  /// Scores, weights and sums of the run's rows, `rowsOfBlock` at a time.
  void visitKeys(int64_t rowsOfBlock, bool byTiles) {
    blockRows = rowsOfBlock;
    isByTiles = byTiles;
    clearPaddingRows();
    visible.formBlocks(rows, blockRows);
    Value rowBlocks = e.ceilDiv(rows, blockRows);
    e.loop(firstKey, endKey, e.index(tile.size()), {},
           [&](Value key, ValueRange) {
             tile.locate(sequence, key, endKey);
             if (isByTiles)
               tiles->unpack();
             e.loop(rowBlocks, [&](Value block) {
               Value row = e.mul(block, e.index(blockRows));
               Value end = arith::MinSIOp::create(
                   b, loc, e.add(key, e.index(tile.size())), endKey);
               VisibleKeys::Range seen = visible.find(block, key, end);
               e.ifThen(e.isLess(seen.begin, seen.end), [&] {
                 if (isByTiles)
                   return visitTile(row, key, seen);
                 emitScores(row, key);
                 for (int64_t r = 0; r < blockRows; ++r)
                   updateRow(e.add(row, e.index(r)));
                 accumulateValues(row, key, seen);
               });
             });
             return SmallVector<Value>();
           });
  }

  /// The same of a block of rows by tiles. What a row does not see must not
  /// touch it, which a weight of zero keeps only finite values from.
  void visitTile(Value row, Value key, const VisibleKeys::Range &seen) {
    tiles->multiplyKeys(row, scores);
    weighTile(row, key);
    auto branch = scf::IfOp::create(b, loc, tiles->areFinite(),
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    tiles->addValues(row, sums);
    b.setInsertionPointToStart(branch.elseBlock());
    accumulateValues(row, key, seen);
  }

  void allocate() {
    // With those of the last block past the last token.
    int64_t most = tokens * heads + mostBlockRows - 1;
    if (e.schedule.getDot() == DotKind::BF16) {
      tiles.emplace(e, pages, tile, dim, most, type.isQuantized());
      newMaxima = e.scratch({lanes});
      factors = e.scratch({lanes});
    }
    if (needsVectors())
      queries = e.scratch({most, dim});
    sums = e.scratch({most, dim});
    scores = e.scratch({mostBlockRows, tile.size()});
    maxima = e.scratch({most});
    totals = e.scratch({most});
    visible.allocate(most);
  }

  /// Scaled queries, positions and initial state of every row; the range of
  /// keys that any row sees.
  void readQueries() {
    rows = e.mul(tokenCount, e.index(heads));
    SmallVector<Value> offsets;
    Value source = e.sourceMemref(op.getPositions(), offsets);
    Value scale = e.f32(op.getScale().convertToDouble());
    auto readToken = [&](Value local, Value low, Value high) {
      Value token = e.add(firstToken, local);
      e.beginToken(token);
      Value position =
          memref::LoadOp::create(b, loc, source, e.add(offsets[0], token));
      e.loop(e.index(heads), [&](Value h) {
        Value row = e.add(e.mul(local, e.index(heads)), h);
        visible.setPosition(row, position);
        e.store(e.f32(lowestMaximum), maxima, row);
        e.store(e.f32(0.0), totals, row);
        e.emitRow(op.getQ(), {token, h},
                  [&](Value column, unsigned width, Value q) {
                    storeQuery(e.mul(q, e.splat(scale, width)), row, column);
                    e.store(e.splat(e.f32(0.0), width), sums, {row, column});
                  });
      });
      Value at = arith::IndexCastOp::create(b, loc, b.getIndexType(), position);
      return SmallVector<Value>{arith::MinSIOp::create(b, loc, low, at),
                                arith::MaxSIOp::create(b, loc, high, at)};
    };
    auto range = e.loop(e.index(0), tokenCount, e.index(1),
                        ValueRange{e.index(INT32_MAX), e.index(-1)},
                        [&](Value local, ValueRange args) {
                          return readToken(local, args[0], args[1]);
                        });
    endKey = arith::MinSIOp::create(
        b, loc, e.add(range.getResult(1), e.index(1)), limit);
    firstSeen = visible.firstOf(range.getResult(0));
    firstKey =
        e.mul(arith::DivUIOp::create(b, loc, firstSeen, e.index(tile.size())),
              e.index(tile.size()));
  }

  /// Whether there are rows that tiles do not multiply.
  bool needsVectors() { return !tiles || e.schedule.getTile().size() > 1; }

  void storeQuery(Value values, Value row, Value column) {
    if (tiles)
      tiles->storeQuery(values, row, column);
    if (needsVectors())
      e.store(values, queries, {row, column});
  }

  /// Rows past the last token are computed with the others.
  void clearPaddingRows() {
    std::optional<int64_t> count = getConstantIntValue(rows);
    if (count && *count % blockRows == 0)
      return;
    Value end = e.mul(e.ceilDiv(rows, blockRows), e.index(blockRows));
    e.loop(rows, end, e.index(1), {}, [&](Value row, ValueRange) {
      e.store(e.f32(lowestMaximum), maxima, row);
      e.store(e.f32(0.0), totals, row);
      e.forPieces(e.index(dim), [&](Value column, unsigned width) {
        Value zero = e.splat(e.f32(0.0), width);
        storeQuery(zero, row, column);
        e.store(zero, sums, {row, column});
      });
      return SmallVector<Value>();
    });
  }

  /// scores[r, j] = q[row + r] . k[key + j] for a block of rows and keys.
  void emitScores(Value row, Value key) {
    int64_t vectors = tile.vectors();
    SmallVector<Value> sums(blockRows * vectors, e.splat(e.f32(0.0), lanes));
    if (type.isQuantized()) {
      int64_t size = pages.blockSize();
      auto blocks = e.loop(e.index(0), e.index(pages.blocksOfRow()), e.index(1),
                           sums, [&](Value block, ValueRange args) {
                             Value first = e.mul(block, e.index(size));
                             return addProducts(row, first, size,
                                                SmallVector<Value>(args),
                                                tile.loadKeyScales(block));
                           });
      sums.assign(blocks.result_begin(), blocks.result_end());
    } else {
      sums = addProducts(row, e.index(0), dim, sums, {});
    }
    for (int64_t r = 0; r < blockRows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        e.store(finish(sums[r * vectors + v], e.add(row, e.index(r)),
                       e.add(key, e.index(v * lanes))),
                scores, {e.index(r), e.index(v * lanes)});
  }

  /// The scores of row `row` and the keys from `key` on, of their products.
  Value finish(Value products, Value row, Value key) {
    if (std::optional<APFloat> cap = op.getSoftcap())
      products = e.softcap(products, cap->convertToDouble());
    return visible.mask(products, row, key, e.splat(e.f32(hiddenScore), lanes));
  }

  /// `sums` [blockRows][vectors of keys] with the products of `count` elements
  /// from `first` on added. Keys are multiplied by `scales` [vectors of keys],
  /// where there are any.
  SmallVector<Value> addProducts(Value row, Value first, int64_t count,
                                 ArrayRef<Value> sums, ArrayRef<Value> scales) {
    int64_t vectors = tile.vectors();
    int64_t unroll = count % 4 == 0 ? 4 : 1;
    auto products = e.loop(
        e.index(0), e.index(count), e.index(unroll), sums,
        [&](Value offset, ValueRange args) {
          SmallVector<Value> acc(args);
          // The tile's values are next.
          Value column = e.add(first, offset);
          tile.prefetch(tile.valuesAt(column), unroll * tile.size());
          for (int64_t u = 0; u < unroll; ++u) {
            Value d = e.add(column, e.index(u));
            SmallVector<Value> k = tile.loadKeys(d, scales);
            for (int64_t r = 0; r < blockRows; ++r) {
              Value q = e.splat(
                  e.loadMemref(queries, {e.add(row, e.index(r)), d}, 0), lanes);
              for (int64_t v = 0; v < vectors; ++v) {
                Value &sum = acc[r * vectors + v];
                sum = vector::FMAOp::create(b, loc, q, k[v], sum);
              }
            }
          }
          return acc;
        });
    return SmallVector<Value>(products.getResults());
  }

  /// The larger of two numbers, lane by lane. The maximum that a part gives is
  /// a NaN where a score is. Elsewhere either may be taken, for whatever the
  /// maximum is, that score's weight is a NaN: a comparison and a selection are
  /// one instruction on x86, where `arith.maximumf` is five.
  Value larger(Value one, Value other) {
    if (partial)
      return arith::MaximumFOp::create(b, loc, one, other);
    Value isLarger =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, one, other);
    return e.select(isLarger, one, other);
  }

  Value largestLane(Value values) {
    if (partial)
      return vector::ReductionOp::create(
          b, loc, vector::CombiningKind::MAXIMUMF, values);
    for (int64_t width = lanes / 2; width > 0; width /= 2) {
      auto half = [&](int64_t first) -> Value {
        return vector::ExtractStridedSliceOp::create(
            b, loc, values, ArrayRef(first), ArrayRef(width),
            ArrayRef<int64_t>(1));
      };
      values = larger(half(0), half(width));
    }
    return vector::ExtractOp::create(b, loc, values, 0);
  }

  /// The scores, or what tiles have made them of, of row `local` of a block.
  SmallVector<Value> loadScores(Value local) {
    SmallVector<Value> s;
    for (int64_t v = 0; v < tile.vectors(); ++v)
      s.push_back(e.loadMemref(scores, {local, e.index(v * lanes)}, lanes));
    return s;
  }

  /// The largest of a row's scores `s` and of those that it has had.
  Value findMaximum(ArrayRef<Value> s, Value old) {
    Value largest = s[0];
    for (Value more : s.drop_front())
      largest = larger(largest, more);
    return larger(largestLane(largest), old);
  }

  /// Stores the weights that scores `s` of row `local` of a block give, and
  /// gives their sum.
  Value weigh(ArrayRef<Value> s, Value local, Value maximum) {
    Value total;
    for (auto [v, score] : llvm::enumerate(s)) {
      Value weight =
          math::ExpOp::create(b, loc, e.sub(score, e.splat(maximum, lanes)));
      e.store(weight, scores, {local, e.index(v * lanes)});
      if (isByTiles)
        tiles->storeWeights(weight, local, e.index(v * lanes));
      total = total ? e.add(total, weight) : weight;
    }
    return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                       total, arith::FastMathFlags::reassoc);
  }

  /// updateRow() of a block of 16 rows, whose scores tiles have not finished.
  /// A row after the other would wait for its maximum, and often for the wrong
  /// guess that this is the one it had: all of them are found first, and one
  /// branch is for all rows.
  void weighTile(Value row, Value key) {
    e.loop(e.index(blockRows), [&](Value r) {
      Value own = e.add(row, r);
      SmallVector<Value> s = loadScores(r);
      for (auto [v, score] : llvm::enumerate(s)) {
        score = finish(score, own, e.add(key, e.index(v * lanes)));
        e.store(score, scores, {r, e.index(v * lanes)});
      }
      e.store(findMaximum(s, e.loadMemref(maxima, own, 0)), newMaxima, r);
    });
    Value old = e.loadMemref(maxima, row, lanes);
    Value maximum = e.loadMemref(newMaxima, e.index(0), lanes);
    Value isSame =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, old, maximum);
    Value factor = e.select(isSame, e.splat(e.f32(1.0), lanes),
                            math::ExpOp::create(b, loc, e.sub(old, maximum)));
    e.store(maximum, maxima, row);
    e.store(factor, factors, e.index(0));
    e.store(e.mul(e.loadMemref(totals, row, lanes), factor), totals, row);
    Value areSame =
        vector::ReductionOp::create(b, loc, vector::CombiningKind::AND, isSame);
    Value isOther = arith::XOrIOp::create(
        b, loc, areSame,
        arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
    e.ifThen(isOther, [&] {
      e.loop(e.index(blockRows), [&](Value r) {
        multiplySums(e.add(row, r), e.loadMemref(factors, r, 0));
      });
    });
    e.loop(e.index(blockRows), [&](Value r) {
      Value own = e.add(row, r);
      Value sum = weigh(loadScores(r), r, e.loadMemref(maxima, own, 0));
      e.store(e.add(e.loadMemref(totals, own, 0), sum), totals, own);
    });
  }

  /// Turns a row's scores into weights and rescales its state.
  void updateRow(Value row) {
    Value local = arith::RemUIOp::create(b, loc, row, e.index(blockRows));
    SmallVector<Value> s = loadScores(local);
    Value old = e.loadMemref(maxima, row, 0);
    Value maximum = findMaximum(s, old);
    e.store(maximum, maxima, row);
    Value sum = weigh(s, local, maximum);
    Value isSame =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, old, maximum);
    auto rescaled = scf::IfOp::create(b, loc, b.getF32Type(), isSame,
                                      /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(rescaled.thenBlock());
      scf::YieldOp::create(b, loc, e.f32(1.0));
      b.setInsertionPointToStart(rescaled.elseBlock());
      scf::YieldOp::create(b, loc, rescale(row, e.sub(old, maximum)));
    }
    e.store(
        e.add(e.mul(e.loadMemref(totals, row, 0), rescaled.getResult(0)), sum),
        totals, row);
  }

  /// Multiplies the sums of `row` by the exponential of `difference`, which it
  /// returns.
  Value rescale(Value row, Value difference) {
    Value exponentials =
        math::ExpOp::create(b, loc, e.splat(difference, lanes));
    Value factor = vector::ExtractOp::create(b, loc, exponentials, 0);
    multiplySums(row, factor);
    return factor;
  }

  void multiplySums(Value row, Value factor) {
    e.forPieces(e.index(dim), [&](Value column, unsigned width) {
      Value scaled = e.mul(e.loadMemref(sums, {row, column}, width),
                           e.splat(factor, width));
      e.store(scaled, sums, {row, column});
    });
  }

  /// sums[row + r] += scores[r, j] * v[key + j] for the keys that row sees.
  void accumulateValues(Value row, Value key, const VisibleKeys::Range &seen) {
    KeysOfRows all = {row, e.sub(seen.common, key), e.sub(seen.commonEnd, key)};
    int64_t step = vectorsAtOnce * lanes;
    int64_t looped = dim > maxUnrolledColumns ? dim / step * step : 0;
    if (looped > 0)
      e.loop(e.index(0), e.index(looped), e.index(step), {},
             [&](Value column, ValueRange) {
               accumulateColumns(all, column, step);
               return SmallVector<Value>();
             });
    accumulateColumns(all, e.index(looped), dim - looped);
    // Before and behind them are the keys that some rows see.
    Value before = e.sub(seen.common, seen.begin);
    Value partial = e.add(before, e.sub(seen.end, seen.commonEnd));
    e.loop(partial, [&](Value i) {
      Value at = e.select(e.isLess(i, before), e.add(seen.begin, i),
                          e.add(seen.commonEnd, e.sub(i, before)));
      accumulateWhereSeen(row, key, at);
    });
  }

  /// Adds the value at `at`, of the tile of keys at `key`, to the rows that see
  /// it.
  void accumulateWhereSeen(Value row, Value key, Value at) {
    Value number = e.sub(at, key);
    e.loop(e.index(blockRows), [&](Value r) {
      Value own = e.add(row, r);
      e.ifThen(visible.sees(own, at), [&] {
        Value weight = e.loadMemref(scores, {r, number}, 0);
        e.forPieces(e.index(dim), [&](Value column, unsigned width) {
          Value v = tile.loadValue(number, column, width);
          Value sum = e.loadMemref(sums, {own, column}, width);
          e.store(vector::FMAOp::create(b, loc, e.splat(weight, width), v, sum),
                  sums, {own, column});
        });
      });
    });
  }

  /// A block of rows at `row`, and keys [first, last) of the tile that all of
  /// them see.
  struct KeysOfRows {
    Value row, first, last;
  };

  /// accumulateValues for `columns` columns from `firstColumn` on, a few rows
  /// and as many columns as registers hold at a time.
  void accumulateColumns(const KeysOfRows &all, Value firstColumn,
                         int64_t columns) {
    SmallVector<std::pair<int64_t, unsigned>> pieces; // column, width
    e.forPiecesStatic(columns, [&](int64_t column, unsigned width) {
      pieces.push_back({column, width});
    });
    if (pieces.empty())
      return;
    int64_t piecesAtOnce = std::min<int64_t>(pieces.size(), vectorsAtOnce);
    // A value is read, and made f32, for as many rows as registers hold.
    int64_t registers = lanes == 16 ? 24 : 16;
    int64_t rowsAtOnce =
        std::clamp<int64_t>(registers / piecesAtOnce, 1, blockRows);
    while (blockRows % rowsAtOnce != 0)
      --rowsAtOnce;
    for (int64_t r = 0; r < blockRows; r += rowsAtOnce)
      for (size_t at = 0; at < pieces.size(); at += piecesAtOnce)
        accumulatePieces(
            all, firstColumn, r, rowsAtOnce,
            ArrayRef(pieces).drop_front(at).take_front(piecesAtOnce));
  }

  void accumulatePieces(const KeysOfRows &all, Value firstColumn,
                        int64_t firstRow, int64_t rowCount,
                        ArrayRef<std::pair<int64_t, unsigned>> pieces) {
    auto columnOf = [&](int64_t offset) {
      return e.add(firstColumn, e.index(offset));
    };
    SmallVector<Value> inits;
    for (int64_t r = 0; r < rowCount; ++r)
      for (auto [column, width] : pieces)
        inits.push_back(e.loadMemref(
            sums, {e.add(all.row, e.index(firstRow + r)), columnOf(column)},
            width));
    auto accumulated = e.loop(
        all.first, all.last, e.index(1), inits, [&](Value j, ValueRange args) {
          SmallVector<Value> acc(args);
          SmallVector<Value> v;
          tile.prefetch(e.add(tile.nextKey(j), columnOf(pieces.front().first)),
                        pieces.back().first + pieces.back().second -
                            pieces.front().first);
          for (auto [column, width] : pieces)
            v.push_back(tile.loadValue(j, columnOf(column), width));
          for (int64_t r = 0; r < rowCount; ++r) {
            Value weight = e.loadMemref(scores, {e.index(firstRow + r), j}, 0);
            for (auto [number, piece] : llvm::enumerate(pieces)) {
              Value &sum = acc[r * pieces.size() + number];
              sum = vector::FMAOp::create(b, loc, e.splat(weight, piece.second),
                                          v[number], sum);
            }
          }
          return acc;
        });
    size_t next = 0;
    for (int64_t r = 0; r < rowCount; ++r)
      for (auto [column, width] : pieces)
        e.store(accumulated.getResult(next++), sums,
                {e.add(all.row, e.index(firstRow + r)), columnOf(column)});
  }

  void writeResult() {
    e.loop(tokenCount, [&](Value local) {
      e.loop(e.index(heads), [&](Value h) {
        Value row = e.add(e.mul(local, e.index(heads)), h);
        Value total = e.loadMemref(totals, row, 0);
        if (op.getSinks())
          total =
              addSink(e, total, op.getSinks(), h, e.loadMemref(maxima, row, 0));
        Value inverse = e.select(
            visible.seesAny(row, limit),
            arith::DivFOp::create(b, loc, e.f32(1.0), total), e.f32(0.0));
        e.forPieces(e.index(dim), [&](Value column, unsigned width) {
          Value result = e.mul(e.loadMemref(sums, {row, column}, width),
                               e.splat(inverse, width));
          e.storeResult(result, {e.add(firstToken, local), h, column});
        });
      });
    });
  }

  /// What the run's token has of the part's keys.
  void writePart() {
    Value hasKeys = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                          firstSeen, endKey);
    Value none = e.f32(hiddenScore);
    e.loop(e.index(heads), [&](Value h) {
      SmallVector<Value> place = {firstToken, h, e.index(0)};
      e.storeResult(e.select(hasKeys, e.loadMemref(maxima, h, 0), none), place,
                    Value(), 0);
      e.storeResult(e.loadMemref(totals, h, 0), place, Value(), 1);
      e.forPieces(e.index(dim), [&](Value column, unsigned width) {
        e.storeResult(e.loadMemref(sums, {h, column}, width),
                      indicesAt(place, column), Value(), 2);
      });
    });
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  CacheAttentionInterface op;
  AttentionPartialOp partial; // null where it is not
  KVCacheType type;
  VisibleKeys visible;
  CacheMemory pages;
  KeyTile tile;
  std::optional<AttentionTiles> tiles; // with dot = bf16
  bool isByTiles = false;              // what is emitted
  int64_t lanes, dim, heads, tokens;
  int64_t blockRows = 0, mostBlockRows;
  Value limit;                            // positions that a sequence may have
  Value firstToken, tokenCount, sequence; // of the run
  Value rows;                             // tokens of the run times heads
  Value firstKey, endKey;                 // that any row sees, whole tiles
  Value firstSeen;                        // that any row sees
  Value queries, sums;                    // scratch [rows, dim]
  Value scores;             // scratch [mostBlockRows, tile.size()]
  Value maxima, totals;     // scratch [rows]
  Value newMaxima, factors; // scratch [rows of a block], of tiles
};

} // namespace

void mlir::kf::emitAttentionKernel(KernelEmitter &emitter) {
  AttentionEmitter(emitter).emit();
}
