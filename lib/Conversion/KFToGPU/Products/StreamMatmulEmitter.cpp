//===- StreamMatmulEmitter.cpp - Products of few rows on matrix units -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With few rows a product is as fast as its weight is read. The weight lies in
// tiles (`#kf.fragments`) that are the left operand of the matrix units, so
// that a warp copies them to workgroup memory of its own, 16 bytes a lane and
// steps ahead, and multiplies what it finds there. No barrier of the workgroup
// stands between: of 16-bit floats, a lane reads what it has copied itself; of
// blocks, what its warp has. Rows of x are the columns of the right operand.
// They are split into two numbers of 16 bits each, what is rounded and what
// that leaves, which have columns of their own; or rounded, where many have the
// same expert. A weight of f32 is split, too, into two numbers of TF32, when it
// is multiplied, and x with it.
//
// A workgroup has a few row blocks of the weight. K is divided into as many
// shares as there are warps: these take tiles along K in turn. What shares have
// is added in their order, in workgroup memory. With more rows of x, reading x
// costs as much as the weight: then warps have row blocks of their own, and all
// shares one after the other, so that they add up in registers. A norm's scale
// is multiplied to the sums, so that x is read once.
//
//===----------------------------------------------------------------------===//

#include "StreamMatmulEmitter.h"

#include "../../Common/RowFormulas.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

using Tile = ::kf::FragmentTile;

void StreamMatmulEmitter::prepareInput() {
  experts = dyn_cast<ExpertMatmulOp>(product.getOperation());
  if (experts)
    return;
  if (stream.hasSquares) {
    norm = op.getX().getDefiningOp<RmsNormOp>();
    return;
  }
  if (!e.isLoadable(op.getX()))
    e.waitForInputs();
  GPUMatmulEmitter::prepareInput();
}

void StreamMatmulEmitter::emitProduct() {
  findWeight();
  isFloat8 = isa<Float8E4M3FNType>(
      cast<RankedTensorType>(weight.argument.getType()).getElementType());
  auto vector = VectorType::get({4}, b.getI32Type());
  xMemory = e.workgroupMemory(stream.xVectors(), vector);
  e.useAllRegisters();
  ring = e.workgroupMemory(stream.ringVectors(), vector);
  sumMemory = e.workgroupMemory(stream.sums(), b.getF32Type());
  if (stream.hasSquares) {
    squares = e.workgroupMemory(stream.rows * stream.squares(), b.getF32Type());
    scales = e.workgroupMemory(stream.rows, b.getF32Type());
  }
  if (stream.xSums() > 0)
    sumsOfX = code.workgroupBytes(4 * stream.xSums());
  if (stream.hasRange)
    range.emplace(e, stream.rows);
  return experts ? emitExperts() : emitRows();
}

Value StreamMatmulEmitter::loadX(Value row, Value k) {
  if (!experts)
    return GPUMatmulEmitter::loadX(row, k);
  return places->loadX(row, k);
}

/// Multiplies rows, once more where they are to be scaled.
void StreamMatmulEmitter::emitRows() {
  if (!range)
    return emitTile();
  range->reset();
  emitTile();
  range->unlessNoted({}, [&] {
    isScaled = true;
    emitTile();
    return SmallVector<Value>();
  });
}

/// Finds the ranges of rows of x, where a norm does not scale them yet.
void StreamMatmulEmitter::findRange() {
  range->find(rows, extent, [&](Value row, Value k) {
    return norm ? e.mul(e.load(norm.getX(), {row, k}, 0),
                        normWeight(e, norm, k, 0))
                : loadX(row, k);
  });
}

void StreamMatmulEmitter::emitTile() {
  numberThread(stream.blockColumns);
  passes = e.ceilDiv(blocks, stream.passBlocks());
  total = e.scaled(passes, stream.rounds() * stream.steps());
  share = e.rem(warp, stream.sharesAtOnce());
  ownBlock = e.scaled(e.div(warp, stream.sharesAtOnce()), stream.warpBlocks);

  // What this lane copies and reads: of the warp's first tile.
  Value block = e.add(e.div(weight.first, stream.blockColumns), ownBlock);
  if (experts) {
    auto w = cast<RankedTensorType>(weight.argument.getType());
    block = e.add(
        block, e.scaled(places->expert(),
                        Tile::rowBlocks(shape.groups, w.getShape().end()[-2])));
  }
  startCopiesAt(
      e.add(e.scaled(block, stream.tilesOfRow), e.scaled(share, stream.tiles)),
      tileBytes);
  ringOfWarp = e.scaled(warp, stream.stages * slotBytes());
  ringPointer = code.advance(code.pointerTo(ring), e.add(ringOfWarp, ofLane));
  xOfLane.clear();
  for (int64_t number = 0; number < stream.columnTiles(); ++number)
    xOfLane.push_back(e.add(e.scaled(columnOf(number), 4), inGroup));
  if (quant) {
    operands = {{lane, group, inGroup}, xMemory, xOfLane, sumsOfX};
    blockTiles.emplace(e, operands, getStorage(quant.getFormat()));
  }

  // Weights are on their way while the kernels before this one end.
  Cursor cursor = {e.index(0), e.index(0), e.index(0), ownBlock, e.index(0)};
  for (int64_t stage = 0; stage + 1 < stream.stages; ++stage) {
    startCopies(cursor, e.index(stage));
    cursor = after(cursor);
  }
  e.waitForInputs();
  if (isScaled)
    findRange();
  if (stream.chunks() == 1) {
    stageX(e.index(0), e.index(0));
    e.barrier();
    if (stream.hasSquares)
      emitScales(); // seen behind the next barrier
  }
  emitPasses(cursor);
  e.barrier();
  if (stream.hasSquares && stream.chunks() > 1) {
    emitScales();
    e.barrier();
  }
  return storeElements();
}

//===----------------------------------------------------------------------===//
// The weight
//===----------------------------------------------------------------------===//

StreamMatmulEmitter::Cursor StreamMatmulEmitter::after(const Cursor &cursor) {
  const int64_t stepBytes = stream.shares() * stream.tiles * tileBytes;
  // From the last step of a share to the first of the next round, and from
  // the last round's to those of other row blocks.
  const int64_t roundBytes = stream.sharesAtOnce() * stream.tiles * tileBytes -
                             (stream.steps() - 1) * stepBytes;
  const int64_t passBytes =
      stream.passBlocks() * stream.tilesOfRow * tileBytes -
      (stream.rounds() - 1) * stream.sharesAtOnce() * stream.tiles * tileBytes -
      (stream.steps() - 1) * stepBytes;
  Cursor next = cursor;
  next.number = e.add(cursor.number, e.index(1));
  Value bytes = e.index(passBytes);
  Value block = e.add(cursor.block, e.index(stream.passBlocks()));
  if (stream.rounds() > 1) {
    Value round = e.add(cursor.round, e.index(1));
    Value isInside = e.isLess(round, e.index(stream.rounds()));
    next.round = e.select(isInside, round, e.index(0));
    block = e.select(isInside, cursor.block, block);
    bytes = e.select(isInside, e.index(roundBytes), bytes);
  }
  if (stream.steps() > 1) {
    next.step = e.add(cursor.step, e.index(1));
    Value isInside = e.isLess(next.step, e.index(stream.steps()));
    next.step = e.select(isInside, next.step, e.index(0));
    next.round = e.select(isInside, cursor.round, next.round);
    block = e.select(isInside, cursor.block, block);
    bytes = e.select(isInside, e.index(stepBytes), bytes);
  }
  next.block = block;
  next.offset = e.add(cursor.offset, bytes);
  return next;
}

/// Starts the copies of a step, if there is one, into slot number `slot`: a
/// group of copies.
void StreamMatmulEmitter::startCopies(const Cursor &cursor, Value slot) {
  auto copyBlock = [&](int64_t number) {
    Value to = code.advance(ringPointer,
                            e.add(e.scaled(slot, slotBytes()),
                                  e.index(number * stream.tiles * tileBytes)));
    for (int64_t i = 0; i < stream.tiles; ++i) {
      Value offset = e.add(
          cursor.offset, e.index((number * stream.tilesOfRow + i) * tileBytes));
      Value bytes = e.word(vectorBytes);
      if (stream.steps() * stream.shares() * stream.tiles !=
          stream.tilesOfRow) {
        Value step =
            e.add(e.scaled(cursor.step, stream.shares()),
                  e.add(e.scaled(cursor.round, stream.sharesAtOnce()), share));
        Value isInside =
            e.isLess(e.add(e.scaled(step, stream.tiles), e.index(i)),
                     e.index(stream.tilesOfRow));
        bytes = e.select(isInside, bytes, e.word(0));
        // The warp's own first tile may be past the end, too.
        Value own = e.add(e.scaled(ownBlock, stream.tilesOfRow),
                          e.scaled(share, stream.tiles));
        offset = e.select(isInside, offset,
                          e.sub(e.index(0), e.scaled(own, tileBytes)));
      }
      code.copyTile(code.advance(to, i * tileBytes),
                    code.advance(source, offset), tileBytes, lane, bytes);
    }
  };
  e.ifThen(e.isLess(cursor.number, total), [&] {
    for (int64_t number = 0; number < stream.warpBlocks; ++number)
      if (stream.passBlocks() == 1)
        copyBlock(number);
      else
        e.ifThen(e.isLess(e.add(cursor.block, e.index(number)), blocks),
                 [&] { copyBlock(number); });
  });
  code.commitCopies();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Calls `body` `count` times; a state goes from one to the next.
SmallVector<Value> StreamMatmulEmitter::repeat(
    Value count, ValueRange state,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (getConstantIntValue(count) == 1)
    return body(e.index(0), state);
  auto loop = e.loop(e.index(0), count, e.index(1), state, body);
  return SmallVector<Value>(loop.getResults());
}

/// Adds the products of all row blocks; copies up to `cursor` are started.
void StreamMatmulEmitter::emitPasses(const Cursor &cursor) {
  const int64_t count = 4 * stream.columnTiles() * stream.warpBlocks;
  const bool addsRounds = stream.rounds() > 1 && stream.sharesAtOnce() == 1;
  SmallVector<Value> state = {e.index(0),   cursor.number, cursor.step,
                              cursor.round, cursor.block,  cursor.offset};
  const size_t fixed = state.size();
  repeat(passes, state, [&](Value pass, ValueRange values) {
    SmallVector<Value> args(values);
    Value block = e.add(e.scaled(pass, stream.passBlocks()), ownBlock);
    if (addsRounds) // what is added to -0 stays as it is
      args.append(count, e.f32(-0.0));
    args = repeat(
        e.index(stream.rounds()), args, [&](Value round, ValueRange values) {
          SmallVector<Value> before(values.drop_front(fixed));
          SmallVector<Value> args = emitShare(round, values.take_front(fixed));
          SmallVector<Value> sums(ArrayRef(args).drop_front(fixed));
          args.resize(fixed);
          if (!addsRounds) {
            Value place = e.add(e.scaled(round, stream.sharesAtOnce()), share);
            storeSums(block, place, sums);
            return args;
          }
          for (auto [total, sum] : llvm::zip(before, sums))
            args.push_back(e.add(total, sum));
          return args;
        });
    if (addsRounds)
      storeSums(block, e.index(0), ArrayRef(args).drop_front(fixed));
    args.resize(fixed);
    return args;
  });
}

/// Adds the products of a share, that of this warp in round number `round`.
SmallVector<Value> StreamMatmulEmitter::emitShare(Value round,
                                                  ValueRange state) {
  SmallVector<Value> args(state);
  args.append(4 * stream.columnTiles() * stream.warpBlocks, e.f32(0.0));
  return repeat(e.index(stream.slices), args,
                [&](Value slice, ValueRange values) {
                  if (stream.chunks() > 1) {
                    e.barrier(); // before x is overwritten
                    stageX(round, slice);
                    e.barrier();
                  }
                  return repeat(e.index(stream.chunkSteps), values,
                                [&](Value step, ValueRange all) {
                                  return emitStep(step, all);
                                });
                });
}

/// Multiplies the tiles of the oldest slot with step number `step` of the
/// chunk; `values` are the slot, the cursor and the sums.
SmallVector<Value> StreamMatmulEmitter::emitStep(Value step,
                                                 ValueRange values) {
  Value slot = values[0];
  Cursor cursor = {values[1], values[2], values[3], values[4], values[5]};
  SmallVector<Value> sums(values.drop_front(6));
  code.waitForCopies(stream.stages - 2);
  Value place = e.add(ringOfWarp, e.scaled(slot, slotBytes()));
  const int64_t count = stream.warpBlocks * stream.tiles;
  SmallVector<Value> tiles;
  SmallVector<StreamBlocks::Tile> tilesOfBlocks;
  if (blockTiles) {
    code.syncLanes(); // they read what others have copied
    Value pointer = code.pointerTo(ring);
    for (int64_t i = 0; i < count; ++i)
      tilesOfBlocks.push_back(blockTiles->load(
          code.advance(pointer, e.add(place, e.index(i * tileBytes)))));
  } else {
    Value first = e.add(e.div(place, vectorBytes), lane);
    for (int64_t i = 0; i < count; ++i)
      tiles.push_back(memref::LoadOp::create(
          b, loc, ring, e.add(first, e.index(i * StreamShape::lanes))));
  }
  // The slot before this one was read in the step before.
  Value isFirst = e.isLess(slot, e.index(1));
  Value free =
      e.select(isFirst, e.index(stream.stages - 1), e.sub(slot, e.index(1)));
  startCopies(cursor, free);
  cursor = after(cursor);

  Value firstTile = e.scaled(
      e.add(e.scaled(step, stream.sharesAtOnce()), share), stream.tiles);
  if (blockTiles) {
    constexpr int64_t pairs = 8;
    const int64_t ofBlock = 4 * stream.columnTiles();
    for (int64_t i = 0; i < stream.tiles; ++i)
      for (int64_t number = 0; number < stream.warpBlocks; ++number)
        blockTiles->multiply(
            tilesOfBlocks[number * stream.tiles + i],
            e.scaled(e.add(firstTile, e.index(i)), pairs),
            MutableArrayRef(sums).slice(number * ofBlock, ofBlock));
  } else if (isFloat8) {
    multiplyFloat8(tiles, firstTile, sums);
  } else if (isSingle()) {
    multiplySingle(
        tiles, e.div(firstTile, StreamShape::pairColumns / stream.tileColumns),
        sums);
  } else {
    multiplyPlain(tiles, e.div(firstTile, 2), sums);
  }
  Value next = e.add(slot, e.index(1));
  Value isInside = e.isLess(next, e.index(stream.stages));
  SmallVector<Value> results = {e.select(isInside, next, e.index(0)),
                                cursor.number,
                                cursor.step,
                                cursor.round,
                                cursor.block,
                                cursor.offset};
  llvm::append_range(results, sums);
  return results;
}

/// Adds the products of `tiles`, those of each row block in turn, whose x
/// begins at pair `firstPair`.
void StreamMatmulEmitter::multiplyPlain(ArrayRef<Value> tiles, Value firstPair,
                                        MutableArrayRef<Value> sums) {
  for (int64_t pair = 0; pair < stream.tiles / 2; ++pair)
    multiplyPair(
        [&](int64_t half, int64_t block) {
          return wordsOf(tiles[block * stream.tiles + 2 * pair + half]);
        },
        e.add(firstPair, e.index(pair)), sums);
}

/// The same of f8E4M3FN, a tile of which has the columns of a pair.
void StreamMatmulEmitter::multiplyFloat8(ArrayRef<Value> tiles, Value firstPair,
                                         MutableArrayRef<Value> sums) {
  for (int64_t pair = 0; pair < stream.tiles; ++pair) {
    SmallVector<SmallVector<Value>> left[2]; // by half and row block
    for (int64_t block = 0; block < stream.warpBlocks; ++block) {
      SmallVector<Value> codes = wordsOf(tiles[block * stream.tiles + pair]);
      for (int64_t half = 0; half < 2; ++half) {
        auto [upper, upperNext] = code.widenFloat8(codes[2 * half]);
        auto [lower, lowerNext] = code.widenFloat8(codes[2 * half + 1]);
        left[half].push_back({upper, lower, upperNext, lowerNext});
      }
    }
    multiplyPair([&](int64_t half, int64_t block) { return left[half][block]; },
                 e.add(firstPair, e.index(pair)), sums);
  }
}

/// The same of f32. Each number is two, of which matrix units multiply all
/// four products: the weight's terms one after the other with columns of x that
/// have its large terms or its rests. An infinity in x is not multiplied by
/// what the weight leaves, which may be 0.
void StreamMatmulEmitter::multiplySingle(ArrayRef<Value> tiles, Value firstPair,
                                         MutableArrayRef<Value> sums) {
  const size_t half = xOfLane.size() / 2; // column tiles of each term
  Value hasRest; // whether this lane has it, where one column tile has both
  if (half == 0)
    hasRest = e.isLess(e.index(3), group);
  for (int64_t i = 0; i < stream.tiles; i += 2) { // they share a load of x
    Value part = e.add(e.scaled(firstPair, 2), e.index(i / 2));
    Value place = e.scaled(part, stream.rows * 4);
    // By column tile, for what the weight leaves and its large terms.
    SmallVector<SmallVector<Value>> x[2];
    for (auto &columns : x)
      columns.resize(xOfLane.size());
    for (size_t number = 0; number < std::max<size_t>(half, 1); ++number)
      for (Value word : wordsOf(memref::LoadOp::create(
               b, loc, xMemory, e.add(place, xOfLane[number])))) {
        auto [large, rest, isInfinite] = code.splitSingle(word);
        for (bool isLarge : {false, true}) {
          Value other =
              isLarge ? large : e.select(isInfinite, e.word(0), large);
          if (hasRest) {
            x[isLarge][number].push_back(e.select(hasRest, rest, other));
            continue;
          }
          x[isLarge][number].push_back(other);
          x[isLarge][number + half].push_back(rest);
        }
      }
    for (int64_t tile = 0; tile < 2; ++tile)
      for (int64_t block = 0; block < stream.warpBlocks; ++block) {
        SmallVector<Value> left[2];
        for (Value word : wordsOf(tiles[block * stream.tiles + i + tile])) {
          NvvmCode::Split split = code.splitSingle(word);
          left[false].push_back(split.rest);
          left[true].push_back(split.large);
        }
        for (size_t number = 0; number < xOfLane.size(); ++number) {
          MutableArrayRef<Value> own =
              sums.slice(4 * (block * xOfLane.size() + number), 4);
          for (bool isLarge : {false, true})
            llvm::copy(code.multiplyAdd(
                           element, left[isLarge],
                           ArrayRef(x[isLarge][number]).slice(2 * tile, 2),
                           own),
                       own.begin());
        }
      }
  }
}

/// Adds the products of both halves of pair number `pair` of x with each row
/// block's left operand, leftOf(half, row block).
void StreamMatmulEmitter::multiplyPair(
    function_ref<SmallVector<Value>(int64_t, int64_t)> leftOf, Value pair,
    MutableArrayRef<Value> sums) {
  Value place = e.scaled(pair, stream.terms * stream.rows * 4);
  for (auto [number, column] : llvm::enumerate(xOfLane)) {
    SmallVector<Value> x =
        wordsOf(memref::LoadOp::create(b, loc, xMemory, e.add(place, column)));
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t block = 0; block < stream.warpBlocks; ++block) {
        MutableArrayRef<Value> own =
            sums.slice(4 * (block * stream.columnTiles() + number), 4);
        llvm::copy(code.multiplyAdd(element, leftOf(half, block),
                                    ArrayRef(x).slice(2 * half, 2), own),
                   own.begin());
      }
  }
}

/// The column of x in memory, term * rows + row, or the row alone of what is
/// not split there, that this lane multiplies in column tile `number`; some
/// other one where there is none, whose sums nobody reads.
Value StreamMatmulEmitter::columnOf(int64_t number) {
  const int64_t ofPart = isSingle() ? 0 : stream.rows;
  auto clamped = [&](Value row) {
    return e.select(e.isLess(row, e.index(stream.rows)), row, e.index(0));
  };
  if (stream.isMixed())
    return e.add(e.scaled(e.div(group, 4), ofPart), clamped(e.rem(group, 4)));
  const int64_t ofTerm = stream.highTiles();
  return e.add(clamped(e.add(group, e.index(number % ofTerm * 8))),
               e.index(number / ofTerm * ofPart));
}

SmallVector<Value> StreamMatmulEmitter::wordsOf(Value vector) {
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(vector::ExtractOp::create(b, loc, vector, i));
  return words;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Where a workgroup has sums: [row blocks][shares, or one][terms][rows][16
/// lines].
Value StreamMatmulEmitter::sumPlace(Value block, Value ofShare, Value term,
                                    Value row, Value line) {
  Value place = e.add(e.scaled(block, stream.sumsOfBlock()), ofShare);
  place = e.add(e.scaled(place, stream.terms), term);
  place = e.add(e.scaled(place, stream.rows), row);
  return e.add(e.scaled(place, Tile::rows), line);
}

/// Calls `body` for each sum of this lane, with its term, its row, which
/// there may not be, and its line.
void StreamMatmulEmitter::forSums(
    function_ref<void(int64_t, Value, Value, Value)> body) {
  const int64_t tiles = stream.columnTiles();
  for (int64_t number = 0; number < tiles; ++number)
    for (int64_t i = 0; i < 4; ++i) {
      Value column = e.add(e.scaled(inGroup, 2), e.index(i % 2));
      Value line = e.add(group, e.index(i / 2 * 8));
      if (stream.isMixed())
        body(i, e.div(column, 4), e.rem(column, 4), line);
      else
        body(4 * number + i, e.index(number / stream.highTiles()),
             e.add(column, e.index(number % stream.highTiles() * 8)), line);
    }
}

/// Stores the sums of row blocks from `block` on.
void StreamMatmulEmitter::storeSums(Value block, Value ofShare,
                                    ArrayRef<Value> sums) {
  const int64_t ofBlock = 4 * stream.columnTiles();
  auto store = [&](Value block, ArrayRef<Value> sums) {
    forSums([&](int64_t number, Value term, Value row, Value line) {
      e.ifThen(e.isLess(row, e.index(stream.rows)), [&] {
        memref::StoreOp::create(b, loc, sums[number], sumMemory,
                                sumPlace(block, ofShare, term, row, line));
      });
    });
  };
  for (int64_t number = 0; number < stream.warpBlocks; ++number) {
    Value place = e.add(block, e.index(number));
    ArrayRef<Value> own = sums.slice(number * ofBlock, ofBlock);
    if (stream.passes() * stream.passBlocks() == stream.blocks)
      store(place, own);
    else
      e.ifThen(e.isLess(place, e.index(stream.blocks)),
               [&] { store(place, own); });
  }
}

/// Adds the shares' sums of each element, and stores it.
void StreamMatmulEmitter::storeElements() {
  storeTile(stream.blockColumns, [&](Value row, Value block, Value line) {
    SmallVector<Value> sums;
    for (int64_t group = 0; group < shape.groups; ++group)
      sums.push_back(
          sumOf(block, row, e.add(line, e.index(group * stream.blockColumns))));
    if (range && !isScaled) {
      Value column = e.add(e.scaled(block, stream.blockColumns), line);
      e.ifThen(e.isLess(column, columns), [&] { range->check(sums); });
    }
    Value scale;
    if (stream.hasSquares) // of the row as it was scaled
      scale = memref::LoadOp::create(b, loc, scales, row);
    else if (isScaled)
      scale = range->inverseOf(row);
    for (Value &sum : sums)
      if (scale)
        sum = e.mul(sum, scale);
    return sums;
  });
}

/// The sum of an element: of all shares, each term by itself.
Value StreamMatmulEmitter::sumOf(Value block, Value row, Value line) {
  Value terms[2];
  for (int64_t term = 0; term < stream.terms; ++term)
    for (int64_t i = 0; i < stream.sumsOfBlock(); ++i) {
      Value sum = memref::LoadOp::create(
          b, loc, sumMemory,
          sumPlace(block, e.index(i), e.index(term), row, line));
      terms[term] = i == 0 ? sum : e.add(terms[term], sum);
    }
  Value sum = terms[0];
  if (Value rest = terms[1])
    sum =
        e.add(sum, element.isF16() ? e.mul(rest, e.f32(1 / restScale)) : rest);
  if (!element.isF16())
    return sum;
  return e.mul(sum, e.f32(1 / (halfScale() *
                               (blockTiles ? blockTiles->codeScale() : 1))));
}

void mlir::kf::emitStreamMatmul(GPUEmitter &emitter) {
  StreamMatmulEmitter(emitter).emit();
}
