//===- ReduceEmitter.cpp - Reductions and products of batches -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the last dimension stays, a vector of results sums up vectors; where it
// is reduced, each result sums up vectors along it.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

static vector::CombiningKind kindOf(ReduceKind kind, Type element) {
  bool isFloat = isa<FloatType>(element), isBit = element.isInteger(1);
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    return vector::CombiningKind::ADD;
  case ReduceKind::Prod:
    return vector::CombiningKind::MUL;
  case ReduceKind::Max:
    return isFloat ? vector::CombiningKind::MAXIMUMF
           : isBit ? vector::CombiningKind::OR
                   : vector::CombiningKind::MAXSI;
  case ReduceKind::Min:
    return isFloat ? vector::CombiningKind::MINIMUMF
           : isBit ? vector::CombiningKind::AND
                   : vector::CombiningKind::MINSI;
  }
  llvm_unreachable("every reduction has a kind of vectors");
}

void KernelEmitter::emitReduce(ReduceOp op, ValueRange row, StoreFn store) {
  Value x = op.getX();
  auto type = cast<RankedTensorType>(x.getType());
  auto resultType = cast<RankedTensorType>(op.getType());
  Type element = computeType(type.getElementType());
  SmallVector<Value> sizes = sizesOf(x);
  int64_t last = type.getRank() - 1;
  // One element after the other of rows whose number is a size of the step.
  bool alongRows = op.isReduced(last) && !type.isDynamicDim(last);
  SmallVector<int64_t> outer; // reduced dimensions in loops
  for (int64_t dim : op.getDims())
    if (dim != last || !alongRows)
      outer.push_back(dim);
  // Indices of the result to those of x, but for reduced ones.
  auto placeOf = [&](Value column) {
    SmallVector<Value> place(type.getRank()), at(row);
    if (resultType.getRank() > 0)
      at.push_back(column);
    size_t next = 0;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      bool isReduced = op.isReduced(dim);
      if (!isReduced)
        place[dim] = at[next];
      next += !isReduced || op.getKeepDims();
    }
    return place;
  };
  TypedAttr neutral = neutralOf(op.getKind(), element);
  auto neutralValue = [&](unsigned width) {
    Value scalar = arith::ConstantOp::create(b, loc, neutral);
    return width ? splat(scalar, width) : scalar;
  };
  // The sum over `outer` of what `inner` makes at a place.
  auto nest = [&](SmallVector<Value> place, Value init,
                  function_ref<Value(ValueRange)> inner) {
    std::function<Value(size_t, Value)> at = [&](size_t number, Value sum) {
      if (number == outer.size())
        return combine(*this, op.getKind(), sum, inner(place));
      auto body = [&](Value iv, ValueRange args) {
        place[outer[number]] = iv;
        return SmallVector<Value>{at(number + 1, args[0])};
      };
      return loop(index(0), sizes[outer[number]], index(1), sum, body)
          .getResult(0);
    };
    return at(0, init);
  };
  auto finish = [&](Value sum, unsigned width) -> Value {
    if (op.getKind() != ReduceKind::Mean)
      return sum;
    Value by = countReduced(op);
    return arith::DivFOp::create(b, loc, sum, width ? splat(by, width) : by);
  };
  Value size = resultType.getRank() ? sizesOf(op.getResult()).back() : index(1);
  if (!alongRows) {
    forPieces(size, [&](Value column, unsigned width) {
      Value sum = nest(placeOf(column), neutralValue(width),
                       [&](ValueRange place) { return load(x, place, width); });
      store(column, width, finish(sum, width));
    });
    return;
  }
  loop(size, [&](Value column) {
    Value sum = nest(placeOf(column), neutralValue(0), [&](ValueRange place) {
      return reducePieces(
          sizes[last], kindOf(op.getKind(), element),
          [&](Value at, unsigned width) {
            SmallVector<Value> one(place);
            one.back() = at;
            return load(x, one, width);
          },
          neutralValue(0));
    });
    store(column, 1, splat(finish(sum, 0), 1));
  });
}

/// Whether the last two dimensions change places, and no others.
static bool swapsRowsAndColumns(TransposeOp op) {
  SmallVector<int64_t> order(op.getPermutation());
  std::swap(order.end()[-1], order.end()[-2]);
  return llvm::equal(order, llvm::seq<int64_t>(0, order.size()));
}

/// Vectors of columns that are summed up at a time: no sum waits for another.
static constexpr int64_t vectorsOfProduct = 4;

void KernelEmitter::emitBatchMatmul(BatchMatmulOp op, ValueRange row,
                                    StoreFn store) {
  prepareRow(op.getX(), row);
  multiplyRows(op, row, /*rows=*/1,
               [&](int64_t, Value column, unsigned width, Value values) {
                 store(column, width, values);
               });
}

/// All rows of a tile, as many at a time as the schedule says: where w is a
/// transpose, each vector of it is read once for these, and so is a line of x
/// where x is one. Where w is none, they are one row after the other.
void KernelEmitter::emitBatchMatmulTile(BatchMatmulOp op) {
  SmallVector<Value> sizes = sizesOf(op.getResult());
  sizes.pop_back();
  Value count = sizes.pop_back_val();
  const int64_t most =
      schedule.getTile().empty() ? 1 : schedule.getTile().front();
  auto rowsFrom = [&](ValueRange batch, Value begin, Value end, int64_t rows) {
    loop(begin, end, index(rows), {}, [&](Value first, ValueRange) {
      multiplyRows(op, indicesAt(batch, first), rows,
                   [&](int64_t r, Value column, unsigned, Value values) {
                     Value line = add(first, index(r));
                     storeResult(values,
                                 indicesAt(indicesAt(batch, line), column));
                   });
      return SmallVector<Value>();
    });
  };
  forRows(sizes, [&](ValueRange batch) {
    Value whole = count;
    if (std::optional<int64_t> known = getConstantIntValue(count))
      whole = index(*known / most * most);
    else if (most > 1)
      whole =
          mul(arith::DivUIOp::create(b, loc, count, index(most)), index(most));
    rowsFrom(batch, index(0), whole, most);
    if (most > 1)
      rowsFrom(batch, whole, count, 1);
  });
}

/// `rows` rows of x, which are loadable, times vectors of columns of w where w
/// is the transpose of something, whose rows have them; else one column after
/// another. Each element is summed up alike, however many rows there are.
void KernelEmitter::multiplyRows(BatchMatmulOp op, ValueRange first,
                                 int64_t rows, StoreRowFn store) {
  ValueRange batch = first.drop_back();
  Value columns = sizesOf(op.getResult()).back();
  Value extent = sizesOf(op.getX()).back();
  SmallVector<SmallVector<Value>> lines;
  for (int64_t r = 0; r < rows; ++r)
    lines.push_back(indicesAt(batch, r ? add(first.back(), index(r))
                                       : Value(first.back())));
  auto element = [&](Value tensor, ValueRange line, Value at, unsigned width) {
    return load(tensor, indicesAt(line, at), width);
  };
  SmallVector<Value> offsets;
  auto transposed = sourceOf(op.getW(), offsets).getDefiningOp<TransposeOp>();
  if (transposed && swapsRowsAndColumns(transposed)) {
    std::swap(offsets.end()[-1], offsets.end()[-2]);
    auto loadColumns = [&](Value k, Value column, unsigned width) {
      SmallVector<Value> place = indicesAt(indicesAt(batch, k), column);
      for (auto [at, offset] : llvm::zip(place, offsets))
        at = add(at, offset);
      return load(transposed.getX(), place, width);
    };
    auto sumColumns = [&](Value column, unsigned width, int64_t vectors) {
      SmallVector<Value> zeros(rows * vectors, splat(f32(0.0), width)), places;
      for (int64_t v = 0; v < vectors; ++v)
        places.push_back(add(column, index(v * width)));
      auto sums = loop(
          index(0), extent, index(1), zeros, [&](Value k, ValueRange args) {
            SmallVector<Value> right, next;
            for (Value place : places)
              right.push_back(loadColumns(k, place, width));
            for (int64_t r = 0; r < rows; ++r) {
              Value left = splat(element(op.getX(), lines[r], k, 0), width);
              for (int64_t v = 0; v < vectors; ++v)
                next.push_back(math::FmaOp::create(b, loc, left, right[v],
                                                   args[r * vectors + v]));
            }
            return next;
          });
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < vectors; ++v)
          store(r, places[v], width, sums.getResult(r * vectors + v));
    };
    // Of a head of 80 columns, 64 and then 16.
    const int64_t together = vectorsOfProduct * lanes;
    const std::optional<int64_t> count = getConstantIntValue(columns);
    const int64_t joined = count ? *count / together * together : 0;
    if (joined > 0)
      loop(index(0), index(joined), index(together), {},
           [&](Value column, ValueRange) {
             sumColumns(column, lanes, vectorsOfProduct);
             return SmallVector<Value>();
           });
    if (joined != count)
      forPieces(joined > 0 ? index(*count - joined) : columns,
                [&](Value column, unsigned width) {
                  sumColumns(joined > 0 ? add(column, index(joined)) : column,
                             width, /*vectors=*/1);
                });
    return;
  }
  loop(columns, [&](Value column) {
    for (int64_t r = 0; r < rows; ++r) {
      Value sum = reduceRow(
          extent, vector::CombiningKind::ADD, [&](Value k, unsigned width) {
            return mul(element(op.getX(), lines[r], k, width),
                       element(op.getW(), indicesAt(batch, column), k, width));
          });
      store(r, column, 1, splat(sum, 1));
    }
  });
}
