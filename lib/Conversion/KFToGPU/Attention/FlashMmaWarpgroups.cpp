//===- FlashMmaWarpgroups.cpp - Attention by warpgroups -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the chip has warpgroups, they multiply what FlashMmaStaging.cpp stages
// as it lies there, with queries and weights in registers, which lie in lanes
// as those of single warps do.
//
//===----------------------------------------------------------------------===//

#include "FlashMmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kf;

using Registers = SmallVector<Value>;

/// Starts to compute what multiplyStage() gives.
Registers FlashMmaEmitter::beginScores(Value stage) {
  constexpr int64_t stepsOfPanel = FlashMmaShape::chunksOfPanel / 2;
  Value start = warp.advance(stages, stage);
  Registers queries, keys;
  for (int64_t step = 0; step < shape.steps(); ++step) {
    llvm::append_range(queries, queryFragment(step, 0));
    Value panel = warp.advance(start, step / stepsOfPanel * shape.panelBytes());
    keys.push_back(warp.describeRows(panel, step % stepsOfPanel));
  }
  return warp.beginProducts(element, queries, keys,
                            Registers(shape.keys / 2, e.f32(0.0)));
}

/// Starts to add the stage's values times packed weights.
void FlashMmaEmitter::beginValues(Value stage, ArrayRef<Value> weights,
                                  Sums &sums) {
  Value start = warp.advance(warp.advance(stages, stage), shape.valuesOffset());
  Registers values;
  for (int64_t i = 0; i < shape.keys / 16; ++i)
    values.push_back(warp.describeColumns(start, i, shape.panelBytes()));
  sums.values = warp.beginProducts(element, weights, values, sums.values,
                                   /*isTransposed=*/true);
}

/// Scores of a block may be weighed while values of the one before are added.
/// So keys are copied two blocks ahead, and values one: behind the block's own,
/// or where those were.
FlashMmaEmitter::Sums FlashMmaEmitter::visitAhead() {
  const int64_t weightsOfLane = shape.keys / 4; // registers
  Value step = e.index(shape.keys), none = e.index(0);
  Value second = e.add(firstKey, step), secondKeys = keysAt(second);
  auto weighBlock = [&](Registers scores, Value key, Sums &sums,
                        Registers &factors) {
    findWhole(key);
    hide(scores, key);
    return weigh(scores, sums, factors);
  };

  // The first block, and keys of the second.
  e.barrier();
  Flight flight;
  beginCopies(flight, /*isValue=*/false, second, secondKeys,
              e.index(shape.stageBytes()));
  endGroup();
  Sums first = noSums();
  Registers scores = warp.waitForSums(beginScores(none)), unused;
  scores = weighBlock(scores, firstKey, first, unused);
  endCopies(flight);
  Registers initial = first.all();
  llvm::append_range(initial, packWeights(scores));
  llvm::append_range(initial,
                     ValueRange{secondKeys, keysAt(e.add(second, step)), none});

  auto blocks =
      e.loop(second, endKey, step, initial, [&](Value key, ValueRange args) {
        Sums sums = sumsOf(args);
        Registers weights(args.drop_back(3).take_back(weightsOfLane));
        Value keys = args.take_back(3)[0], keysAhead = args.take_back(3)[1];
        Value before = args.back(); // the stage of the block before
        Value stage = e.sub(e.index(shape.stageBytes()), before);
        Value ahead = e.add(key, step);
        // Keys of this block are there, and values of the one before; all
        // warps have read what is copied over.
        e.barrier();
        Flight flight;
        beginCopies(flight, /*isValue=*/false, ahead, keysAhead, before);
        beginCopies(flight, /*isValue=*/true, key, keys, stage);
        endGroup();
        Value keysAfter = keysAt(e.add(ahead, step));
        Registers scores = warp.waitForSums(beginScores(stage)), factors;
        beginValues(before, weights, sums);
        weights = weighBlock(scores, key, sums, factors);
        sums.values = warp.waitForSums(sums.values);
        rescale(sums, factors);
        weights = packWeights(weights);
        endCopies(flight);
        Registers results = sums.all();
        llvm::append_range(results, weights);
        llvm::append_range(results, ValueRange{keysAhead, keysAfter, stage});
        return results;
      });
  ValueRange results = blocks.getResults();
  Sums sums = sumsOf(results);
  // The last block's values are there.
  e.barrier();
  Registers weights(results.drop_back(3).take_back(weightsOfLane));
  beginValues(results.back(), weights, sums);
  sums.values = warp.waitForSums(sums.values);
  return sums;
}
