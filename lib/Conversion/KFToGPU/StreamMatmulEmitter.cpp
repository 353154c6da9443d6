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
// that leaves, which have columns of their own.
//
// A workgroup has a few row blocks of the weight. Its warps take tiles along K
// in turn; their sums meet in workgroup memory, and are added in the order of
// the warps. A norm's scale is multiplied to the sums, so that x is read once.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"
#include "StreamBlocks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

using Tile = ::kf::FragmentTile;

/// x is scaled by this for f16, so that what a model has fits, and what
/// rounding leaves once more, so that it is no subnormal number.
constexpr double halfScale = StreamBlocks::xScale, restScale = 0x1p11;

class StreamMatmulEmitter : public GPUMatmulEmitter {
public:
  explicit StreamMatmulEmitter(GPUEmitter &emitter)
      : GPUMatmulEmitter(emitter), stream(*emitter.shape.stream),
        tileBytes(stream.tileBytes), code(emitter) {}

private:
  LogicalResult prepareInput() override {
    if (!stream.hasSquares) {
      if (!e.isLoadable(op.getX()))
        e.waitForInputs();
      return GPUMatmulEmitter::prepareInput();
    }
    norm = op.getX().getDefiningOp<RmsNormOp>();
    if (norm && e.isLoadable(norm.getX()))
      return success();
    return op.emitOpError("convert-kf-to-gpu: no GPU code to fuse what its "
                          "norm reads into #kf.stream");
  }

  LogicalResult emitProduct() override {
    Value first = e.index(0);
    BlockArgument weight = findWeight(first);
    if (!weight)
      return op.emitOpError("convert-kf-to-gpu: #kf.stream reads the weight of "
                            "an argument");
    element = cast<RankedTensorType>(weight.getType()).getElementType();
    auto quant = dyn_cast<QuantType>(element);
    if (quant)
      element = b.getF16Type();
    auto vector = VectorType::get({4}, b.getI32Type());
    xMemory = e.workgroupMemory(stream.xVectors(), vector);
    ring = e.workgroupMemory(stream.ringVectors(), vector);
    sumMemory = e.workgroupMemory(stream.sums(), b.getF32Type());
    if (stream.hasSquares) {
      squares =
          e.workgroupMemory(stream.rows * stream.squares(), b.getF32Type());
      scales = e.workgroupMemory(stream.rows, b.getF32Type());
    }
    lane = rem(e.thread, StreamShape::lanes);
    warp = div(e.thread, StreamShape::lanes);
    group = div(lane, 4);
    inGroup = rem(lane, 4);
    blocks = e.ceilDiv(columns, stream.blockColumns);
    total = scaled(blocks, stream.steps());

    // What this lane copies and reads: of the warp's first tile.
    Value block = div(first, stream.blockColumns);
    Value tile =
        e.add(scaled(block, stream.tilesOfRow), scaled(warp, stream.tiles));
    Value ofLane = scaled(lane, vectorBytes);
    source = code.advance(code.pointerTo(e.bufferOf(weight)),
                          e.add(scaled(tile, tileBytes), ofLane));
    ringOfWarp = scaled(warp, stream.stages * stream.tiles * tileBytes);
    ringPointer = code.advance(code.pointerTo(ring), e.add(ringOfWarp, ofLane));
    for (int64_t number = 0; number < stream.columnTiles(); ++number)
      xOfLane.push_back(e.add(scaled(columnOf(number), 4), inGroup));
    if (quant) {
      operands = {lane,    group,   inGroup,
                  xMemory, xOfLane, code.workgroupBytes(4 * stream.xSums())};
      blockTiles.emplace(e, operands, getStorage(quant.getFormat()));
    }

    // Weights are on their way while the kernels before this one end.
    startChunk(e.index(0), total);
    e.waitForInputs();
    if (stream.chunks == 1)
      emitChunk(e.index(0));
    else
      e.loop(e.index(stream.chunks), [&](Value chunk) {
        emitChunk(chunk);
        if (blockTiles)
          syncLanes(); // before slots are overwritten that others read
        Value next = e.add(chunk, e.index(1));
        startChunk(next, e.select(e.isLess(next, e.index(stream.chunks)), total,
                                  e.index(0)));
        e.barrier(); // before x is overwritten
      });
    e.barrier();
    if (stream.hasSquares) {
      emitScales();
      e.barrier();
    }
    return storeElements();
  }

  //===--------------------------------------------------------------------===//
  // The weight
  //===--------------------------------------------------------------------===//

  /// The argument whose rows, from number `first` on, are those of the tile;
  /// null if there is none.
  BlockArgument findWeight(Value &first) {
    Value w = op.getW();
    while (auto slice = w.getDefiningOp<tensor::ExtractSliceOp>()) {
      SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
      first = e.add(first, e.index(offsets[offsets.size() - 2]));
      w = slice.getSource();
    }
    return dyn_cast<BlockArgument>(w);
  }

  /// What a warp copies next: the step's number, its number in the row block,
  /// and where its first tile begins, in bytes from `source` on.
  struct Cursor {
    Value number, step, offset;
  };

  Cursor firstOf(Value chunk) {
    return {e.index(0), e.index(0),
            scaled(chunk, stream.chunkTiles * tileBytes)};
  }

  Cursor after(const Cursor &cursor) {
    const int64_t stepBytes = stream.warps * stream.tiles * tileBytes;
    const int64_t blockBytes =
        stream.tilesOfRow * tileBytes - (stream.steps() - 1) * stepBytes;
    Value number = e.add(cursor.number, e.index(1));
    if (stream.steps() == 1)
      return {number, cursor.step, e.add(cursor.offset, e.index(blockBytes))};
    Value step = e.add(cursor.step, e.index(1));
    Value isInside = e.isLess(step, e.index(stream.steps()));
    return {number, e.select(isInside, step, e.index(0)),
            e.add(cursor.offset,
                  e.select(isInside, e.index(stepBytes), e.index(blockBytes)))};
  }

  /// Starts the copies of the first steps of a chunk of `count` steps, for all
  /// slots but one.
  void startChunk(Value chunk, Value count) {
    Cursor cursor = firstOf(chunk);
    for (int64_t stage = 0; stage + 1 < stream.stages; ++stage) {
      startCopies(chunk, cursor, count, e.index(stage));
      cursor = after(cursor);
    }
  }

  /// Starts the copies of a step, if there is one, into slot number `slot`: a
  /// group of copies.
  void startCopies(Value chunk, const Cursor &cursor, Value count, Value slot) {
    e.ifThen(e.isLess(cursor.number, count), [&] {
      Value to =
          code.advance(ringPointer, scaled(slot, stream.tiles * tileBytes));
      for (int64_t i = 0; i < stream.tiles; ++i) {
        Value offset = e.add(cursor.offset, e.index(i * tileBytes));
        Value bytes = word(vectorBytes);
        if (stream.chunks * stream.chunkTiles != stream.tilesOfRow) {
          Value inChunk =
              e.add(scaled(e.add(scaled(cursor.step, stream.warps), warp),
                           stream.tiles),
                    e.index(i));
          Value isInside =
              e.isLess(e.add(scaled(chunk, stream.chunkTiles), inChunk),
                       e.index(stream.tilesOfRow));
          bytes = e.select(isInside, bytes, word(0));
          // The warp's own first tile may be past the end, too.
          offset = e.select(
              isInside, offset,
              e.sub(e.index(0), scaled(warp, stream.tiles * tileBytes)));
        }
        copyTile(code.advance(to, i * tileBytes), code.advance(source, offset),
                 bytes);
      }
    });
    code.commitCopies();
  }

  /// Copies this lane's part of a tile, or fills it with zeros.
  void copyTile(Value to, Value from, Value bytes) {
    constexpr int64_t warpBytes = vectorBytes * StreamShape::lanes;
    for (int64_t at = 0; at < tileBytes; at += warpBytes) {
      auto copy = [&] {
        code.copyAsync(code.advance(to, at), code.advance(from, at), bytes);
      };
      if (tileBytes - at >= warpBytes)
        copy();
      else
        e.ifThen(e.isLess(lane, e.index((tileBytes - at) / vectorBytes)), copy);
    }
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// Adds the products of one chunk of K, whose first copies were started.
  void emitChunk(Value chunk) {
    Cursor cursor = firstOf(chunk);
    for (int64_t stage = 0; stage + 1 < stream.stages; ++stage)
      cursor = after(cursor);
    stageX(chunk);
    e.barrier();
    SmallVector<Value> state = {e.index(0), cursor.number, cursor.step,
                                cursor.offset};
    e.loop(e.index(0), blocks, e.index(1), state,
           [&](Value block, ValueRange args) {
             SmallVector<Value> inits(args);
             llvm::append_range(inits, initialSums(chunk, block));
             auto steps =
                 e.loop(e.index(0), e.index(stream.steps()), e.index(1), inits,
                        [&](Value step, ValueRange values) {
                          return emitStep(chunk, step, values);
                        });
             SmallVector<Value> results(steps.getResults());
             storeSums(block, ArrayRef(results).drop_front(state.size()));
             results.resize(state.size());
             return results;
           });
  }

  /// Multiplies the tiles of the oldest slot; `values` are the slot, the
  /// cursor and the sums.
  SmallVector<Value> emitStep(Value chunk, Value step, ValueRange values) {
    Value slot = values[0];
    Cursor cursor = {values[1], values[2], values[3]};
    SmallVector<Value> sums(values.drop_front(4));
    code.waitForCopies(stream.stages - 2);
    Value place = e.add(ringOfWarp, scaled(slot, stream.tiles * tileBytes));
    SmallVector<Value> tiles;
    SmallVector<StreamBlocks::Tile> tilesOfBlocks;
    if (blockTiles) {
      syncLanes(); // they read what others have copied
      Value pointer = code.pointerTo(ring);
      for (int64_t i = 0; i < stream.tiles; ++i)
        tilesOfBlocks.push_back(blockTiles->load(
            code.advance(pointer, e.add(place, e.index(i * tileBytes)))));
    } else {
      Value first = e.add(div(place, vectorBytes), lane);
      for (int64_t i = 0; i < stream.tiles; ++i)
        tiles.push_back(memref::LoadOp::create(
            b, loc, ring, e.add(first, e.index(i * StreamShape::lanes))));
    }
    // The slot before this one was read in the step before.
    Value isFirst = e.isLess(slot, e.index(1));
    Value free =
        e.select(isFirst, e.index(stream.stages - 1), e.sub(slot, e.index(1)));
    startCopies(chunk, cursor, total, free);
    cursor = after(cursor);

    Value firstTile =
        scaled(e.add(scaled(step, stream.warps), warp), stream.tiles);
    if (blockTiles) {
      constexpr int64_t pairs = 8;
      for (auto [number, tile] : llvm::enumerate(tilesOfBlocks))
        blockTiles->multiply(
            tile, scaled(e.add(firstTile, e.index(number)), pairs), sums);
    } else {
      multiplyPlain(tiles, div(firstTile, 2), sums);
    }
    Value next = e.add(slot, e.index(1));
    Value isInside = e.isLess(next, e.index(stream.stages));
    SmallVector<Value> results = {e.select(isInside, next, e.index(0)),
                                  cursor.number, cursor.step, cursor.offset};
    llvm::append_range(results, sums);
    return results;
  }

  /// Adds the products of `tiles`, whose x begins at pair `firstPair`.
  void multiplyPlain(ArrayRef<Value> tiles, Value firstPair,
                     MutableArrayRef<Value> sums) {
    for (int64_t pair = 0; pair < stream.tiles / 2; ++pair) {
      Value place =
          scaled(e.add(firstPair, e.index(pair)), 2 * stream.rows * 4);
      for (auto [number, column] : llvm::enumerate(xOfLane)) {
        SmallVector<Value> x = wordsOf(
            memref::LoadOp::create(b, loc, xMemory, e.add(place, column)));
        MutableArrayRef<Value> own = sums.slice(4 * number, 4);
        for (int64_t half = 0; half < 2; ++half)
          llvm::copy(code.multiplyAdd(element, wordsOf(tiles[2 * pair + half]),
                                      ArrayRef(x).slice(2 * half, 2), own),
                     own.begin());
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // Rows of x
  //===--------------------------------------------------------------------===//

  /// The column of x in memory, part * rows + row, that this lane multiplies in
  /// column tile `number`; some other one where there is none, whose sums
  /// nobody reads.
  Value columnOf(int64_t number) {
    auto clamped = [&](Value row) {
      return e.select(e.isLess(row, e.index(stream.rows)), row, e.index(0));
    };
    if (stream.columnTiles() == 1)
      return e.add(scaled(div(group, 4), stream.rows), clamped(rem(group, 4)));
    const int64_t half = stream.columnTiles() / 2;
    return e.add(clamped(e.add(group, e.index(number % half * 8))),
                 e.index(number / half * stream.rows));
  }

  /// Splits a chunk's columns of all rows into the two parts, in the order of
  /// the right operand: [pairs of tiles][parts][rows][4] vectors, of which each
  /// has words of columns 2 t, 2 t + 8, 2 t + 16 and 2 t + 24; where the weight
  /// has blocks, of 4 t, 4 t + 2, 4 t + 16 and 4 t + 18.
  void stageX(Value chunk) {
    constexpr int64_t perUnit = 8;
    const int64_t units = stream.chunkColumns() / perUnit;
    e.forThreads(scaled(rows, units), [&](Value number) {
      Value row = div(number, units), unit = rem(number, units);
      Value pair = div(unit, 4), t = rem(unit, 4);
      // A lane's columns: neighbours of 2, or, of blocks, of 4.
      Value inChunk = e.add(scaled(pair, StreamShape::pairColumns),
                            scaled(t, blockTiles ? 4 : 2));
      Value column = e.add(scaled(chunk, stream.chunkColumns()), inChunk);
      SmallVector<Value> high, low;
      Value sum = e.f32(0.0);
      SmallVector<Value> parts = {sum, sum};
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t offset = blockTiles ? 16 * (i / 2) + 2 * (i % 2) : 8 * i;
        Value k = e.add(column, e.index(offset));
        Value first = loadColumn(row, k, sum);
        Value second = loadColumn(row, e.add(k, e.index(1)), sum);
        if (blockTiles) {
          parts[i / 2] = e.add(parts[i / 2], e.add(first, second));
          if (double scale = blockTiles->scaleOfPair(i); scale != 1) {
            first = e.mul(first, e.f32(scale));
            second = e.mul(second, e.f32(scale));
          }
        }
        auto [rounded, rest] = split(first, second);
        high.push_back(rounded);
        low.push_back(rest);
      }
      Value place =
          e.add(scaled(e.add(scaled(pair, 2 * stream.rows), row), 4), t);
      storeWords(high, place);
      storeWords(low, e.add(place, e.index(stream.rows * 4)));
      if (blockTiles)
        blockTiles->storeSums(pair, row, parts);
      if (stream.hasSquares)
        storeSquares(chunk, row, unit, sum);
    });
  }

  /// Column `k` of a row of x, 0 past the end; without its norm's scale, and
  /// `squares` grows by its square before the norm's weight.
  Value loadColumn(Value row, Value k, Value &squaresOfUnit) {
    Value isInside;
    if (stream.paddedColumns() != extent) {
      isInside = e.isLess(k, e.index(extent));
      k = e.select(isInside, k, e.index(0));
    }
    Value value = norm ? e.load(norm.getX(), {row, k}, 0) : loadX(row, k);
    if (isInside)
      value = e.select(isInside, value, e.f32(0.0));
    if (!norm)
      return value;
    squaresOfUnit = e.add(squaresOfUnit, e.mul(value, value));
    Value weight = e.load(norm.getWeight(), k, 0);
    Value product = e.mul(value, weight);
    return isInside ? e.select(isInside, product, e.f32(0.0)) : product;
  }

  /// Adds what the warp's lanes have, which is of one line of a row.
  void storeSquares(Value chunk, Value row, Value unit, Value sum) {
    sum = code.combineLanes(sum, 0, 5,
                            [&](Value x, Value y) { return e.add(x, y); });
    const int64_t lines = stream.chunkColumns() / StreamShape::lineColumns;
    Value line = e.add(scaled(chunk, lines), div(unit, StreamShape::lanes));
    e.ifThen(e.isLess(lane, e.index(1)), [&] {
      memref::StoreOp::create(b, loc, sum, squares,
                              e.add(scaled(row, stream.squares()), line));
    });
  }

  /// The scale of each row, as rowStatistics() has it.
  void emitScales() {
    e.forThreads(rows, [&](Value row) {
      Value sum =
          e.loop(e.index(0), e.index(stream.squares()), e.index(1), e.f32(0.0),
                 [&](Value line, ValueRange args) -> SmallVector<Value> {
                   Value part = memref::LoadOp::create(
                       b, loc, squares,
                       e.add(scaled(row, stream.squares()), line));
                   return {e.add(args[0], part)};
                 })
              .getResult(0);
      Value mean = e.mul(sum, e.f32(1.0 / static_cast<double>(extent)));
      Value root = math::SqrtOp::create(
          b, loc, e.add(mean, e.f32(norm.getEps().convertToDouble())));
      memref::StoreOp::create(
          b, loc, arith::DivFOp::create(b, loc, e.f32(1.0), root), scales, row);
    });
  }

  /// Two numbers in one word: rounded, and what that leaves.
  std::pair<Value, Value> split(Value first, Value second) {
    const bool isHalf = element.isF16();
    if (isHalf) {
      first = e.mul(first, e.f32(halfScale));
      second = e.mul(second, e.f32(halfScale));
    }
    Value rounded = code.pack(element, first, second);
    auto [low, high] = widen(rounded);
    auto rest = [&](Value value, Value rounded) -> Value {
      Value left = e.sub(value, rounded);
      // Infinities leave nothing.
      Value isFinite = arith::CmpFOp::create(
          b, loc, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, left),
          e.f32(std::numeric_limits<double>::infinity()));
      left = e.select(isFinite, left, e.f32(0.0));
      return isHalf ? e.mul(left, e.f32(restScale)) : left;
    };
    return {rounded, code.pack(element, rest(first, low), rest(second, high))};
  }

  std::pair<Value, Value> widen(Value rounded) {
    if (element.isF16()) {
      Value pair = LLVM::BitcastOp::create(
          b, loc, VectorType::get({2}, element), rounded);
      auto at = [&](int64_t i) -> Value {
        Value half = vector::ExtractOp::create(b, loc, pair, i);
        return arith::ExtFOp::create(b, loc, b.getF32Type(), half);
      };
      return {at(0), at(1)};
    }
    auto float32 = [&](Value bits) -> Value {
      return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
    };
    return {float32(arith::ShLIOp::create(b, loc, rounded, word(16))),
            float32(arith::AndIOp::create(b, loc, rounded,
                                          word(int64_t(0xffff0000))))};
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// Where a workgroup has sums: [row blocks][warps][parts][rows][16 lines].
  Value sumPlace(Value block, Value ofWarp, Value part, Value row, Value line) {
    Value place = e.add(scaled(block, stream.warps), ofWarp);
    place = e.add(scaled(place, 2), part);
    place = e.add(scaled(place, stream.rows), row);
    return e.add(scaled(place, Tile::rows), line);
  }

  /// Calls `body` for each sum of this lane, with its part, its row, which
  /// there may not be, and its line.
  void forSums(function_ref<void(int64_t, Value, Value, Value)> body) {
    const int64_t tiles = stream.columnTiles();
    for (int64_t number = 0; number < tiles; ++number)
      for (int64_t i = 0; i < 4; ++i) {
        Value column = e.add(scaled(inGroup, 2), e.index(i % 2));
        Value line = e.add(group, e.index(i / 2 * 8));
        if (tiles == 1)
          body(i, div(column, 4), rem(column, 4), line);
        else
          body(4 * number + i, e.index(number / (tiles / 2)),
               e.add(column, e.index(number % (tiles / 2) * 8)), line);
      }
  }

  /// Zeros, or what the chunks before have left.
  SmallVector<Value> initialSums(Value chunk, Value block) {
    SmallVector<Value> sums(4 * stream.columnTiles(), e.f32(0.0));
    if (stream.chunks == 1)
      return sums;
    Value isFirst = e.isLess(chunk, e.index(1));
    forSums([&](int64_t number, Value part, Value row, Value line) {
      Value clamped =
          e.select(e.isLess(row, e.index(stream.rows)), row, e.index(0));
      Value before = memref::LoadOp::create(
          b, loc, sumMemory, sumPlace(block, warp, part, clamped, line));
      sums[number] = e.select(isFirst, sums[number], before);
    });
    return sums;
  }

  void storeSums(Value block, ArrayRef<Value> sums) {
    forSums([&](int64_t number, Value part, Value row, Value line) {
      e.ifThen(e.isLess(row, e.index(stream.rows)), [&] {
        memref::StoreOp::create(b, loc, sums[number], sumMemory,
                                sumPlace(block, warp, part, row, line));
      });
    });
  }

  /// Adds the warps' sums of each element, and stores it.
  LogicalResult storeElements() {
    LogicalResult stored = success();
    e.forThreads(scaled(rows, shape.columns), [&](Value number) {
      Value row = div(number, shape.columns);
      Value column = rem(number, shape.columns);
      Value block = div(column, stream.blockColumns);
      Value line = rem(column, stream.blockColumns);
      Value scale;
      if (stream.hasSquares)
        scale = memref::LoadOp::create(b, loc, scales, row);
      SmallVector<Value> sums;
      for (int64_t part = 0; part < shape.groups; ++part) {
        Value sum =
            sumOf(block, row, e.add(line, e.index(part * stream.blockColumns)));
        sums.push_back(scale ? e.mul(sum, scale) : sum);
      }
      stored = storeElement(row, column, sums);
    });
    return stored;
  }

  /// The sum of an element: of all warps, each part by itself.
  Value sumOf(Value block, Value row, Value line) {
    Value parts[2];
    for (int64_t part = 0; part < 2; ++part)
      for (int64_t i = 0; i < stream.warps; ++i) {
        Value sum = memref::LoadOp::create(
            b, loc, sumMemory,
            sumPlace(block, e.index(i), e.index(part), row, line));
        parts[part] = i == 0 ? sum : e.add(parts[part], sum);
      }
    if (!element.isF16())
      return e.add(parts[0], parts[1]);
    return e.mul(
        e.add(parts[0], e.mul(parts[1], e.f32(1 / restScale))),
        e.f32(1 / (halfScale * (blockTiles ? StreamBlocks::codeScale : 1))));
  }

  /// What a warp's lanes have copied and read is seen by the others.
  void syncLanes() { NVVM::SyncWarpOp::create(b, loc, word(-1)); }

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  Value div(Value x, int64_t by) {
    return arith::DivUIOp::create(b, loc, x, e.index(by));
  }
  Value rem(Value x, int64_t by) {
    return arith::RemUIOp::create(b, loc, x, e.index(by));
  }
  Value scaled(Value x, int64_t by) { return e.mul(x, e.index(by)); }
  Value word(int64_t value) {
    return arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  SmallVector<Value> wordsOf(Value vector) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(vector::ExtractOp::create(b, loc, vector, i));
    return words;
  }
  void storeWords(ArrayRef<Value> words, Value place) {
    Value vector = vector::FromElementsOp::create(
        b, loc, VectorType::get({4}, b.getI32Type()), words);
    memref::StoreOp::create(b, loc, vector, xMemory, place);
  }

  static constexpr int64_t vectorBytes = 16;

  const StreamShape &stream;
  const int64_t tileBytes;
  WarpOps code;
  StreamOperands operands;                // of blocks
  std::optional<StreamBlocks> blockTiles; // where the weight has blocks
  RmsNormOp norm;                         // where sums are scaled
  Type element;                           // of the weight; f16 for blocks

  Value xMemory, ring, sumMemory, squares, scales;
  Value lane, warp, group, inGroup; // of this thread; 4 lanes are a group
  Value blocks, total;              // row blocks, and steps for all of them
  Value source;                     // of this lane's copies
  Value ringOfWarp;                 // bytes to its first slot
  Value ringPointer;                // to this lane's part of it
  SmallVector<Value> xOfLane;       // in a pair's vectors, by column tile
};

} // namespace

LogicalResult mlir::kf::emitStreamMatmul(GPUEmitter &emitter) {
  return StreamMatmulEmitter(emitter).emit();
}
