//===- BatchAttentionEmitter.cpp - Attention to tensors -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention of a batch, and its gradients, without scores in memory (Dao,
// "FlashAttention-2", 2023): three kernels that are alike.
//
// - Forward: a workgroup has rows of queries, and walks through keys and
// values.
// - attention_qgrad: the same twice. It finds what each row's weights are made
//   of, and its sum of p dp, by products alone, so that the forward pass keeps
//   nothing for it; then it sums up ds k.
// - attention_kvgrad: a workgroup has rows of keys and values, and walks
// through
//   the queries and dy of all heads that read them: scores are transposed.
//
// Own rows, 16 a warp, and blocks of the others' are in workgroup memory; while
// one block is multiplied, the next one is on its way. All factors are bf16,
// and sums f32. Scores come out of the units as weights have to go into them.
//
// Each element of a result is summed up by one thread, in an order that depends
// on sizes alone: the same inputs give the same bits.
//
// A lane, 4g + t, has of 16 x 8 products rows g and g + 8, and columns 2t and
// 2t + 1 of each; such four are neighbours in what is said of them here.
//
//===----------------------------------------------------------------------===//

#include "BatchAttentionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace mlir::kf;

using Registers = SmallVector<Value>;

/// Of no key: finite, so that a difference of two is 0. Hidden scores are less.
static constexpr double lowestMaximum =
    std::numeric_limits<float>::lowest() / 2;

/// Rows that a lane has of a warp's.
static constexpr int64_t rowsOfLane = 2;

/// The argument that a tile has all or some rows of.
static BlockArgument argumentOf(Value tensor) {
  while (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    tensor = slice.getSource();
  return cast<BlockArgument>(tensor);
}

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

BatchAttentionEmitter::BatchAttentionEmitter(GPUEmitter &emitter)
    : e(emitter), b(e.b), loc(e.loc), warp(e),
      op(e.find<BatchAttentionInterface>()),
      shape(getBatchAttentionShape(
          op, cast<FlashMmaScheduleAttr>(e.kernel.getScheduleAttr()))),
      isOfKeys(isa<AttentionKvgradOp>(op.getOperation())) {
  const RankedTensorType q = typeOf(argumentOf(op.getQ())),
                         k = typeOf(argumentOf(op.getK()));
  rank = q.getRank();
  queryHeads = q.getDimSize(rank - 3);
  keyHeads = k.getDimSize(rank - 3);
  const SmallVector<Value> offsets = e.tileOffsets();
  batch = rank == 4 ? offsets[0] : e.index(0);
  head = offsets[rank - 3];
  first = offsets[rank - 2];
}

void BatchAttentionEmitter::emit() {
  e.useAllRegisters(/*workgroups=*/2);
  const Rows q = rowsOf(op.getQ()), k = rowsOf(op.getK()),
             v = rowsOf(op.getV());
  own = {q};
  others = {k, v};
  if (auto gradient = dyn_cast<AttentionQgradOp>(op.getOperation()))
    own.push_back(rowsOf(gradient.getDy()));
  if (auto gradient = dyn_cast<AttentionKvgradOp>(op.getOperation())) {
    own = {k, v};
    others = {q, rowsOf(gradient.getDy())};
  }
  numberThread();
  findRange();
  findMask();
  stageOwn();
  if (isOfKeys)
    emitKeys();
  else if (own.size() == 2)
    emitQueries();
  else
    emitForward();
}

//===----------------------------------------------------------------------===//
// Setup
//===----------------------------------------------------------------------===//

BatchAttentionEmitter::Rows BatchAttentionEmitter::rowsOf(Value tensor) {
  BlockArgument argument = argumentOf(tensor);
  ArrayRef<int64_t> extents = typeOf(argument).getShape().drop_front(rank - 3);
  return {warp.pointerTo(e.bufferOf(argument)), extents[0], extents[1]};
}

void BatchAttentionEmitter::numberThread() {
  lane = e.rem(e.thread, BatchAttentionShape::warp);
  warpNumber = e.div(e.thread, BatchAttentionShape::warp);
  group = e.div(lane, 4);
  place = e.rem(lane, 4);
  // Rows of four tiles of 8 x 8: as a left factor and a transposed right one
  // take them, two along rows first; and as a right one, along columns.
  Value row = e.rem(lane, 8), second = e.rem(e.div(lane, 8), 2),
        other = e.div(lane, 16);
  auto bytesTo = [&](Value ofRows, Value ofColumns) {
    return e.add(e.scaled(e.add(row, e.scaled(ofRows, 8)), shape.rowBytes()),
                 e.scaled(ofColumns, 16));
  };
  leftLane = bytesTo(second, other);
  rightLane = bytesTo(other, second);
  Value ofWarp = e.scaled(warpNumber, BatchAttentionShape::rowsOfWarp);
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    Value row = e.add(first, e.add(ofWarp, e.add(group, e.index(8 * r))));
    ownRows.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), row));
  }
}

/// Which of the others' rows any of the workgroup's sees, or is seen by.
void BatchAttentionEmitter::findRange() {
  const int64_t limit = others[0].rows,
                offset = static_cast<int64_t>(op.getOffset());
  Value begin = e.index(0), end = e.index(limit);
  auto bounded = [&](Value number) -> Value {
    Value above = arith::MaxSIOp::create(b, loc, number, e.index(0));
    return arith::MinSIOp::create(b, loc, above, e.index(limit));
  };
  if (op.getCausal()) {
    // Key j is seen by queries i with j - offset <= i < j - offset + window.
    Value behind = e.add(first, e.index(shape.rows()));
    if (isOfKeys)
      begin = bounded(e.sub(first, e.index(offset)));
    else
      end = bounded(e.add(behind, e.index(offset)));
    if (std::optional<uint64_t> window = op.getWindow()) {
      const auto seen = static_cast<int64_t>(*window);
      if (isOfKeys)
        end = bounded(e.add(behind, e.index(seen - offset - 1)));
      else
        begin = bounded(e.add(first, e.index(offset - seen + 1)));
    }
  }
  Value firstBlock = e.div(begin, shape.others);
  firstOther = e.scaled(firstBlock, shape.others);
  Value endBlock = e.div(e.add(end, e.index(shape.others - 1)), shape.others);
  blocks =
      arith::MaxSIOp::create(b, loc, e.sub(endBlock, firstBlock), e.index(0));
  const int64_t heads = isOfKeys ? queryHeads / keyHeads : 1;
  firstHead = e.scaled(head, heads);
  allBlocks = e.scaled(blocks, heads);
  // A divisor, of no blocks too.
  blocks = arith::MaxSIOp::create(b, loc, blocks, e.index(1));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A pointer to the first row of a head of the batch.
Value BatchAttentionEmitter::headOf(const Rows &rows, Value head) {
  Value number = e.add(e.scaled(batch, rows.heads), head);
  return warp.advance(rows.start,
                      e.scaled(number, rows.rows * 2 * shape.columns));
}

/// Starts to copy rows of a head from number `first` on to workgroup memory.
/// Those from `limit` on are zeros.
void BatchAttentionEmitter::copyRows(Value to, Value from, Value first,
                                     int64_t count, int64_t limit) {
  constexpr int64_t vectorBytes = 16;
  const int64_t vectors = 2 * shape.columns / vectorBytes,
                all = count * vectors;
  for (int64_t at = 0; at < all; at += shape.threads()) {
    Value number = e.add(e.thread, e.index(at));
    auto copy = [&] {
      Value row = e.div(number, vectors);
      Value column = e.scaled(e.rem(number, vectors), vectorBytes);
      Value global = e.add(first, row);
      Value exists = e.isLess(global, e.index(limit));
      global = e.select(exists, global, e.index(0));
      warp.copyAsync(
          warp.advance(to, e.add(e.scaled(row, shape.rowBytes()), column)),
          warp.advance(from,
                       e.add(e.scaled(global, 2 * shape.columns), column)),
          e.select(exists, e.word(vectorBytes), e.word(0)));
    };
    if (at + shape.threads() <= all)
      copy();
    else
      e.ifThen(e.isLess(number, e.index(all)), copy);
  }
}

void BatchAttentionEmitter::stageOwn() {
  memory = warp.workgroupBytes(shape.bytes());
  for (auto [number, rows] : llvm::enumerate(own))
    copyRows(
        warp.advance(memory, static_cast<int64_t>(number) * shape.ownBytes()),
        headOf(rows, head), first, shape.rows(), rows.rows);
  warp.commitCopies();
}

/// Block number `number` of those that are walked through.
BatchAttentionEmitter::Block BatchAttentionEmitter::blockAt(Value number,
                                                            Value stage) {
  Block block;
  Value ofHead = arith::RemUIOp::create(b, loc, number, blocks);
  block.first = e.add(firstOther, e.scaled(ofHead, shape.others));
  block.head = isOfKeys ? e.add(firstHead,
                                arith::DivUIOp::create(b, loc, number, blocks))
                        : head;
  const int64_t behindOwn = shape.ownTensors * shape.ownBytes();
  Value start = warp.advance(
      memory, e.add(e.index(behindOwn),
                    e.scaled(stage, shape.otherTensors * shape.otherBytes())));
  for (int64_t tensor = 0; tensor < shape.otherTensors; ++tensor)
    block.tensors.push_back(warp.advance(start, tensor * shape.otherBytes()));
  return block;
}

void BatchAttentionEmitter::beginCopies(Value number) {
  const Block block =
      blockAt(number, e.rem(number, BatchAttentionShape::stages));
  // One behind the last is of no head.
  Value ofOthers = isOfKeys ? arith::MinUIOp::create(b, loc, block.head,
                                                     e.index(queryHeads - 1))
                                  .getResult()
                            : e.div(head, queryHeads / keyHeads);
  for (auto [rows, to] : llvm::zip_equal(others, block.tensors))
    copyRows(to, headOf(rows, ofOthers), block.first, shape.others, rows.rows);
  warp.commitCopies();
}

/// Calls `body` for each block, with what it has returned before.
Registers BatchAttentionEmitter::walk(ValueRange initial, BlockFn body) {
  beginCopies(e.index(0));
  auto visited = e.loop(
      e.index(0), allBlocks, e.index(1), initial,
      [&](Value number, ValueRange values) {
        warp.waitForCopies(0);
        // All have come here from the block whose place the next one takes.
        e.barrier();
        beginCopies(e.add(number, e.index(1)));
        return body(blockAt(number, e.rem(number, BatchAttentionShape::stages)),
                    values);
      });
  warp.waitForCopies(0);
  e.barrier();
  return Registers(visited.getResults());
}

/// The number (f32) of a row, or of the last one.
Value BatchAttentionEmitter::loadNumber(const Rows &rows, Value head,
                                        Value row) {
  Value last = arith::MinUIOp::create(b, loc, row, e.index(rows.rows - 1));
  Value number = e.add(e.scaled(batch, rows.heads), head);
  Value at = e.add(e.scaled(number, rows.rows), last);
  Value bits =
      warp.loadRegisters(warp.advance(rows.start, e.scaled(at, 4)), 4)[0];
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// 16 columns of the warp's rows.
Registers BatchAttentionEmitter::ownFragment(int64_t tensor, int64_t step) {
  if (!kept.empty())
    return kept[tensor][step];
  Value ofWarp =
      e.scaled(warpNumber, BatchAttentionShape::rowsOfWarp * shape.rowBytes());
  Value start = warp.advance(memory, e.add(ofWarp, leftLane));
  return warp.loadMatrices(
      warp.advance(start, tensor * shape.ownBytes() + 32 * step), 4);
}

/// Leaves own rows in registers, once they are there.
void BatchAttentionEmitter::keepOwn() {
  warp.waitForCopies(0);
  e.barrier();
  SmallVector<SmallVector<Registers>> fragments(own.size());
  for (auto [tensor, list] : llvm::enumerate(fragments))
    for (int64_t step = 0; step < shape.columns / 16; ++step)
      list.push_back(ownFragment(static_cast<int64_t>(tensor), step));
  kept = std::move(fragments);
}

/// Products of own rows with those of a block: four for each 8 of these.
Registers BatchAttentionEmitter::multiplyRows(int64_t own, Value others) {
  Registers sums(shape.others / 2, e.f32(0.0));
  Value start = warp.advance(others, rightLane);
  for (int64_t step = 0; step < shape.columns / 16; ++step) {
    const Registers left = ownFragment(own, step);
    for (int64_t row = 0; row < shape.others; row += 16) {
      const Registers right = warp.loadMatrices(
          warp.advance(start, row * shape.rowBytes() + 32 * step), 4);
      for (int64_t half = 0; half < 2; ++half) {
        auto four = MutableArrayRef(sums).slice(row / 2 + 4 * half, 4);
        llvm::copy(warp.multiplyAdd(b.getBF16Type(), left,
                                    ArrayRef(right).slice(2 * half, 2), four),
                   four.begin());
      }
    }
  }
  return sums;
}

/// Adds the sums, of each own row, of a block's rows times `factors`, as
/// multiplyRows() gives them: four for each 8 columns.
void BatchAttentionEmitter::addProducts(MutableArrayRef<Value> sums,
                                        ArrayRef<Value> factors, Value others) {
  Type element = b.getBF16Type();
  Value start = warp.advance(others, leftLane);
  for (int64_t row = 0; row < shape.others; row += 16) {
    Registers left;
    for (int64_t pair = 0; pair < 4; ++pair)
      left.push_back(warp.pack(element, factors[row / 2 + 2 * pair],
                               factors[row / 2 + 2 * pair + 1]));
    for (int64_t column = 0; column < shape.columns; column += 16) {
      const Registers right = warp.loadMatrices(
          warp.advance(start, row * shape.rowBytes() + 2 * column), 4,
          /*isTransposed=*/true);
      for (int64_t half = 0; half < 2; ++half) {
        auto four = sums.slice(column / 2 + 4 * half, 4);
        llvm::copy(warp.multiplyAdd(element, left,
                                    ArrayRef(right).slice(2 * half, 2), four),
                   four.begin());
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void BatchAttentionEmitter::findMask() {
  if (!op.getMask())
    return;
  BlockArgument argument = argumentOf(op.getMask());
  ArrayRef<int64_t> extents = typeOf(argument).getShape();
  // Of batches, heads, queries and keys; 0 where all have the same.
  SmallVector<int64_t> strides(4, 0);
  int64_t stride = 1;
  for (auto [extent, own] :
       llvm::zip(llvm::reverse(extents), llvm::reverse(strides))) {
    own = extent == 1 ? 0 : stride;
    stride *= extent;
  }
  maskStart = warp.advance(warp.pointerTo(e.bufferOf(argument)),
                           e.scaled(batch, strides[0]));
  maskHead = strides[1];
  maskQuery = strides[2];
  maskKey = strides[3];
  hasMaskPairs = !isOfKeys && maskKey == 1 && extents.back() % 2 == 0;
}

/// Whether own rows see others', or are seen, by the mask: an i8, not 0, for
/// each score; nothing without one.
Registers BatchAttentionEmitter::loadMask(const Block &block) {
  Registers seen(shape.others / 2);
  if (!op.getMask())
    return {};
  Value start = warp.advance(maskStart, e.scaled(block.head, maskHead));
  auto inside = [&](Value number, int64_t limit) -> Value {
    return arith::MinUIOp::create(b, loc, number, e.index(limit - 1));
  };
  for (auto [number, own] : llvm::enumerate(ownRows)) {
    const auto r = static_cast<int64_t>(number);
    Value row = arith::IndexCastOp::create(b, loc, b.getIndexType(), own);
    row = inside(row, this->own[0].rows);
    Value ofRow =
        warp.advance(start, e.scaled(row, isOfKeys ? maskKey : maskQuery));
    for (int64_t column = 0; column < shape.others; column += 8) {
      Value at = e.add(block.first, e.add(e.scaled(place, 2), e.index(column)));
      const int64_t first = column / 2 + 2 * r;
      if (hasMaskPairs) {
        // The first of two is even.
        Value pair = inside(at, others[0].rows - 1);
        Value both = warp.loadRegisters(warp.advance(ofRow, pair), 2)[0];
        seen[first] = e.masked(both, 0xff);
        seen[first + 1] = e.shifted(both, 8);
        continue;
      }
      for (int64_t n = 0; n < 2; ++n) {
        Value one = inside(e.add(at, e.index(n)), others[0].rows);
        Value pointer =
            warp.advance(ofRow, e.scaled(one, isOfKeys ? maskQuery : maskKey));
        Value bits = LLVM::LoadOp::create(b, loc, b.getI8Type(), pointer, 1);
        seen[first + n] = arith::ExtUIOp::create(b, loc, b.getI32Type(), bits);
      }
    }
  }
  return seen;
}

/// Whether score `number` of row `r` of the lane counts; null: it does.
Value BatchAttentionEmitter::sees(int64_t r, int64_t number, const Block &block,
                                  ArrayRef<Value> mask) {
  Value all;
  auto require = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    Value holds = arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
    all = all ? arith::AndIOp::create(b, loc, all, holds).getResult() : holds;
  };
  auto word = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  };
  // Of 8 columns: 2t and the next one.
  const int64_t column = number / 4 * 8 + number % 2;
  Value other = arith::AddIOp::create(
      b, loc, word(e.add(block.first, e.scaled(place, 2))), e.word(column));
  if (others[0].rows % shape.others != 0)
    require(arith::CmpIPredicate::slt, other, e.word(others[0].rows));
  if (op.getCausal()) {
    Value ahead = isOfKeys ? arith::SubIOp::create(b, loc, ownRows[r], other)
                           : arith::SubIOp::create(b, loc, other, ownRows[r]);
    const auto offset = static_cast<int64_t>(op.getOffset());
    require(arith::CmpIPredicate::sle, ahead, e.word(offset));
    if (std::optional<uint64_t> window = op.getWindow())
      require(arith::CmpIPredicate::sgt, ahead,
              e.word(offset - static_cast<int64_t>(*window)));
  }
  if (!mask.empty())
    require(arith::CmpIPredicate::ne, mask[number], e.word(0));
  return all;
}

/// In units of log 2; -inf where they do not count.
Registers BatchAttentionEmitter::scoresOf(const Block &block) {
  const Registers mask = loadMask(block);
  Registers scores = multiplyRows(0, block.tensors[0]);
  Value scale = e.f32(getScaleFactor(op) * std::numbers::log2e);
  Value hidden = e.f32(-std::numeric_limits<double>::infinity());
  for (auto [number, score] : llvm::enumerate(scores)) {
    const auto at = static_cast<int64_t>(number);
    score = e.mul(score, scale);
    if (Value counts = sees(at / 2 % 2, at, block, mask))
      score = e.select(counts, score, hidden);
  }
  return scores;
}

/// What the four lanes that share a row have, added up, or the largest.
Value BatchAttentionEmitter::combineRow(Value own, bool isMaximum) {
  return warp.combineLanes(own, 0, 2, [&](Value x, Value y) -> Value {
    return isMaximum ? arith::MaximumFOp::create(b, loc, x, y).getResult()
                     : e.add(x, y);
  });
}

/// Weights of the scores, for the largest of each row so far; `totals` get
/// theirs, and `factors` what was summed up for others is multiplied by.
Registers BatchAttentionEmitter::weigh(ArrayRef<Value> scores,
                                       MutableArrayRef<Value> maxima,
                                       MutableArrayRef<Value> totals,
                                       Registers &factors) {
  Registers weights(scores);
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    auto forRow = [&](function_ref<void(Value &)> body) {
      for (size_t at = 2 * r; at < weights.size(); at += 4)
        for (size_t n = 0; n < 2; ++n)
          body(weights[at + n]);
    };
    Value largest;
    forRow([&](Value &score) {
      largest =
          largest
              ? arith::MaximumFOp::create(b, loc, largest, score).getResult()
              : score;
    });
    largest = arith::MaximumFOp::create(
        b, loc, maxima[r], combineRow(largest, /*isMaximum=*/true));
    factors.push_back(warp.exp2(e.sub(maxima[r], largest)));
    maxima[r] = largest;
    totals[r] = e.mul(totals[r], factors[r]);
    forRow([&](Value &score) {
      score = warp.exp2(e.sub(score, largest));
      totals[r] = e.add(totals[r], score);
    });
  }
  return weights;
}

//===----------------------------------------------------------------------===//
// The three kernels
//===----------------------------------------------------------------------===//

/// `yes` where `total` is 0, of a row that sees no key.
static Value ifNone(GPUEmitter &e, Value total, Value yes, Value no) {
  Value isNone = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ,
                                       total, e.f32(0.0));
  return e.select(isNone, yes, no);
}

void BatchAttentionEmitter::emitForward() {
  keepOwn();
  Registers initial(rowsOfLane, e.f32(lowestMaximum));
  initial.append(rowsOfLane + shape.columns / 2, e.f32(0.0));
  const Registers found =
      walk(initial, [&](const Block &block, ValueRange values) {
        Registers all(values);
        auto maxima = MutableArrayRef(all).take_front(rowsOfLane),
             totals = MutableArrayRef(all).slice(rowsOfLane, rowsOfLane),
             sums = MutableArrayRef(all).drop_front(2 * rowsOfLane);
        Registers factors;
        const Registers weights =
            weigh(scoresOf(block), maxima, totals, factors);
        for (auto [number, sum] : llvm::enumerate(sums))
          sum = e.mul(sum, factors[number / 2 % 2]);
        addProducts(sums, weights, block.tensors[1]);
        return all;
      });
  Registers factors;
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    Value total = combineRow(found[rowsOfLane + r], /*isMaximum=*/false);
    Value inverse = arith::DivFOp::create(b, loc, e.f32(1.0), total);
    factors.push_back(ifNone(e, total, e.f32(0.0), inverse));
  }
  storeRows(ArrayRef(found).drop_front(2 * rowsOfLane), factors, 0);
}

void BatchAttentionEmitter::emitQueries() {
  keepOwn();
  Registers initial(rowsOfLane, e.f32(lowestMaximum));
  initial.append(2 * rowsOfLane, e.f32(0.0));
  const Registers found =
      walk(initial, [&](const Block &block, ValueRange values) {
        Registers all(values);
        auto maxima = MutableArrayRef(all).take_front(rowsOfLane),
             totals = MutableArrayRef(all).slice(rowsOfLane, rowsOfLane),
             deltas = MutableArrayRef(all).drop_front(2 * rowsOfLane);
        Registers factors;
        const Registers weights =
            weigh(scoresOf(block), maxima, totals, factors);
        const Registers ofWeights = multiplyRows(1, block.tensors[1]);
        for (int64_t r = 0; r < rowsOfLane; ++r)
          deltas[r] = e.mul(deltas[r], factors[r]);
        for (auto [number, weight] : llvm::enumerate(weights)) {
          Value &delta = deltas[number / 2 % 2];
          delta = math::FmaOp::create(b, loc, weight, ofWeights[number], delta);
        }
        return all;
      });
  Registers logs, deltas;
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    Value zero = e.f32(0.0);
    Value total = combineRow(found[rowsOfLane + r], /*isMaximum=*/false);
    Value delta = combineRow(found[2 * rowsOfLane + r], /*isMaximum=*/false);
    Value log = e.add(e.mul(found[r], e.f32(std::numbers::ln2)),
                      math::LogOp::create(b, loc, total));
    logs.push_back(ifNone(e, total, zero, log));
    deltas.push_back(
        ifNone(e, total, zero, arith::DivFOp::create(b, loc, delta, total)));
    storeNumber(logs[r], r, 1);
    storeNumber(deltas[r], r, 2);
    logs[r] = e.mul(logs[r], e.f32(std::numbers::log2e));
  }
  const Registers none(shape.columns / 2, e.f32(0.0));
  const Registers sums = walk(none, [&](const Block &block, ValueRange values) {
    Registers all(values), gradients;
    const Registers scores = scoresOf(block);
    const Registers ofWeights = multiplyRows(1, block.tensors[1]);
    for (auto [number, score] : llvm::enumerate(scores)) {
      const size_t r = number / 2 % 2;
      Value weight = warp.exp2(e.sub(score, logs[r]));
      gradients.push_back(e.mul(weight, e.sub(ofWeights[number], deltas[r])));
    }
    addProducts(all, gradients, block.tensors[0]);
    return all;
  });
  storeRows(sums, Registers(rowsOfLane, e.f32(getScaleFactor(op))), 0);
}

void BatchAttentionEmitter::emitKeys() {
  auto gradient = cast<AttentionKvgradOp>(op.getOperation());
  const Rows lse = rowsOf(gradient.getLse()),
             delta = rowsOf(gradient.getDelta());
  const int64_t count = shape.columns / 2;
  const Registers none(2 * count, e.f32(0.0));
  const Registers sums = walk(none, [&](const Block &block, ValueRange values) {
    Registers all(values);
    auto keys = MutableArrayRef(all).take_front(count),
         valuesOf = MutableArrayRef(all).drop_front(count);
    Registers logs, deltas; // of each two of 8 queries
    for (int64_t column = 0; column < shape.others; column += 8)
      for (int64_t n = 0; n < 2; ++n) {
        Value row =
            e.add(block.first, e.add(e.scaled(place, 2), e.index(column + n)));
        logs.push_back(e.mul(loadNumber(lse, block.head, row),
                             e.f32(std::numbers::log2e)));
        deltas.push_back(loadNumber(delta, block.head, row));
      }
    Registers weights = scoresOf(block), gradients;
    for (auto [number, weight] : llvm::enumerate(weights))
      weight = warp.exp2(e.sub(weight, logs[number / 4 * 2 + number % 2]));
    addProducts(valuesOf, weights, block.tensors[1]);
    const Registers ofWeights = multiplyRows(1, block.tensors[1]);
    for (auto [number, weight] : llvm::enumerate(weights))
      gradients.push_back(
          e.mul(weight,
                e.sub(ofWeights[number], deltas[number / 4 * 2 + number % 2])));
    addProducts(keys, gradients, block.tensors[0]);
    return all;
  });
  storeRows(ArrayRef(sums).take_front(count),
            Registers(rowsOfLane, e.f32(getScaleFactor(op))), 0);
  storeRows(ArrayRef(sums).drop_front(count), Registers(rowsOfLane, e.f32(1.0)),
            1);
}

/// Row `r` of the lane in the tile: indices but of columns.
SmallVector<Value> BatchAttentionEmitter::placeOf(int64_t r) {
  SmallVector<Value> place(rank - 2, e.index(0));
  Value ofWarp = e.scaled(warpNumber, BatchAttentionShape::rowsOfWarp);
  place.push_back(e.add(ofWarp, e.add(group, e.index(8 * r))));
  return place;
}

static Value isRow(GPUEmitter &e, Value row, int64_t limit) {
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::slt, row,
                               e.word(limit));
}

/// Stores four sums for each 8 columns, times the factors of their rows.
void BatchAttentionEmitter::storeRows(ArrayRef<Value> sums,
                                      ArrayRef<Value> factors,
                                      unsigned number) {
  for (int64_t r = 0; r < rowsOfLane; ++r)
    e.ifThen(isRow(e, ownRows[r], own[0].rows), [&] {
      for (int64_t column = 0; column < shape.columns; column += 8)
        for (int64_t n = 0; n < 2; ++n) {
          SmallVector<Value> at = placeOf(r);
          at.push_back(e.add(e.scaled(place, 2), e.index(column + n)));
          e.storeResult(e.mul(sums[column / 2 + 2 * r + n], factors[r]), at,
                        number);
        }
    });
}

/// Stores what the four lanes of a row have alike.
void BatchAttentionEmitter::storeNumber(Value value, int64_t r,
                                        unsigned number) {
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, place,
                                        e.index(0));
  Value stores =
      arith::AndIOp::create(b, loc, isFirst, isRow(e, ownRows[r], own[0].rows));
  e.ifThen(stores, [&] { e.storeResult(value, placeOf(r), number); });
}

void mlir::kf::emitGPUBatchAttention(GPUEmitter &emitter) {
  BatchAttentionEmitter(emitter).emit();
}
