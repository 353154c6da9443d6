//===- FlashCoopEmitter.cpp - Attention on cooperative matrices -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A subgroup has 16 query rows, and all of them visit the same blocks of keys,
// each within a page:
//
// 1. Threads copy the keys to workgroup memory; those of the next block, and
//    values, are in registers while subgroups multiply.
// 2. Subgroups multiply their queries, which they hold, with the keys, and
//    leave the scores in workgroup memory: nobody says which element of a
//    matrix a thread has.
// 3. Threads that share a row make weights of its scores, and the factor by
//    which a new maximum scales what there is: a matrix whose columns all hold
//    the factors of the rows.
// 4. Values take the place of the keys. Subgroups scale their sums by the
//    factors, element by element, and add weights times values.
//
// Queries, weights and codes of q8_0 are rounded to 16 bits. Where something
// comes out that is not finite, or a query is past the range of f16, the block
// of rows is computed again by FlashEmitter: a key that a row does not see may
// hold a NaN, of which a weight of 0 makes another one.
//
// Blocks of keys begin at multiples of their size, and a row that sees nothing
// of one is scaled by 1, so what a row sums up, and in which order, depends on
// no other row, unless one of its block is computed again.
//
// Workgroup memory: lines [lines][lineVectors] vectors of 16 bytes; weights
// [rows][weightWords] words; scores [rows][scoreStride] f32, where factors,
// queries on their way and results are, too; partials [rows][sharers] f32, and
// [rows] behind them.
//
//===----------------------------------------------------------------------===//

#include "../Units/HalfPairs.h"
#include "../Units/RowRange.h"
#include "FlashEmitter.h"

#include "../../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

using Values = SmallVector<Value>;

constexpr int64_t vectorColumns = FlashCoopShape::vectorColumns;
/// Codes of 16 bytes.
constexpr int64_t vectorCodes = 16;
/// Elements of queries that a thread has on their way.
constexpr int64_t queriesAtOnce = 4;
/// Magnitudes that f16 does not hold, by the bits of an f32; and those of a
/// scale whose codes may make one.
constexpr int64_t leastWide = 0x477ff000, leastWideScale = 0x43ff8000;
constexpr int64_t infinity = 0x7f800000;
/// What weights are multiplied by in f16, where the largest is 1: few are then
/// subnormal, which devices may round as they like, or take for zeros.
constexpr double weightScale = 1 << 15;

class FlashCoopEmitter {
public:
  explicit FlashCoopEmitter(AttentionRows &rows)
      : run(rows), e(rows.e), b(rows.b), loc(rows.loc),
        shape(*e.shape.flashCoop), unit(shape.unit), spare(rows),
        range(e, /*rows=*/0),
        element(rows.type.getType().isBF16() ? Type(b.getBF16Type())
                                             : b.getF16Type()),
        vectorType(VectorType::get({4}, b.getI32Type())),
        cacheBuffer(e.bufferOf(cast<BlockArgument>(rows.op.getCache()))) {}

  void emit() {
    allocate();
    run.forBlocks(shape.rows(), [&] { emitBlock(); });
  }

private:
  //===--- Setup ----------------------------------------------------------===//

  void allocate() {
    const Type f32 = b.getF32Type(), i32 = b.getI32Type();
    lines = e.workgroupMemory(shape.lines() * shape.lineVectors(), vectorType);
    weights = e.workgroupMemory(shape.rows() * shape.weightWords(), i32);
    scores = e.workgroupMemory(shape.scoreElements(), f32);
    partials = e.workgroupMemory(shape.partialElements(), f32);
    int64_t used = 0;
    spare.allocate([&](int64_t count, Type type) -> FlashMemory {
      if (type != f32)
        return e.workgroupMemory(count, type);
      used += count;
      return {scores, used - count};
    });
    Value warp = e.div(e.thread, shape.subgroup);
    Value lane = e.rem(e.thread, shape.subgroup);
    firstOfWarp = e.scaled(warp, unit);
    ownRow = e.add(firstOfWarp, e.div(lane, shape.sharers()));
    part = e.rem(lane, shape.sharers());
    ownScores = e.scaled(ownRow, shape.scoreStride());
    warpScores = e.scaled(firstOfWarp, shape.scoreStride());
  }

  Value load(Value memory, Value place) {
    return memref::LoadOp::create(b, loc, memory, place);
  }
  void store(Value value, Value memory, Value place) {
    memref::StoreOp::create(b, loc, value, memory, place);
  }
  Value toWord(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }
  Value largerOf(Value lhs, Value rhs) {
    return arith::MaximumFOp::create(b, loc, lhs, rhs);
  }
  Value negate(Value condition) {
    return arith::XOrIOp::create(
        b, loc, condition,
        arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  }
  Value scaledWeight(Value weight) {
    return element.isF16() ? e.mul(weight, e.f32(weightScale)) : weight;
  }
  Value both(Value lhs, Value rhs) {
    return arith::AndIOp::create(b, loc, lhs, rhs);
  }
  Value noVector() {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vectorType, int32_t(0)));
  }
  Value vectorOf(ArrayRef<Value> words) {
    return vector::FromElementsOp::create(b, loc, vectorType, words);
  }

  /// Two f32 in a word, rounded; what they are then, in f32, goes to `rounded`.
  Value pack(Value first, Value second, Value *rounded = nullptr) {
    if (element.isF16()) {
      if (rounded) {
        rounded[0] = first = roundToHalf(e, first);
        rounded[1] = second = roundToHalf(e, second);
      }
      return packHalves(e, first, second);
    }
    Value low = e.narrow(first, element), high = e.narrow(second, element);
    if (rounded)
      rounded[0] = e.widen(low, element), rounded[1] = e.widen(high, element);
    auto word = [&](Value bits) -> Value {
      return arith::ExtUIOp::create(b, loc, b.getI32Type(), bits);
    };
    return arith::OrIOp::create(
        b, loc, word(low),
        arith::ShLIOp::create(b, loc, word(high), e.word(16)));
  }

  /// Has the block computed again where the magnitude of one of `elements` is
  /// not below that of the bits `least`.
  void noteFrom(ArrayRef<Value> elements, int64_t least) {
    if (!element.isF16())
      return;
    Value largest = e.word(0);
    for (Value each : elements) {
      Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), each);
      largest = arith::MaxUIOp::create(b, loc, largest,
                                       both(bits, e.word(0x7fffffff)));
    }
    Value isWide = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                         largest, e.word(least));
    Value odd = arith::BitcastOp::create(
        b, loc, b.getF32Type(), e.select(isWide, e.word(infinity), e.word(0)));
    range.checkBits(odd);
  }

  //===--- Matrices -------------------------------------------------------===//

  gpu::MMAMatrixType matrixOf(StringRef use) {
    // The type of elements is in the function: gpu.mma_matrix has no bf16.
    return gpu::MMAMatrixType::get(
        {unit, unit}, use == "COp" ? Type(b.getF32Type()) : b.getF16Type(),
        use);
  }
  Value noMatrix() {
    return gpu::SubgroupMmaConstantMatrixOp::create(b, loc, matrixOf("COp"),
                                                    e.f32(0.0));
  }
  Value loadMatrix(StringRef use, Value memory, Value place, int64_t stride,
                   bool isTransposed = false) {
    return gpu::SubgroupMmaLoadMatrixOp::create(
        b, loc, matrixOf(use), memory, place, b.getIndexAttr(stride),
        isTransposed ? b.getUnitAttr() : UnitAttr());
  }
  Value multiplyAdd(Value left, Value right, Value sum) {
    return gpu::SubgroupMmaComputeOp::create(
        b, loc, matrixOf("COp"), left, right, sum, /*a_transpose=*/UnitAttr(),
        /*b_transpose=*/UnitAttr());
  }
  /// Brings a matrix to the subgroup's scores from column `column` on.
  void storeScores(Value matrix, int64_t column) {
    gpu::SubgroupMmaStoreMatrixOp::create(
        b, loc, matrix, scores, e.add(warpScores, e.index(column)),
        b.getIndexAttr(shape.scoreStride()), /*transpose=*/UnitAttr());
  }
  /// A unit's lines from number `line` on, columns from `column` on.
  Value placeOf(Value line, int64_t column) {
    return e.add(e.scaled(line, shape.lineVectors()),
                 e.index(column / vectorColumns));
  }

  //===--- A block of rows ------------------------------------------------===//

  void emitBlock() {
    // Whoever was at the block before this one has left the memory.
    e.barrier();
    range.reset();
    stageQueries();
    Values queries;
    for (int64_t s = 0; s < shape.steps(); ++s)
      queries.push_back(loadMatrix("AOp", lines, placeOf(firstOfWarp, s * unit),
                                   shape.lineVectors()));
    findRange();
    State state = visitKeys(queries);
    findInverses(state);
    forResults(state, [&](Value value, ValueRange) { range.checkBits(value); });
    e.barrier();
    Value isOdd = range.isNoted();
    e.ifThen(isOdd, [&] { spare.emitRows(shape.rows()); });
    // None is stored twice: barriers order workgroup memory alone.
    e.ifThen(negate(isOdd), [&] {
      forResults(state, [&](Value value, ValueRange place) {
        e.storeResult(value, place);
      });
    });
  }

  /// Leaves scaled queries where keys will be. They come by their elements, in
  /// the order that FlashEmitter has, too, and are rounded together.
  void stageQueries() {
    const int64_t width = shape.keys, vectors = width / vectorColumns;
    for (int64_t first = 0; first < shape.columns(); first += width) {
      run.forQueries(
          shape.rows(), e.index(first), width,
          run.op.getScale().convertToDouble(),
          [&](Value local, Value offset, Value q) {
            store(q, scores,
                  e.add(e.scaled(local, shape.scoreStride()), offset));
          },
          queriesAtOnce);
      e.barrier();
      const int64_t count =
          std::min(vectors, (shape.columns() - first) / vectorColumns);
      e.forThreads(e.index(shape.rows() * count), [&](Value number) {
        Value row = e.div(number, count), at = e.rem(number, count);
        Value begin = e.add(e.scaled(row, shape.scoreStride()),
                            e.scaled(at, vectorColumns));
        Values elements, words;
        for (int64_t i = 0; i < vectorColumns; ++i)
          elements.push_back(load(scores, e.add(begin, e.index(i))));
        noteFrom(elements, leastWide);
        for (int64_t i = 0; i < vectorColumns; i += 2)
          words.push_back(pack(elements[i], elements[i + 1]));
        store(vectorOf(words), lines, e.add(placeOf(row, first), at));
      });
      e.barrier();
    }
  }

  /// The thread's row, and the keys that any row of the block sees.
  void findRange() {
    Value nothing = e.word(-1), most = e.word(INT32_MAX);
    row = run.find(ownRow);
    position = e.select(row.exists, run.positionOf(row), nothing);
    Value isNone = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         position, e.word(0));
    Value low = e.combineThreads(e.select(isNone, most, position), most,
                                 [&](Value x, Value y) -> Value {
                                   return arith::MinSIOp::create(b, loc, x, y);
                                 });
    Value high =
        e.combineThreads(position, nothing, [&](Value x, Value y) -> Value {
          return arith::MaxSIOp::create(b, loc, x, y);
        });
    Value last = arith::MinSIOp::create(b, loc, toIndex(high),
                                        e.sub(run.limit, e.index(1)));
    endKey = e.add(last, e.index(1));
    Value firstSeen = run.window.firstOf(toIndex(low));
    firstKey = e.scaled(e.div(firstSeen, shape.keys), shape.keys);
  }

  //===--- Keys and values on their way -----------------------------------===//

  int64_t vectorElements() const {
    return shape.isQuantized ? vectorCodes : vectorColumns;
  }
  int64_t vectorsOfRow() const { return shape.columns() / vectorElements(); }
  int64_t vectorsOfBlock() const { return shape.keys * vectorsOfRow(); }

  /// What a thread copies of a block: vectors of 16 bytes, and the scales of
  /// codes.
  struct Flight {
    Values vectors, scales;
  };

  /// Calls `body` with the row and the number, in it, of each vector that this
  /// thread copies, and whether there is one; null: there is for certain.
  void forCopies(
      function_ref<void(int64_t i, Value row, Value at, Value exists)> body) {
    const int64_t all = vectorsOfBlock();
    for (int64_t i = 0; i * shape.threads() < all; ++i) {
      Value number = e.add(e.thread, e.index(i * shape.threads())), exists;
      if ((i + 1) * shape.threads() > all) {
        exists = e.isLess(number, e.index(all));
        number = e.select(exists, number, e.index(0));
      }
      body(i, e.div(number, vectorsOfRow()), e.rem(number, vectorsOfRow()),
           exists);
    }
  }

  /// Where keys begin in the page of `key`; where there is none, anywhere in
  /// the cache.
  Value keysAt(Value key) {
    return run.keysAt(
        arith::MinUIOp::create(b, loc, key, e.sub(run.limit, e.index(1))));
  }

  /// Reads keys, or values, of the block at `key`, which begin at `head`.
  Flight read(Value head, Value key) {
    Flight flight;
    Value inPage = e.rem(key, run.type.getPage());
    forCopies([&](int64_t, Value line, Value at, Value) {
      if (shape.columns() != shape.headDim)
        at = arith::MinUIOp::create(
            b, loc, at, e.index(shape.headDim / vectorElements() - 1));
      CacheRow source = run.cache.locate(head, e.add(inPage, line));
      Value place = e.add(source.first, e.scaled(at, vectorElements()));
      flight.vectors.push_back(
          load(cacheBuffer, e.div(place, vectorElements())));
      if (shape.isQuantized)
        flight.scales.push_back(
            run.cache.loadScale(source, e.div(e.scaled(at, vectorElements()),
                                              run.cache.blockSize())));
    });
    return flight;
  }

  /// Stores what was read of the block at `key`, zeros where there is nothing:
  /// what no row sees is no reason to compute anything again.
  void storeLines(const Flight &flight, Value key) {
    forCopies([&](int64_t i, Value line, Value at, Value exists) {
      Value isThere = e.isLess(e.add(key, line), endKey);
      if (shape.columns() != shape.headDim)
        isThere = both(isThere,
                       e.isLess(at, e.index(shape.headDim / vectorElements())));
      Value place = e.scaled(line, shape.lineVectors());
      auto storeAll = [&] {
        if (!shape.isQuantized) {
          store(e.select(isThere, flight.vectors[i], noVector()), lines,
                e.add(place, at));
          return;
        }
        Value scale = e.select(isThere, flight.scales[i], e.f32(0.0));
        noteFrom(scale, leastWideScale);
        place = e.add(place, e.scaled(at, vectorCodes / vectorColumns));
        for (int64_t n = 0; n < vectorCodes / vectorColumns; ++n)
          store(decode(flight.vectors[i], n, scale), lines,
                e.add(place, e.index(n)));
      };
      if (exists)
        e.ifThen(exists, storeAll);
      else
        storeAll();
    });
  }

  /// Half number `half` of the codes in `vector`, times `scale`.
  Value decode(Value vector, int64_t half, Value scale) {
    constexpr int64_t codesOfWord = 4;
    Values words;
    for (int64_t w = 0; w < vectorColumns / codesOfWord; ++w) {
      Value codes = vector::ExtractOp::create(
          b, loc, vector, half * vectorColumns / codesOfWord + w);
      Values elements;
      for (int64_t i = 0; i < codesOfWord; ++i) {
        Value up = arith::ShLIOp::create(b, loc, codes, e.word(24 - 8 * i));
        Value code = arith::ShRSIOp::create(b, loc, up, e.word(24));
        elements.push_back(e.mul(
            arith::SIToFPOp::create(b, loc, b.getF32Type(), code), scale));
      }
      words.push_back(pack(elements[0], elements[1]));
      words.push_back(pack(elements[2], elements[3]));
    }
    return vectorOf(words);
  }

  //===--- Blocks of keys -------------------------------------------------===//

  /// Of the thread's row, the largest score, and its part of the sum of
  /// weights; and the subgroup's sums of values, a matrix for each step.
  struct State {
    Value maximum, total;
    Values sums;
  };

  State visitKeys(ArrayRef<Value> queries) {
    Values initial = {e.f32(AttentionRows::lowestMaximum), e.f32(0.0)};
    for (int64_t s = 0; s < shape.steps(); ++s)
      initial.push_back(noMatrix());
    const size_t ofState = initial.size();
    const Flight first = read(keysAt(firstKey), firstKey);
    llvm::append_range(initial, first.vectors);
    llvm::append_range(initial, first.scales);
    auto stateOf = [&](ValueRange list) {
      return State{list[0], list[1], Values(list.slice(2, shape.steps()))};
    };
    auto blocks =
        e.loop(firstKey, endKey, e.index(shape.keys), initial,
               [&](Value key, ValueRange args) {
                 State state = stateOf(args);
                 ValueRange onTheWay = args.drop_front(ofState);
                 Flight keys;
                 llvm::append_range(keys.vectors,
                                    onTheWay.take_front(first.vectors.size()));
                 llvm::append_range(keys.scales,
                                    onTheWay.drop_front(first.vectors.size()));
                 Flight next = visitBlock(key, keys, queries, state);
                 Values results = {state.maximum, state.total};
                 llvm::append_range(results, state.sums);
                 llvm::append_range(results, next.vectors);
                 llvm::append_range(results, next.scales);
                 return results;
               });
    return stateOf(blocks.getResults());
  }

  /// Adds what the block of keys at `key` has, and reads the next keys.
  Flight visitBlock(Value key, const Flight &keys, ArrayRef<Value> queries,
                    State &state) {
    // Queries, or the values of the block before this one, are not needed.
    e.barrier();
    storeLines(keys, key);
    e.barrier();
    Flight values = read(run.valuesAt(keysAt(key)), key);
    multiplyKeys(queries);
    e.barrier();
    storeLines(values, key);
    weigh(key, state);
    e.barrier();
    Value next = e.add(key, e.index(shape.keys));
    Flight later = read(keysAt(next), next);
    addValues(state);
    return later;
  }

  void multiplyKeys(ArrayRef<Value> queries) {
    for (int64_t n = 0; n < shape.keys; n += unit) {
      Value sum = noMatrix();
      for (int64_t s = 0; s < shape.steps(); ++s) {
        Value right = loadMatrix("BOp", lines, placeOf(e.index(n), s * unit),
                                 shape.lineVectors(), /*isTransposed=*/true);
        sum = multiplyAdd(queries[s], right, sum);
      }
      storeScores(sum, n);
    }
  }

  /// Makes weights of the row's scores, of which this thread has every so many
  /// pairs, and leaves the factor of what there was before.
  void weigh(Value key, State &state) {
    struct Score {
      Value seen, score;
    };
    SmallVector<Score> own;
    Value largest = e.f32(AttentionRows::lowestMaximum);
    Value lowest = largest;
    const int64_t pairs = shape.keysOfThread() / 2;
    auto pairOf = [&](int64_t i) {
      return e.add(part, e.index(i * shape.sharers()));
    };
    for (int64_t i = 0; i < 2 * pairs; ++i) {
      Value number = e.add(e.scaled(pairOf(i / 2), 2), e.index(i % 2));
      Value score = load(scores, e.add(ownScores, number));
      if (std::optional<APFloat> cap = run.op.getSoftcap())
        score = e.softcap(score, cap->convertToDouble());
      Value at = e.add(key, number);
      Value seen = run.window.isSeen(toWord(at), position,
                                     [](Value scalar) { return scalar; });
      seen = both(seen, e.isLess(at, endKey));
      largest = largerOf(largest, e.select(seen, score, lowest));
      own.push_back({seen, score});
    }
    Value ownPartials = e.scaled(ownRow, shape.sharers());
    store(largest, partials, e.add(ownPartials, part));
    e.barrier();
    Value maximum = state.maximum;
    for (int64_t i = 0; i < shape.sharers(); ++i)
      maximum =
          largerOf(maximum, load(partials, e.add(ownPartials, e.index(i))));
    Value factor = math::ExpOp::create(b, loc, e.sub(state.maximum, maximum));
    Value total = e.mul(state.total, factor);
    auto weightOf = [&](const Score &of) {
      Value weight = math::ExpOp::create(b, loc, e.sub(of.score, maximum));
      return e.select(of.seen, weight, e.f32(0.0));
    };
    for (int64_t i = 0; i < pairs; ++i) {
      Value rounded[2];
      Value word = pack(scaledWeight(weightOf(own[2 * i])),
                        scaledWeight(weightOf(own[2 * i + 1])), rounded);
      total = e.add(total, e.add(rounded[0], rounded[1]));
      store(word, weights,
            e.add(e.scaled(ownRow, shape.weightWords()), pairOf(i)));
    }
    for (int64_t i = 0; i < unit; i += shape.sharers())
      store(factor, scores, e.add(ownScores, e.add(part, e.index(i))));
    state.maximum = maximum;
    state.total = total;
  }

  void addValues(State &state) {
    Value factors = loadMatrix("COp", scores, warpScores, shape.scoreStride());
    for (Value &sum : state.sums)
      sum = gpu::SubgroupMmaElementwiseOp::create(b, loc, matrixOf("COp"),
                                                  ValueRange{sum, factors},
                                                  gpu::MMAElementwiseOp::MULF);
    Value ownWeights = e.scaled(firstOfWarp, shape.weightWords());
    for (int64_t n = 0; n < shape.keys; n += unit) {
      Value left = loadMatrix("AOp", weights, e.add(ownWeights, e.index(n / 2)),
                              shape.weightWords());
      for (auto [s, sum] : llvm::enumerate(state.sums)) {
        Value right = loadMatrix(
            "BOp", lines, placeOf(e.index(n), static_cast<int64_t>(s) * unit),
            shape.lineVectors());
        sum = multiplyAdd(left, right, sum);
      }
    }
  }

  //===--- Results --------------------------------------------------------===//

  Value inversePlace(Value local) {
    return e.add(local, e.index(shape.rows() * shape.sharers()));
  }

  /// Leaves what the sums of each row are multiplied by.
  void findInverses(const State &state) {
    Value ownPartials = e.scaled(ownRow, shape.sharers());
    store(state.total, partials, e.add(ownPartials, part));
    e.barrier();
    Value total;
    for (int64_t i = 0; i < shape.sharers(); ++i) {
      Value own = load(partials, e.add(ownPartials, e.index(i)));
      total = total ? e.add(total, own) : own;
    }
    range.checkBits(total);
    if (element.isF16())
      total = e.mul(total, e.f32(1 / weightScale));
    if (Value sinks = run.op.getSinks())
      total = addSink(e, total, sinks, row.head, state.maximum);
    Value isAny = run.window.seesAny(toIndex(position), run.limit);
    Value one = e.f32(element.isF16() ? 1 / weightScale : 1.0);
    Value inverse =
        e.select(isAny, arith::DivFOp::create(b, loc, one, total), e.f32(0.0));
    // A row that sees keys, and weighs none, is computed again, too.
    range.checkBits(inverse);
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          part, e.index(0));
    e.ifThen(isFirst, [&] { store(inverse, partials, inversePlace(ownRow)); });
  }

  /// Brings some columns of all rows to workgroup memory at a time, from which
  /// threads take elements that are neighbours, and calls `body` with each and
  /// with its place in the result.
  void forResults(const State &state,
                  function_ref<void(Value value, ValueRange place)> body) {
    const int64_t atOnce = shape.keys / unit;
    for (int64_t first = 0; first < shape.steps(); first += atOnce) {
      const int64_t count = std::min(atOnce, shape.steps() - first);
      const int64_t width = count * unit;
      // Factors, or other columns, are read; inverses are there.
      e.barrier();
      for (int64_t s = 0; s < count; ++s)
        storeScores(state.sums[first + s], s * unit);
      e.barrier();
      e.forThreads(e.index(shape.rows() * width), [&](Value number) {
        Value local = e.div(number, width), offset = e.rem(number, width);
        Value column = e.add(offset, e.index(first * unit));
        AttentionRows::Row own = run.find(local);
        Value exists = own.exists;
        if ((first + count) * unit > shape.headDim)
          exists = both(exists, e.isLess(column, e.index(shape.headDim)));
        e.ifThen(exists, [&] {
          Value sum =
              load(scores, e.add(e.scaled(local, shape.scoreStride()), offset));
          Value value = e.mul(sum, load(partials, inversePlace(local)));
          body(value, {own.token, own.head, column});
        });
      });
    }
  }

  AttentionRows &run;
  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  const FlashCoopShape &shape;
  const int64_t unit; // rows, keys and columns of one
  FlashEmitter spare;
  RowRange range;
  Type element;          // of what units multiply
  VectorType vectorType; // 16 bytes
  Value cacheBuffer;     // in such
  Value firstOfWarp;     // the first row of this subgroup
  Value ownRow, part;    // of this thread, and which of its sharers it is
  Value ownScores, warpScores;
  AttentionRows::Row row;
  Value position;                         // of the thread's row, i32
  Value firstKey, endKey;                 // of the block
  Value lines, weights, scores, partials; // workgroup memory
};

} // namespace

void mlir::kf::emitFlashCoop(AttentionRows &rows) {
  FlashCoopEmitter(rows).emit();
}
