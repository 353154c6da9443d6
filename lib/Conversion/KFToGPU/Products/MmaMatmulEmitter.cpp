//===- MmaMatmulEmitter.cpp - Products on matrix units --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The workgroup walks along K. Shared memory is a ring of stages, each with a
// step of its rows of x and of its lines of the weight, whose codes have a ring
// of their own: while one is multiplied, those behind it are copied. Warps have
// their own parts of the tile, whose sums stay in registers until the end.
// Lines and rows past an edge are zeros, whose sums are not stored.
//
// Where there are fewer tiles than multiprocessors, workgroups of a cluster
// divide K. Each stores a part of the tile's elements, with the sums of all.
//
//===----------------------------------------------------------------------===//

#include "../../Common/RowFormulas.h"
#include "../Units/RowRange.h"
#include "GPUMatmulEmitter.h"
#include "MmaLines.h"
#include "TileIndices.h"

#include "kf/Conversion/KernelLoops.h"

#include "kf/Conversion/Occupancy.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class MmaMatmulEmitter : public GPUMatmulEmitter {
public:
  explicit MmaMatmulEmitter(GPUEmitter &e)
      : GPUMatmulEmitter(e), mma(*e.shape.mma), code(e), product(e),
        outliers(e, op) {}

private:
  void emitProduct() override {
    ring = code.workgroupBytes(shape.workgroupBytes - mma.rangeBytes());
    if (mma.hasOutliers) {
      range.emplace(e, mma.rows);
      range->reset();
    }
    if (mma.isForWarpgroups)
      ring = code.align(ring, MmaShape::warpgroupAlignment);
    if (needsHalf())
      e.useAllRegisters(/*workgroups=*/2);
    factor = factorOf(op);
    isRounded = e.unroundedResult() != e.tileResult();
    findColumns();
    SmallVector<Value> sums = sumUpTile();
    if (!mma.hasOutliers)
      return storeTile(sums);
    range->check(sums);
    SmallVector<Value> all = range->unlessNoted(sums, [&] {
      isScaled = true;
      product.numberThread();
      range->find(rows, extent, [&](Value row, Value column) {
        return outliers.load({row, column});
      });
      SmallVector<Value> scaled = sumUpTile();
      product.unscaleSums(scaled, *range);
      return scaled;
    });
    product.numberThread();
    storeTile(all);
  }

  /// Whether registers are to leave room for another workgroup, as memory does.
  /// Clusters of more than two count on that, since not all multiprocessors can
  /// be in one: where one workgroup takes more, some clusters wait for others
  /// to end. With few sums it takes less by itself.
  bool needsHalf() const {
    constexpr int64_t fewSums = 32;
    return mma.parts > 2 && mma.sums() > fewSums &&
           holdsTwo(shape, e.machine) &&
           2 * mma.threads() * e.machine.registersOfThread >
               e.machine.ofEach.registers;
  }

  /// Finds the columns of K that this workgroup has. What tiles of codes have
  /// past the last one is 0, and so are rows.
  void findColumns() {
    const int64_t all = paddedExtent();
    begin = e.index(0);
    end = e.index(all);
    if (!e.part)
      return;
    begin = e.scaled(e.part, mma.columns());
    end = e.add(begin, e.index(mma.columns()));
    if (mma.parts * mma.columns() != all)
      end = e.select(e.isLess(end, e.index(all)), end, e.index(all));
  }
  int64_t paddedExtent() const {
    return mma.tileBytes ? llvm::alignTo(extent, MmaShape::tileColumns)
                         : extent;
  }

  /// The sums of the tile, of rows as they are or scaled.
  SmallVector<Value> sumUpTile() {
    MmaStaging x(e,
                 MmaOperand(e, op.getX(), stagedTypeOf(op),
                            /*mayBeTurned=*/!mma.isForWarpgroups &&
                                !mma.hasOutliers &&
                                llvm::isPowerOf2_64(mma.rows)),
                 mma.rows, /*offset=*/0, [&](Value line) -> MmaStaging::Line {
                   return {{line}, e.isLess(line, rows)};
                 });
    lines = createMmaLines(e, op, product, columns, ring);
    if (mma.isForWarpgroups)
      return sumUpWarpgroups(x);
    x.findTiles(product.firstRow(), mma.rowTiles(), MmaStaging::Factor::Rows);
    return sumUp(x);
  }

  /// Brings this thread's part of the rows in a stage, which are columns from
  /// `k` on, into the range of f16, where rows are scaled.
  void scaleStage(MmaStaging &x, Value at, Value k) {
    if (isScaled)
      e.ifThen(e.isLess(k, end),
               [&] { x.rescale(code.advance(ring, at), k, outliers, *range); });
  }

  /// Step number `number` of a loop, whose stage is at byte `at` of the ring.
  MmaStep stepAt(Value at, Value k, int64_t number) {
    return {code.advance(ring, at), k, number % mma.stepsOfTile()};
  }

  /// Begins to copy what the step reads, where there is one.
  void copyStage(MmaStaging &x, const MmaStep &step) {
    e.ifThen(e.isLess(step.k, end), [&] {
      x.copy(step.stage, step.k);
      lines->copy(step);
    });
    code.commitCopies();
  }

  /// Begins with the first `ahead` stages. A packed weight is on its way while
  /// the kernels before this one end: none of them makes it. The code that
  /// takes others apart is long, and stands here once for all stages.
  void fillStages(MmaStaging &x, int64_t ahead) {
    if (!hasFragments(op.getW().getType())) {
      e.loop(e.index(ahead), [&](Value stage) {
        copyStage(x, stepAt(e.scaled(stage, mma.stageBytes()),
                            e.add(begin, e.scaled(stage, mma.step)), 0));
      });
      return;
    }
    auto copy = [&](int64_t i, function_ref<void(const MmaStep &)> operand) {
      Value k = e.add(begin, e.index(i * mma.step));
      e.ifThen(e.isLess(k, end),
               [&] { operand(stepAt(e.index(i * mma.stageBytes()), k, i)); });
    };
    for (int64_t i = 0; i < ahead; ++i)
      copy(i, [&](const MmaStep &step) { lines->copy(step); });
    e.waitForInputs();
    for (int64_t i = 0; i < ahead; ++i) {
      copy(i, [&](const MmaStep &step) { x.copy(step.stage, step.k); });
      code.commitCopies();
    }
  }

  /// The ring's stages, one after another.
  SmallVector<Value> sumUp(MmaStaging &x) {
    const int64_t ahead = mma.ahead(), inTurn = mma.stepsOfTile();
    fillStages(x, ahead);
    waitForStage(x, e.index(0), begin);
    // What is multiplied next is in registers before it is wanted.
    SmallVector<Value> carried = product.zeros();
    const size_t sumCount = carried.size();
    llvm::append_range(carried, loadStep(x, stepAt(e.index(0), begin, 0), 0));
    carried.push_back(e.index(0));
    carried.push_back(e.index(ahead * mma.stageBytes()));
    auto steps = e.loop(
        begin, end, e.index(inTurn * mma.step), carried,
        [&](Value first, ValueRange args) {
          SmallVector<Value> sums(args.take_front(sumCount));
          SmallVector<Value> words(args.drop_front(sumCount).drop_back(2));
          Value read = args.end()[-2], write = args.end()[-1], k = first;
          for (int64_t turn = 0; turn < inTurn; ++turn) {
            copyStage(x, stepAt(write, e.add(k, e.index(ahead * mma.step)),
                                turn + ahead));
            const MmaStep step = stepAt(read, k, turn);
            read = nextStage(read);
            write = nextStage(write);
            Value next = e.add(k, e.index(mma.step));
            const int64_t count = mma.step / MmaShape::unitStep;
            for (int64_t i = 0; i < count; ++i) {
              const bool isLast = i + 1 == count;
              // All have what they copied, and have left the stage that is
              // filled next.
              if (isLast)
                waitForStage(x, read, next);
              SmallVector<Value> later =
                  isLast ? loadStep(x, stepAt(read, next, turn + 1), 0)
                         : loadStep(x, step, i + 1);
              multiplyAdd(words, sums);
              words = std::move(later);
            }
            k = next;
          }
          llvm::append_range(sums, words);
          sums.push_back(read);
          sums.push_back(write);
          return sums;
        });
    return SmallVector<Value>(steps.getResults().take_front(sumCount));
  }

  /// The same by warpgroups, which multiply a stage while what the next one
  /// needs is done. Two in turn have registers of their own for their lines:
  /// units still read those of the one before.
  SmallVector<Value> sumUpWarpgroups(MmaStaging &x) {
    const int64_t ahead = mma.ahead();
    fillStages(x, ahead);
    SmallVector<Value> carried = product.zeros();
    const size_t sumCount = carried.size();
    carried.push_back(e.index(0));
    carried.push_back(e.index(ahead * mma.stageBytes()));
    const bool isEven = mma.steps % 2 == 0 &&
                        llvm::divideCeil(extent, mma.step) % mma.steps == 0;
    const int64_t inTurn = mma.tileBytes ? mma.stepsOfTile() : isEven ? 2 : 1;
    auto steps =
        e.loop(begin, end, e.index(inTurn * mma.step), carried,
               [&](Value first, ValueRange args) {
                 SmallVector<Value> sums(args.take_front(sumCount));
                 Value read = args.end()[-2], write = args.end()[-1];
                 for (int64_t turn = 0; turn < inTurn; ++turn) {
                   Value k = e.add(first, e.index(turn * mma.step));
                   code.waitForCopies(ahead - 1);
                   scaleStage(x, read, k);
                   code.fenceShared();
                   e.barrier();
                   const MmaStep step = stepAt(read, k, turn);
                   const MmaStep later =
                       stepAt(write, e.add(k, e.index(ahead * mma.step)),
                              turn + ahead);
                   // Between what makes numbers of codes and the products,
                   // nothing may branch: else these would wait for one another.
                   if (mma.tileBytes)
                     copyStage(x, later);
                   SmallVector<Value> words, ofRows;
                   for (int64_t i = 0; i < mma.step / MmaShape::unitStep; ++i) {
                     llvm::append_range(words, lines->load(step, 0, i));
                     ofRows.push_back(code.describeRows(step.stage, i));
                   }
                   if (!mma.tileBytes)
                     copyStage(x, later);
                   sums = code.beginProducts(factor, words, ofRows, sums);
                   read = nextStage(read);
                   write = nextStage(write);
                   code.waitForProducts(inTurn > 1 ? 1 : 0);
                 }
                 sums.push_back(read);
                 sums.push_back(write);
                 return sums;
               });
    return code.waitForSums(steps.getResults().take_front(sumCount));
  }

  /// Waits for the stage behind the one that is multiplied: that at byte `at`,
  /// with columns from `k` on.
  void waitForStage(MmaStaging &x, Value at, Value k) {
    code.waitForCopies(mma.ahead() - 1);
    scaleStage(x, at, k);
    e.barrier();
  }

  Value nextStage(Value at) {
    Value next = e.add(at, e.index(mma.stageBytes()));
    Value isInside = e.isLess(next, e.index(mma.stages * mma.stageBytes()));
    return e.select(isInside, next, e.index(0));
  }

  /// This warp's words of columns number `sixteen` of the step: those of lines,
  /// [lineTiles][4], then those of rows, [rowTiles][2]. Of WideFactors, that is
  /// what is rounded; behind it is, in the same order, what that leaves.
  SmallVector<Value> loadStep(MmaStaging &x, const MmaStep &step,
                              int64_t sixteen) {
    SmallVector<Value> words, rests;
    auto append = [&](ArrayRef<Value> loaded) {
      const size_t own = mma.isWide ? loaded.size() / 2 : loaded.size();
      llvm::append_range(words, loaded.take_front(own));
      llvm::append_range(rests, loaded.drop_front(own));
    };
    for (int64_t i = 0; i < mma.lineTiles(); ++i)
      append(lines->load(step, i, sixteen));
    for (int64_t pair = 0; 2 * pair < mma.rowTiles(); ++pair)
      append(x.load(step.stage, pair, sixteen));
    llvm::append_range(words, rests);
    return words;
  }

  /// Of WideFactors, what is rounded by what is rounded, and what each leaves
  /// by what is rounded of the other.
  void multiplyAdd(ArrayRef<Value> words, MutableArrayRef<Value> sums) {
    const int64_t ofLines = 4 * mma.lineTiles(), ofRows = 2 * mma.rowTiles();
    ArrayRef<Value> ofLine = words.take_front(ofLines),
                    ofRow = words.slice(ofLines, ofRows),
                    rest = words.drop_front(ofLines + ofRows);
    product.multiplyAdd(factor, ofLine, ofRow, sums);
    if (!mma.isWide)
      return;
    product.multiplyAdd(factor, ofLine, rest.drop_front(ofLines), sums);
    product.multiplyAdd(factor, rest.take_front(ofLines), ofRow, sums);
  }

  /// Through workgroup memory, so that neighbouring threads store elements that
  /// are neighbours.
  void storeTile(ValueRange sums) {
    const SmallVector<Value> all = code.inEachPart(ring); // sums
    const int64_t units = layout.units();
    for (int64_t first = 0; first < mma.rowTiles(); first += units) {
      code.synchronizeTile(); // with whoever still reads what was there
      product.storeSums(sums, ring, first, units);
      code.synchronizeTile();
      storeRows(all, first, units);
    }
    if (e.part) // what others read must be there until they have
      code.clusterBarrier();
  }

  /// Stores what storeSums() has written, to `sums` in each part. Threads take
  /// several elements at a time, whose operands are read before any is stored:
  /// of whole tiles columns side by side, which are read and stored at once.
  void storeRows(ArrayRef<Value> sums, int64_t first, int64_t units) {
    const bool isWhole = getConstantIntValue(columns) == shape.columns;
    const int64_t together = isWhole ? columnsTogether : 1;
    const int64_t all = layout.rows(units) * shape.columns / together;
    const int64_t most = isWhole ? mostTogether : mostLone,
                  threads = shape.threadCount * mma.parts;
    const int64_t atOnce = std::min(most, llvm::divideCeilSigned(all, threads));
    Value place = e.thread; // of this thread in the cluster
    if (e.part)
      place = e.add(place, e.scaled(e.part, shape.threadCount));
    e.loop(place, e.index(all), e.index(atOnce * threads), {},
           [&](Value begin, ValueRange) {
             SmallVector<Elements> elements;
             for (int64_t i = 0; i < atOnce; ++i) {
               Value number = e.add(begin, e.index(i * threads)), isThere;
               // Of the last ones some are beyond the tile.
               if (all % (atOnce * threads) != 0) {
                 isThere = e.isLess(number, e.index(all));
                 number = e.select(isThere, number, e.index(0));
               }
               elements.push_back(
                   finishNumber(number, sums, first, units, together));
               if (isThere)
                 elements.back().areInside = arith::AndIOp::create(
                     b, loc, elements.back().areInside, isThere);
             }
             for (const Elements &each : elements)
               for (Value value : each.values)
                 code.computeHere(value);
             for (const Elements &each : elements)
               e.ifThen(each.areInside, [&] {
                 e.storeResults(each.values,
                                tileIndices(e, each.row, each.column));
               });
             return SmallVector<Value>();
           });
  }

  /// Columns of a row that a thread has together, 16 bytes of sums; how often
  /// as many are on their way, and single elements.
  static constexpr int64_t columnsTogether = 4, mostTogether = 8, mostLone = 16;

  /// Elements side by side.
  struct Elements {
    Value row, column; // of the tile; of the first one
    SmallVector<Value> values;
    Value areInside; // i1
  };

  /// Elements number `number` of those that storeSums() has written, `together`
  /// at a time; of those that are not inside, what others' operands give.
  Elements finishNumber(Value number, ArrayRef<Value> sums, int64_t first,
                        int64_t units, int64_t together) {
    Elements own;
    Value width = e.index(shape.columns / together);
    Value line = arith::DivUIOp::create(b, loc, number, width);
    Value column =
        e.scaled(arith::RemUIOp::create(b, loc, number, width), together);
    Value row = product.tileRow(line, first, units);
    own.areInside = e.isLess(row, rows);
    const bool isWhole = together > 1;
    if (!isWhole)
      own.areInside = arith::AndIOp::create(b, loc, own.areInside,
                                            e.isLess(column, columns));
    own.row = e.select(own.areInside, row, e.index(0));
    own.column = isWhole ? column : e.select(own.areInside, column, e.index(0));
    const SmallVector<Value> all = sumUpParts(sums, line, column, together);
    for (int64_t i = 0; i < together; ++i) {
      SmallVector<Value> ofGroups;
      for (int64_t group = 0; group < shape.groups; ++group)
        ofGroups.push_back(all[group * together + i]);
      own.values.push_back(
          finishColumn(own.row, e.add(own.column, e.index(i)), ofGroups));
    }
    return own;
  }

  /// The element of the tile with these sums, which storeResults() rounds. To
  /// 16 bits: the last bits of an activation do not matter then.
  Value finishColumn(Value row, Value column, ArrayRef<Value> sums) {
    Block *block = b.getInsertionBlock();
    Block::iterator here = b.getInsertionPoint();
    const bool isFirst = here == block->begin();
    Block::iterator before = isFirst ? here : std::prev(here);
    Value value = finishProduct(e, op, sums, column, 0);
    const auto flags = arith::FastMathFlagsAttr::get(b.getContext(),
                                                     arith::FastMathFlags::afn);
    for (Operation &own :
         llvm::make_range(isFirst ? block->begin() : std::next(before), here))
      if (isRounded && isa<math::ExpOp, arith::DivFOp>(own))
        own.setAttr(
            cast<arith::ArithFastMathInterface>(own).getFastMathAttrName(),
            flags);
    e.define(op.getResult(),
             [value](ValueRange, unsigned, Value) { return value; });
    return e.load(e.unroundedResult(), tileIndices(e, row, column), 0);
  }

  /// Of each group, what all parts have of `together` elements.
  SmallVector<Value> sumUpParts(ArrayRef<Value> sums, Value line, Value column,
                                int64_t together) {
    SmallVector<Value> all;
    for (Value memory : sums) {
      SmallVector<Value> part =
          product.loadSums(memory, line, column, together);
      if (all.empty())
        all = std::move(part);
      else
        for (auto [sum, own] : llvm::zip(all, part))
          sum = e.add(sum, own);
    }
    return all;
  }

  const MmaShape &mma;
  MmaSums layout{mma};
  WarpOps code;
  MmaFragment product;
  OutlierRows outliers;
  std::optional<RowRange> range; // where there may be outliers
  bool isScaled = false;         // whether rows are scaled
  bool isRounded = false;        // whether elements are, to 16 bits
  std::unique_ptr<MmaLines> lines;
  Type factor;      // what units multiply: f16 or bf16
  Value begin, end; // of this workgroup's columns of K
  Value ring;       // pointer to the stages
};

} // namespace

void mlir::kf::emitMmaMatmul(GPUEmitter &emitter) {
  MmaMatmulEmitter(emitter).emit();
}
